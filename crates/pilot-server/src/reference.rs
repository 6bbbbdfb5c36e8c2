//! The reference pages that are generated from the code. A test keeps `docs/reference` equal to them.

use std::fmt::Write as _;

use pilot_core::limits;
use pilot_core::role::Role;

use crate::problem::Code;
use crate::routes::{Handler, table};

const GENERATED: &str = "<!-- Generated from the code; `UPDATE_EXPECT=1 cargo test` rewrites it. -->\n\n";

/// Who may call what, one row per operation.
pub fn routes() -> String {
    let mut text = format!("# Who may call what\n\n{GENERATED}");
    let roles: Vec<_> = Role::ALL.iter().map(|role| format!("`{role}`")).collect();
    let _ = writeln!(text, "| operation | method | path | anyone | {} |", roles.join(" | "));
    let _ = writeln!(text, "|---|---|---|---|{}", "---|".repeat(roles.len()));
    for route in table() {
        let mark = |allowed| if allowed { "yes" } else { "–" };
        let (anyone, allowed): (_, Vec<_>) = match route.handler {
            Handler::Open(_) | Handler::File(_) => (true, vec![mark(true); Role::ALL.len()]),
            Handler::Guarded(access, _) => (false, Role::ALL.iter().map(|role| mark(access.allows(*role))).collect()),
        };
        let (operation, method, path) = (route.operation, route.method, route.path);
        let _ = writeln!(text, "| `{operation}` | {method} | `{path}` | {} | {} |", mark(anyone), allowed.join(" | "));
    }
    text.push_str("\nA role that is not allowed gets 403 `role_forbidden`; a missing or invalid credential gets 401 `credential_required` before anything else is checked.\n");
    text
}

/// Every problem code with its status and remedy.
pub fn problems() -> String {
    let mut text = format!("# Problems\n\n{GENERATED}");
    for code in Code::ALL {
        let (name, status, title, help) = (code.as_str(), code.status(), code.title(), code.help());
        let _ = writeln!(text, "## `{name}`\n\n{status}. {title}.\n\n{help}\n");
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

pub fn limits() -> String {
    let mut text = format!("# Limits\n\n{GENERATED}| what | limit | beyond it |\n|---|---|---|\n");
    for (what, limit, beyond) in limits::TABLE {
        let _ = writeln!(text, "| {what} | {limit} | {beyond} |");
    }
    text
}
