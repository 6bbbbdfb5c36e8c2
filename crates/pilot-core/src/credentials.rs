//! The credential file: which digest belongs to which actor and role.
//!
//! Read strictly. A file with any fault is refused, faults are listed with their places, and no value is ever printed,
//! because sooner or later someone pastes a clear token into it.
//!
//! Version 1 is the specification's. Version 2 adds a name and a validity period to each credential.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::Value;

use crate::actor::{Actor, ActorId};
use crate::certain::Certain as _;
use crate::digest::Digest;
use crate::fault::{Fault, Faults};
use crate::json::{self, Bounds};
use crate::limits::FILE_VALUES_MAX;
use crate::operator_file::{grouped, members, members_with_optional, read_actor_id, read_role, without_long_names};
use crate::role::Role;
use crate::role_map::RoleMap;
use crate::time::Time;
use crate::token::{Token, find_generated};

mod id;

pub use id::{CredentialId, MalformedCredentialId};

const BOUNDS: Bounds = Bounds { depth: 8, values: FILE_VALUES_MAX };

#[derive(Debug, Clone)]
pub struct Credential {
    pub id: CredentialId,
    pub actor: Actor,
    pub digest: Digest,
    /// It is not accepted before this time.
    pub not_before: Option<Time>,
    /// It is no longer accepted from this time on.
    pub expires_at: Option<Time>,
}

/// The formats of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// Actor, role and digest: the specification's own.
    One,
    /// Also `credential_id`, `not_before` and `expires_at`.
    Two,
}

impl Schema {
    pub const fn version(self) -> u32 {
        match self {
            Schema::One => 1,
            Schema::Two => 2,
        }
    }
}

/// Every credential of a file, in the file's order, and an index to find one by its digest.
#[derive(Debug, Clone)]
pub struct Credentials {
    schema: Schema,
    entries: Vec<Credential>,
    by_digest: Vec<([u8; 32], usize)>,
}

impl Credentials {
    /// Version 1 only.
    pub fn parse(bytes: &[u8]) -> Result<Credentials, Vec<Fault>> {
        Credentials::parse_one_of(
            bytes,
            &[Schema::One],
            "must be the integer 1; version 2 is for the production profile",
        )
    }

    /// Version 2 only.
    pub fn parse_expiring(bytes: &[u8]) -> Result<Credentials, Vec<Fault>> {
        let detail = "must be the integer 2: in production every credential has a credential_id and an expires_at";
        Credentials::parse_one_of(bytes, &[Schema::Two], detail)
    }

    pub fn parse_either(bytes: &[u8]) -> Result<Credentials, Vec<Fault>> {
        Credentials::parse_one_of(bytes, &[Schema::One, Schema::Two], "must be the integer 1 or 2")
    }

    fn parse_one_of(bytes: &[u8], accepted: &[Schema], otherwise: &str) -> Result<Credentials, Vec<Fault>> {
        let value = json::parse(bytes, BOUNDS).map_err(grouped)?;
        let mut faults = Faults::default();
        let schema = value.get("schema_version").and_then(|version| match version.as_u64() {
            Some(1) => Some(Schema::One),
            Some(2) => Some(Schema::Two),
            _ => None,
        });
        let schema = schema.filter(|schema| accepted.contains(schema));
        if schema.is_none() && value.get("schema_version").is_some() {
            faults.push(Fault::new("/schema_version", otherwise));
        }
        let schema = schema.or(accepted.first().copied()).unwrap_or(Schema::One);
        let entries = read_file(&value, schema, &mut faults);
        if faults.is_empty() {
            Ok(Credentials::new(schema, entries))
        } else {
            Err(without_long_names(faults.into_list()))
        }
    }

    pub fn new(schema: Schema, entries: Vec<Credential>) -> Credentials {
        let mut by_digest: Vec<_> =
            entries.iter().enumerate().map(|(index, entry)| (entry.digest.sort_key(), index)).collect();
        by_digest.sort_unstable();
        Credentials { schema, entries, by_digest }
    }

    pub fn none() -> Credentials {
        Credentials::new(Schema::One, Vec::new())
    }

    pub fn schema(&self) -> Schema {
        self.schema
    }

    pub fn entries(&self) -> &[Credential] {
        &self.entries
    }

    /// The position and the credential with this digest. The search uses the leading bytes; the decision is a
    /// constant-time comparison of the whole digest.
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
        let mut faults = Faults::default();
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
        faults.into_list()
    }

    /// With what the role map says about machines: a credential file does not say who operates them.
    #[must_use]
    pub fn operated_as(mut self, map: &RoleMap) -> Credentials {
        let operators: BTreeMap<_, _> =
            map.actors.iter().map(|mapped| (&mapped.actor.actor_id, &mapped.actor.operated_by)).collect();
        for credential in &mut self.entries {
            let operator = operators.get(&credential.actor.actor_id);
            credential.actor.operated_by = operator.and_then(|operator| (*operator).clone());
        }
        self
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
            #[serde(skip_serializing_if = "Option::is_none")]
            credential_id: Option<&'a CredentialId>,
            actor_id: &'a ActorId,
            roles: [Role; 1],
            token_sha3_256: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            not_before: Option<Time>,
            #[serde(skip_serializing_if = "Option::is_none")]
            expires_at: Option<Time>,
        }
        let credentials = self.entries.iter().map(|credential| Entry {
            credential_id: Some(&credential.id).filter(|_| self.schema == Schema::Two),
            actor_id: &credential.actor.actor_id,
            roles: [credential.actor.role],
            token_sha3_256: credential.digest.to_hex(),
            not_before: credential.not_before,
            expires_at: credential.expires_at,
        });
        let file = File { schema_version: self.schema.version(), credentials: credentials.collect() };
        serde_json::to_string_pretty(&file).certain("texts and numbers are JSON") + "\n"
    }
}

impl Credential {
    /// As in version 1: without a name of its own or an expiry.
    pub fn new(actor: Actor, token: &Token) -> Credential {
        Credential::plain(actor, token.digest())
    }

    pub fn plain(actor: Actor, digest: Digest) -> Credential {
        Credential { id: digest.fingerprint().into(), actor, digest, not_before: None, expires_at: None }
    }
}

fn leading(key: &[u8; 32]) -> u64 {
    u64::from_be_bytes(*key.first_chunk().certain("a digest has 32 bytes"))
}

fn read_file(value: &Value, schema: Schema, faults: &mut Faults) -> Vec<Credential> {
    let Some(file) = members(value, "", &["schema_version", "credentials"], faults) else { return Vec::new() };
    let Some(list) = file.get("credentials") else { return Vec::new() };
    let Some(list) = list.as_array() else {
        faults.push(Fault::new("/credentials", "must be an array of credential entries"));
        return Vec::new();
    };
    if list.is_empty() {
        faults.push(Fault::new(
            "/credentials",
            "is empty, so nobody could sign in; add a credential with `pilot credential new`",
        ));
    }
    let mut together = Together::default();
    let mut entries = Vec::with_capacity(list.len());
    for (index, entry) in list.iter().enumerate() {
        let at = format!("/credentials/{index}");
        let credential = match schema {
            Schema::One => read_entry(entry, &at, &ENTRY_OF_ONE, &[], &mut together, faults),
            Schema::Two => read_expiring_entry(entry, &at, &mut together, faults),
        };
        entries.extend(credential);
    }
    refuse_tokens_as_names(&together, faults);
    entries
}

/// Many people see a credential's name, and would see a token in its place.
fn refuse_tokens_as_names(together: &Together, faults: &mut Faults) {
    for (id, index) in together.ids.values() {
        let name = id.as_str().as_bytes();
        if find_generated(name, 0).is_some() || together.digests.contains_key(&Digest::of(name).sort_key()) {
            let detail = "is a token; give the credential another name, and replace the token";
            faults.push(Fault::new(format!("/credentials/{index}/credential_id"), detail));
        }
    }
}

/// What earlier entries have claimed, to find contradictions between entries.
#[derive(Default)]
struct Together {
    digests: HashMap<[u8; 32], usize>,
    actors: HashMap<String, (ActorId, Role)>,
    /// By lowercase name.
    ids: BTreeMap<String, (CredentialId, usize)>,
    count: usize,
}

const ENTRY_OF_ONE: [&str; 3] = ["actor_id", "roles", "token_sha3_256"];
const ENTRY_OF_TWO: [&str; 5] = ["credential_id", "actor_id", "roles", "token_sha3_256", "expires_at"];

fn read_expiring_entry(value: &Value, at: &str, together: &mut Together, faults: &mut Faults) -> Option<Credential> {
    let index = together.count;
    let credential = read_entry(value, at, &ENTRY_OF_TWO, &["not_before"], together, faults);
    let entry = value.as_object()?;
    let id = entry.get("credential_id").and_then(|value| read_id(value, &format!("{at}/credential_id"), faults));
    if let Some(id) = &id
        && let Some((_, earlier)) = together.ids.insert(id.as_str().to_ascii_lowercase(), (id.clone(), index))
    {
        let detail = format!("repeats the name at /credentials/{earlier} (letter case is ignored)");
        faults.push(Fault::new(format!("{at}/credential_id"), detail));
    }
    let mut time = |name: &str| entry.get(name).and_then(|value| read_time(value, &format!("{at}/{name}"), faults));
    let (not_before, expires_at) = (time("not_before"), time("expires_at"));
    if let (Some(not_before), Some(expires_at)) = (not_before, expires_at)
        && expires_at <= not_before
    {
        faults.push(Fault::new(format!("{at}/expires_at"), "must be later than not_before"));
    }
    Some(Credential { id: id?, not_before, expires_at: Some(expires_at?), ..credential? })
}

fn read_id(value: &Value, at: &str, faults: &mut Faults) -> Option<CredentialId> {
    let read = value
        .as_str()
        .ok_or_else(|| "must be a string".to_owned())
        .and_then(|text| text.parse().map_err(|error: MalformedCredentialId| error.to_string()));
    read.map_err(|detail| faults.push(Fault::new(at, detail))).ok()
}

fn read_time(value: &Value, at: &str, faults: &mut Faults) -> Option<Time> {
    let time = value.as_str().and_then(|text| text.parse().ok());
    if time.is_none() {
        faults.push(Fault::new(at, "must be an RFC 3339 time such as 2027-01-31T00:00:00Z"));
    }
    time
}

fn read_entry(
    value: &Value,
    at: &str,
    required: &[&str],
    optional: &[&str],
    together: &mut Together,
    faults: &mut Faults,
) -> Option<Credential> {
    let index = together.count;
    together.count += 1;
    let entry = members_with_optional(value, at, required, optional, faults)?;
    let actor_id = entry.get("actor_id").and_then(|value| read_actor_id(value, &format!("{at}/actor_id"), faults));
    let role = entry.get("roles").and_then(|value| read_one_role(value, &format!("{at}/roles"), faults));
    let digest =
        entry.get("token_sha3_256").and_then(|value| read_digest(value, &format!("{at}/token_sha3_256"), faults));
    if let Some(digest) = &digest
        && let Some(earlier) = together.digests.insert(digest.sort_key(), index)
    {
        let detail = format!("repeats the digest at /credentials/{earlier}/token_sha3_256");
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
    Some(Credential::plain(Actor::new(actor_id, role), digest?))
}

fn read_one_role(value: &Value, at: &str, faults: &mut Faults) -> Option<Role> {
    let Some([role]) = value.as_array().map(Vec::as_slice) else {
        faults.push(Fault::new(at, "must be an array of exactly one role: a credential cannot combine roles"));
        return None;
    };
    read_role(role, &format!("{at}/0"), faults)
}

fn read_digest(value: &Value, at: &str, faults: &mut Faults) -> Option<Digest> {
    let digest = value.as_str().and_then(Digest::from_hex);
    if digest.is_none() {
        faults.push(Fault::new(
            at,
            "must be a SHA3-256 digest: 64 lowercase hexadecimal characters (never the token itself)",
        ));
    }
    digest
}
