//! What an auditor reads first: what was not checked, exceptions, and the access review. As many rows as anyone prints.

use std::fmt::Write as _;

use pilot_core::time::Time;
use pilot_core::visible::visible;

use crate::audit::access::{AccessRow, Source};
use crate::audit::checks::{CheckRow, LEFT_OUT};
use crate::audit::{Audit, Exception, Kind};
use crate::verify::Outcome;

const EXCEPTIONS_MAX: usize = 200;
const ACCESS_MAX: usize = 200;
const LEFT_OUT_SHOWN: usize = 5;

pub(super) struct Sections {
    pub unchecked: Vec<Unchecked>,
    /// Files that were left out, in one sentence; empty if there are none.
    pub left_out: String,
    pub exceptions: Vec<ExceptionView>,
    pub exceptions_more: usize,
    pub notices: Vec<String>,
    pub access: Vec<AccessView>,
    pub access_more: usize,
}

/// One thing that was not checked, and why.
pub(super) struct Unchecked {
    pub kind: &'static str,
    pub name: String,
    pub detail: String,
}

pub(super) struct ExceptionView {
    pub entry: String,
    pub at: String,
    pub kind: &'static str,
    pub who: String,
    pub item: String,
    pub what: String,
    pub is_fault: bool,
}

pub(super) struct AccessView {
    pub actor: String,
    pub role: &'static str,
    pub kind: &'static str,
    /// The role map or the credential, and who approved it.
    pub what: Vec<String>,
    pub from: String,
    pub until: String,
    pub ended: &'static str,
    pub moves: u64,
    pub last: String,
}

impl Sections {
    pub(super) fn of(audit: Audit) -> Sections {
        let Audit { exceptions, access, checks, .. } = audit;
        Sections {
            left_out: left_out(&checks),
            unchecked: checks.into_iter().filter(|row| row.kind != LEFT_OUT).filter_map(unchecked).collect(),
            exceptions_more: exceptions.len().saturating_sub(EXCEPTIONS_MAX),
            exceptions: exceptions.into_iter().take(EXCEPTIONS_MAX).map(exception).collect(),
            notices: access.notices,
            access_more: access.rows.len().saturating_sub(ACCESS_MAX),
            access: access.rows.iter().take(ACCESS_MAX).map(access_view).collect(),
        }
    }
}

fn unchecked(row: CheckRow) -> Option<Unchecked> {
    let CheckRow { kind, name, outcome, detail } = row;
    (outcome == Outcome::NotChecked).then_some(Unchecked { kind, name, detail })
}

fn left_out(checks: &[CheckRow]) -> String {
    let paths: Vec<_> = checks.iter().filter(|row| row.kind == LEFT_OUT).map(|row| row.name.as_str()).collect();
    let shown = paths.get(..paths.len().min(LEFT_OUT_SHOWN)).unwrap_or_default().join(", ");
    let more = if paths.len() > LEFT_OUT_SHOWN { ", …" } else { "" };
    match paths.len() {
        0 => String::new(),
        1 => format!("1 file that the manifest lists was left out: {shown}."),
        count => format!("{count} files that the manifest lists were left out: {shown}{more}."),
    }
}

fn exception(found: Exception) -> ExceptionView {
    ExceptionView {
        entry: found.entry.map(|entry| entry.to_string()).unwrap_or_default(),
        at: found.at.map(clock).unwrap_or_default(),
        kind: found.kind.as_str(),
        who: found.actor,
        item: found.item.map(|item| item.to_string()).unwrap_or_default(),
        what: found.what,
        is_fault: found.kind == Kind::Fault,
    }
}

fn access_view(row: &AccessRow) -> AccessView {
    let what = match row.source {
        Source::RoleMap => vec![format!("role map {}", row.role_map), format!("approved by {}", row.approved_by)],
        Source::Credential if row.credential_id.is_empty() => vec![format!("credential {}", row.fingerprint)],
        Source::Credential => vec![format!("credential {}", row.credential_id), row.fingerprint.clone()],
        Source::Acted => vec!["acted, and nothing in this bundle says why they could".to_owned()],
    };
    let place = |at: Time, entry: Option<u64>| match entry {
        Some(entry) => format!("{}, entry {entry}", clock(at)),
        None => clock(at),
    };
    AccessView {
        actor: row.actor.as_ref().map(ToString::to_string).unwrap_or_default(),
        role: row.role.map_or("", |role| role.as_str()),
        kind: row.kind,
        what,
        from: row.from.map_or_else(|| "not known".to_owned(), |from| place(from.at, Some(from.entry))),
        until: row.until.map(|(at, entry)| place(at, entry)).unwrap_or_default(),
        ended: row.ended,
        moves: row.moves,
        last: row.last_move.map(|last| place(last.at, Some(last.entry))).unwrap_or_default(),
    }
}

/// To the second; the entries have microseconds.
pub(super) fn clock(at: Time) -> String {
    at.to_string().replace('T', " ").chars().take(19).collect()
}

/// A text inside quotes in a style sheet: letters, digits and escapes only, so that no text can end it.
pub(super) fn quoted(text: &str) -> String {
    let mut safe = String::new();
    for character in visible(text).chars() {
        if character.is_ascii_alphanumeric() {
            safe.push(character);
        } else {
            // Six digits always end the escape.
            let _ = write!(safe, "\\{:06x}", u32::from(character));
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_a_text_in_a_style_sheet_before_its_quotes() {
        let safe = quoted("a\"}</style>\u{202e}é\\");
        assert_eq!(safe, "a\\000022\\00007d\\00003c\\00002fstyle\\00003e\\0027e8U\\00002b202E\\0027e9\\0000e9\\00005c");
    }
}
