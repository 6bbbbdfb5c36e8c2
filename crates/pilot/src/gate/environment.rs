//! What a command behind the gate sees of the environment: a few variables, and none that can change what it does.

use pilot_evidence::permit::Permit;

use crate::environment::Environment;

/// The caller's own path is not approved, so it does not choose programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Passed on if they look as they should.
const KEPT: [&str; 3] = ["LANG", "TERM", "TZ"];
/// Variables through which loaders, shells and interpreters run something else: by name, or by how the name begins.
const NEVER: [&str; 14] = [
    "BASH_ENV",
    "CDPATH",
    "ENV",
    "GCONV_PATH",
    "GLOBIGNORE",
    "HOME",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "LOCPATH",
    "NLSPATH",
    "PATH",
    "PILOT_TOKEN",
    "PS4",
    "SHELLOPTS",
];
const NEVER_BEGINNING: [&str; 11] =
    ["BASH_FUNC_", "DYLD_", "GIT_", "GLIBC_", "LD_", "MALLOC_", "NODE_", "PERL", "PILOT_", "PYTHON", "RUBY"];

/// A variable that may be passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allowed(pub String);

/// Why a variable cannot be passed on, if so.
pub(crate) fn refused_name(name: &str) -> Option<String> {
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name {
        return Some(format!("--env-allow: {name:?} is not the name of a variable"));
    }
    let forbidden = NEVER.contains(&name) || NEVER_BEGINNING.iter().any(|beginning| name.starts_with(beginning));
    forbidden.then(|| {
        format!(
            "--env-allow: {name} could make the command do something that was not approved, or is a secret, so it is \
             never passed on; have the value approved as an argument"
        )
    })
}

/// The home of the user that the command runs as. The caller's word for it would choose which settings and modules
/// interpreters load.
fn home() -> String {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let own = rustix::process::geteuid().as_raw().to_string();
    let home = users.lines().find_map(|line| {
        let fields: Vec<_> = line.split(':').collect();
        let (user, home) = (fields.get(2)?, fields.get(5)?);
        (*user == own && home.starts_with('/')).then(|| (*home).to_owned())
    });
    home.unwrap_or_else(|| "/".to_owned())
}

/// The whole environment of the command.
pub(super) fn of_command(permit: &Permit, allowed: &[Allowed], own: &Environment) -> Vec<(String, String)> {
    let plain = |value: &str| {
        value.len() <= 256 && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+@".contains(&byte))
    };
    let mut variables = vec![("PATH".to_owned(), PATH.to_owned()), ("HOME".to_owned(), home())];
    let kept = KEPT.into_iter().filter_map(|name| Some((name, own.get(name).filter(|value| plain(value))?)));
    variables.extend(kept.map(|(name, value)| (name.to_owned(), value.to_owned())));
    for Allowed(name) in allowed.iter().filter(|allowed| !KEPT.contains(&allowed.0.as_str())) {
        variables.extend(own.get(name).map(|value| (name.clone(), value.to_owned())));
    }
    let item = &permit.item;
    variables.extend([
        ("PILOT_ITEM_ID".to_owned(), item.id.to_string()),
        ("PILOT_ATTEMPT".to_owned(), item.attempts.to_string()),
        ("PILOT_WORKFLOW".to_owned(), item.workflow.name.to_string()),
        ("PILOT_CONTENT_DIGEST".to_owned(), item.content_digest.to_string()),
    ]);
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_change_what_a_command_does_cannot_be_allowed() {
        for name in ["LD_PRELOAD", "BASH_ENV", "PYTHONPATH", "PATH", "PILOT_TOKEN", "GLIBC_TUNABLES", "A=B", ""] {
            assert!(refused_name(name).is_some(), "{name}");
        }
        for name in ["DEPLOY_REGION", "TZ", "LC_ALL"] {
            assert_eq!(refused_name(name), None);
        }
    }
}
