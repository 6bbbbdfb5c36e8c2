//! What the operators' JSON files have in common: strict reading that never repeats what it found.

use serde_json::{Map, Value};

use crate::actor::ActorId;
use crate::fault::{Fault, Faults};
use crate::json;
use crate::role::Role;

/// A name of 32 or more characters could be a token in the wrong place.
pub(crate) fn without_long_names(faults: Vec<Fault>) -> Vec<Fault> {
    let short = |name: &str| if name.len() < 32 { name.to_owned() } else { "(long name)".to_owned() };
    let mend =
        |fault: Fault| Fault { pointer: fault.pointer.split('/').map(short).collect::<Vec<_>>().join("/"), ..fault };
    faults.into_iter().map(mend).collect()
}

/// Groups the faults of the JSON itself, which come one by one.
pub(crate) fn grouped(found: Vec<Fault>) -> Vec<Fault> {
    let mut faults = Faults::default();
    faults.extend(without_long_names(found));
    faults.into_list()
}

pub(crate) fn check_schema_version(file: &Map<String, Value>, faults: &mut Faults) {
    if file.get("schema_version").is_some_and(|version| version.as_u64() != Some(1)) {
        faults.push(Fault::new("/schema_version", "must be the integer 1, the only version this program reads"));
    }
}

pub(crate) fn read_actor_id(value: &Value, at: &str, faults: &mut Faults) -> Option<ActorId> {
    let read = value
        .as_str()
        .ok_or_else(|| "must be a string".to_owned())
        .and_then(|text| text.parse().map_err(|error| format!("{error}")));
    read.map_err(|detail: String| faults.push(Fault::new(at, detail))).ok()
}

pub(crate) fn read_role(value: &Value, at: &str, faults: &mut Faults) -> Option<Role> {
    let role = value.as_str().and_then(|text| text.parse().ok());
    if role.is_none() {
        faults.push(Fault::new(at, "must be one of initiator, approver, security_admin, executor, auditor"));
    }
    role
}

/// The members of a value, if it is an object; unknown and missing members are faults.
pub(crate) fn members<'a>(
    value: &'a Value,
    at: &str,
    known: &[&str],
    faults: &mut Faults,
) -> Option<&'a Map<String, Value>> {
    members_with_optional(value, at, known, &[], faults)
}

pub(crate) fn members_with_optional<'a>(
    value: &'a Value,
    at: &str,
    required: &[&str],
    optional: &[&str],
    faults: &mut Faults,
) -> Option<&'a Map<String, Value>> {
    let Some(object) = value.as_object() else {
        faults.push(Fault::new(at, format!("must be an object with {}", required.join(", "))));
        return None;
    };
    for name in object.keys() {
        if !required.contains(&name.as_str()) && !optional.contains(&name.as_str()) {
            faults.push(Fault::new(
                json::join(at, name),
                format!("is not a known member; known members are {}", [required, optional].concat().join(", ")),
            ));
        }
    }
    for name in required {
        if !object.contains_key(*name) {
            faults.push(Fault::new(json::join(at, name), "is missing"));
        }
    }
    Some(object)
}
