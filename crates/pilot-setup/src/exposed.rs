//! Live tokens in the files that a start reads. Their contents end up in the ledger, in answers and in evidence, so the
//! start is refused: with the place, never with the value.

use std::path::Path;

use pilot_core::credentials::Credentials;
use pilot_core::json::{self, Bounds};
use pilot_core::leak::LeakGuard;
use pilot_core::limits::{FAULTS_MAX, FILE_VALUES_MAX};

use crate::config::Config;
use crate::credentials::RoleMapFile;
use crate::definitions;
use crate::error::StartError;

const REMEDY: &str = "contains a live token; remove it from there, and rotate the credential";
/// Deeper than any role map that is accepted.
const BOUNDS: Bounds = Bounds { depth: 8, values: FILE_VALUES_MAX };

/// Searches the names in the credential file, and the role map.
pub fn tokens_in_names(
    config: &Config,
    credentials: &Credentials,
    role_map: Option<&RoleMapFile>,
    guard: &LeakGuard,
) -> Vec<String> {
    let source = &config.credentials.source;
    let named = credentials.entries().iter().enumerate().flat_map(|(index, credential)| {
        let names = [("actor_id", credential.actor.actor_id.as_str()), ("credential_id", credential.id.as_str())];
        let found = names.into_iter().filter(|(_, name)| guard.is_in(name));
        found.map(move |(member, _)| format!("{source} at /credentials/{index}/{member} {REMEDY}"))
    });
    let mut found: Vec<_> =
        named.chain(role_map.into_iter().flat_map(|file| tokens_in_role_map(file, guard))).collect();
    if let Some(more) = found.len().checked_sub(FAULTS_MAX).filter(|more| *more > 0) {
        found.truncate(FAULTS_MAX);
        found.push(format!("{more} more places contain live tokens; fix these first"));
    }
    found
}

fn tokens_in_role_map(file: &RoleMapFile, guard: &LeakGuard) -> Vec<String> {
    let path = file.path.display();
    let places = json::parse(&file.bytes, BOUNDS).map(|value| guard.find_in_json(&value)).unwrap_or_default();
    let mut found: Vec<_> = places.iter().map(|place| format!("{path} at {place} {REMEDY}")).collect();
    // Also outside of strings, if anything can be there.
    if found.is_empty() && guard.find(&file.bytes).is_some() {
        found.push(format!("{path} {REMEDY}"));
    }
    found
}

/// Searches the definitions in `workflows.dir`, before they are read, since a flaw is shown with its line.
pub fn refuse_tokens_in_definitions(dir: Option<&Path>, guard: &LeakGuard) -> Result<(), StartError> {
    let mut found = Vec::new();
    for (name, text) in definitions::files(dir)? {
        let lines = text.lines().enumerate().filter(|(_, line)| guard.is_in(line));
        found.extend(lines.map(|(index, _)| format!("{name}, line {} {REMEDY}", index + 1)));
    }
    if found.is_empty() { Ok(()) } else { Err(StartError::Refused(found.join("\n"))) }
}

/// A role map that only its author has seen is legal, but worth a warning.
pub fn too_few_approvers(file: &RoleMapFile) -> Option<String> {
    let path = file.path.display();
    let names = file.map.approved_by.len();
    let advice = "have it approved by two people, and add their names";
    (names < 2).then(|| {
        format!(
            "{path} at /approved_by has {names} name(s), but at least two people should approve a role map; {advice}"
        )
    })
}
