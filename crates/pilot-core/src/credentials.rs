//! The credential file: which digest speaks for which actor in which role.
//!
//! Read strictly and whole. A file with any fault is refused, every fault is listed with its place, and no value is
//! ever repeated, because sooner or later somebody pastes a clear token into it.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::actor::{Actor, ActorId};
use crate::digest::Digest;
use crate::fault::Fault;
use crate::json;
use crate::role::Role;
use crate::role_map::RoleMap;
use crate::token::Token;

const DEPTH_MAX: usize = 8;

#[derive(Debug, Clone)]
pub struct Credential {
    pub actor: Actor,
    pub digest: Digest,
}

/// Every credential of a file, in the file's order, and an index to find one by its digest.
#[derive(Debug, Clone)]
pub struct Credentials {
    entries: Vec<Credential>,
    by_digest: Vec<([u8; 32], usize)>,
}

impl Credentials {
    pub fn parse(bytes: &[u8]) -> Result<Credentials, Vec<Fault>> {
        let value = json::parse(bytes, DEPTH_MAX).map_err(without_long_names)?;
        let mut faults = Vec::new();
        let entries = read_file(&value, &mut faults);
        if faults.is_empty() { Ok(Credentials::new(entries)) } else { Err(without_long_names(faults)) }
    }

    pub fn new(entries: Vec<Credential>) -> Credentials {
        let mut by_digest: Vec<_> =
            entries.iter().enumerate().map(|(index, entry)| (entry.digest.sort_key(), index)).collect();
        by_digest.sort_unstable();
        Credentials { entries, by_digest }
    }

    pub fn entries(&self) -> &[Credential] {
        &self.entries
    }

    /// The position and the credential with this digest. The search uses the leading bytes, the verdict is a
    /// constant-time comparison of the whole.
    pub fn find(&self, digest: &Digest) -> Option<(usize, &Credential)> {
        let wanted = leading(&digest.sort_key());
        let first = self.by_digest.partition_point(|(key, _)| leading(key) < wanted);
        let candidates = self.by_digest.iter().skip(first).take_while(|(key, _)| leading(key) == wanted);
        candidates
            .filter_map(|(_, index)| Some((*index, self.entries.get(*index)?)))
            .find(|(_, credential)| credential.digest.matches(digest))
    }

    /// Every credential must be in the jointly approved role map, with the same role.
    pub fn check_against(&self, map: &RoleMap) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (index, credential) in self.entries.iter().enumerate() {
            match map.role_of(&credential.actor.actor_id) {
                None => faults.push(Fault::new(
                    format!("/credentials/{index}/actor_id"),
                    "is not in the role map; have it approved there, or remove the credential",
                )),
                Some(role) if role != credential.actor.role => faults.push(Fault::new(
                    format!("/credentials/{index}/roles"),
                    "differs from the role the role map approves for this actor",
                )),
                Some(_) => {}
            }
        }
        faults
    }

    /// The file as it is written: what was read, in the same order.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct File<'a> {
            schema_version: u32,
            credentials: Vec<Entry<'a>>,
        }
        #[derive(Serialize)]
        struct Entry<'a> {
            actor_id: &'a ActorId,
            roles: [Role; 1],
            token_sha3_256: String,
        }
        let credentials = self.entries.iter().map(|credential| Entry {
            actor_id: &credential.actor.actor_id,
            roles: [credential.actor.role],
            token_sha3_256: credential.digest.to_hex(),
        });
        let file = File { schema_version: 1, credentials: credentials.collect() };
        serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
    }
}

impl Credential {
    pub fn new(actor: Actor, token: &Token) -> Credential {
        Credential { actor, digest: token.digest() }
    }
}

fn leading(key: &[u8; 32]) -> u64 {
    u64::from_be_bytes(key.first_chunk().copied().unwrap_or_default())
}

/// A name of 32 or more characters could be a token in the wrong place.
pub(crate) fn without_long_names(faults: Vec<Fault>) -> Vec<Fault> {
    let short = |name: &str| if name.len() < 32 { name.to_owned() } else { "(long name)".to_owned() };
    let mend =
        |fault: Fault| Fault { pointer: fault.pointer.split('/').map(short).collect::<Vec<_>>().join("/"), ..fault };
    faults.into_iter().map(mend).collect()
}

fn read_file(value: &Value, faults: &mut Vec<Fault>) -> Vec<Credential> {
    let Some(file) = members(value, "", &["schema_version", "credentials"], faults) else { return Vec::new() };
    check_schema_version(file, faults);
    let Some(list) = file.get("credentials") else { return Vec::new() };
    let Some(list) = list.as_array() else {
        faults.push(Fault::new("/credentials", "must be an array of credential entries"));
        return Vec::new();
    };
    if list.is_empty() {
        faults.push(Fault::new(
            "/credentials",
            "is empty, so nobody could ever sign in; add one with `pilot credential new`",
        ));
    }
    let mut together = Together::default();
    let mut entries = Vec::with_capacity(list.len());
    for (index, entry) in list.iter().enumerate() {
        if let Some(credential) = read_entry(entry, &format!("/credentials/{index}"), &mut together, faults) {
            entries.push(credential);
        }
    }
    entries
}

pub(crate) fn check_schema_version(file: &Map<String, Value>, faults: &mut Vec<Fault>) {
    if file.get("schema_version").is_some_and(|version| version.as_u64() != Some(1)) {
        faults.push(Fault::new("/schema_version", "must be the integer 1, the only version this program reads"));
    }
}

/// What earlier entries have claimed, to find contradictions between entries.
#[derive(Default)]
struct Together {
    digests: HashMap<[u8; 32], usize>,
    actors: HashMap<String, (ActorId, Role)>,
    count: usize,
}

fn read_entry(value: &Value, at: &str, together: &mut Together, faults: &mut Vec<Fault>) -> Option<Credential> {
    let index = together.count;
    together.count += 1;
    let entry = members(value, at, &["actor_id", "roles", "token_sha3_256"], faults)?;
    let actor_id = entry.get("actor_id").and_then(|value| read_actor_id(value, &format!("{at}/actor_id"), faults));
    let role = entry.get("roles").and_then(|value| read_one_role(value, &format!("{at}/roles"), faults));
    let digest =
        entry.get("token_sha3_256").and_then(|value| read_digest(value, &format!("{at}/token_sha3_256"), faults));
    if let Some(digest) = &digest
        && let Some(earlier) = together.digests.insert(digest.sort_key(), index)
    {
        let detail = format!("is the digest already given at /credentials/{earlier}/token_sha3_256");
        faults.push(Fault::new(format!("{at}/token_sha3_256"), detail));
    }
    let (actor_id, role) = (actor_id?, role?);
    match together.actors.get(&actor_id.folded()) {
        None => {
            together.actors.insert(actor_id.folded(), (actor_id.clone(), role));
        }
        Some((earlier, _)) if *earlier != actor_id => {
            faults.push(Fault::new(
                format!("{at}/actor_id"),
                "differs from another entry's actor_id only in letter case",
            ));
        }
        Some((_, earlier)) if *earlier != role => {
            faults.push(Fault::new(format!("{at}/roles"), "gives this actor a second role; an actor has exactly one"));
        }
        Some(_) => {}
    }
    Some(Credential { actor: Actor { actor_id, role }, digest: digest? })
}

pub(crate) fn read_actor_id(value: &Value, at: &str, faults: &mut Vec<Fault>) -> Option<ActorId> {
    let read = value
        .as_str()
        .ok_or_else(|| "must be text".to_owned())
        .and_then(|text| text.parse().map_err(|error| format!("{error}")));
    read.map_err(|detail: String| faults.push(Fault::new(at, detail))).ok()
}

fn read_one_role(value: &Value, at: &str, faults: &mut Vec<Fault>) -> Option<Role> {
    let Some([role]) = value.as_array().map(Vec::as_slice) else {
        faults.push(Fault::new(at, "must be an array of exactly one role: a credential cannot combine roles"));
        return None;
    };
    read_role(role, &format!("{at}/0"), faults)
}

pub(crate) fn read_role(value: &Value, at: &str, faults: &mut Vec<Fault>) -> Option<Role> {
    let role = value.as_str().and_then(|text| text.parse().ok());
    if role.is_none() {
        faults.push(Fault::new(at, "must be one of initiator, approver, security_admin, executor, auditor"));
    }
    role
}

fn read_digest(value: &Value, at: &str, faults: &mut Vec<Fault>) -> Option<Digest> {
    let digest = value.as_str().and_then(Digest::from_hex);
    if digest.is_none() {
        faults.push(Fault::new(
            at,
            "must be a SHA3-256 digest: 64 lowercase hexadecimal characters (never the token itself)",
        ));
    }
    digest
}

/// The object's members, when it is one; unknown and missing members are faults.
pub(crate) fn members<'a>(
    value: &'a Value,
    at: &str,
    known: &[&str],
    faults: &mut Vec<Fault>,
) -> Option<&'a Map<String, Value>> {
    members_with_optional(value, at, known, &[], faults)
}

pub(crate) fn members_with_optional<'a>(
    value: &'a Value,
    at: &str,
    required: &[&str],
    optional: &[&str],
    faults: &mut Vec<Fault>,
) -> Option<&'a Map<String, Value>> {
    let Some(object) = value.as_object() else {
        faults.push(Fault::new(at, format!("must be an object with {}", required.join(", "))));
        return None;
    };
    for name in object.keys() {
        if !required.contains(&name.as_str()) && !optional.contains(&name.as_str()) {
            faults
                .push(Fault::new(json::join(at, name), format!("is unknown here; known are {}", required.join(", "))));
        }
    }
    for name in required {
        if !object.contains_key(*name) {
            faults.push(Fault::new(json::join(at, name), "is missing"));
        }
    }
    Some(object)
}
