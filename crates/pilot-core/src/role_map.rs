//! The jointly approved role map: the list of people and machines, agreed on by several people, that credentials must
//! match.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::actor::{Actor, ActorId};
use crate::certain::Certain as _;
use crate::fault::{Fault, Faults};
use crate::json::{self, Bounds};
use crate::limits::{FILE_VALUES_MAX, MACHINE_OPEN_ITEMS, MACHINE_OPEN_ITEMS_MAX, SUBJECT_CHARS_MAX};
use crate::operator_file::{
    check_schema_version, grouped, members, members_with_optional, read_actor_id, read_role, without_long_names,
};
use crate::role::Role;

/// The old authority, the new one, and some to spare.
const ISSUERS_MAX: usize = 4;
const BOUNDS: Bounds = Bounds { depth: 8, values: FILE_VALUES_MAX };

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    #[default]
    Human,
    Machine,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MappedActor {
    #[serde(flatten)]
    pub actor: Actor,
    pub kind: Kind,
    /// How many items that have not ended a machine may have created; if absent, [`MACHINE_OPEN_ITEMS`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_open_items: Option<u32>,
    /// What an identity provider or a certificate calls this actor; if absent, the `actor_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The authorities that may call anyone by that subject: an identity provider, or issuers of certificates. If absent,
    /// any that the service trusts.
    #[serde(rename = "issuer", skip_serializing_if = "Vec::is_empty", serialize_with = "one_or_several")]
    pub issuers: Vec<String>,
}

impl MappedActor {
    pub fn subject(&self) -> &str {
        self.subject.as_deref().unwrap_or(self.actor.actor_id.as_str())
    }

    /// A person decides for themselves how much to propose.
    pub fn open_items_max(&self) -> Option<u32> {
        match self.kind {
            Kind::Human => None,
            Kind::Machine => Some(self.max_open_items.unwrap_or(MACHINE_OPEN_ITEMS)),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoleMap {
    pub schema_version: u32,
    pub approved_by: Vec<String>,
    pub actors: Vec<MappedActor>,
}

impl RoleMap {
    pub fn empty() -> RoleMap {
        RoleMap { schema_version: 1, approved_by: Vec::new(), actors: Vec::new() }
    }

    pub fn parse(bytes: &[u8]) -> Result<RoleMap, Vec<Fault>> {
        let value = json::parse(bytes, BOUNDS).map_err(grouped)?;
        let mut faults = Faults::default();
        let map = read_map(&value, &mut faults);
        if faults.is_empty() { Ok(map) } else { Err(without_long_names(faults.into_list())) }
    }

    pub fn role_of(&self, actor_id: &ActorId) -> Option<Role> {
        self.actors.iter().find(|mapped| mapped.actor.actor_id == *actor_id).map(|mapped| mapped.actor.role)
    }

    pub fn find(&self, actor_id: &ActorId) -> Option<&MappedActor> {
        self.actors.iter().find(|mapped| mapped.actor.actor_id == *actor_id)
    }

    /// What this map gives machines that the rules of separation do not expect of them: each with its place, what to
    /// change, and why.
    pub fn loose_machines(&self) -> Vec<Fault> {
        let machines = self.actors.iter().enumerate().filter(|(_, mapped)| mapped.kind == Kind::Machine);
        let faults = machines.flat_map(|(index, mapped)| {
            let at = format!("/actors/{index}");
            let decides = [Role::Approver, Role::SecurityAdmin].contains(&mapped.actor.role).then(|| {
                let detail = format!("is {}, but a machine cannot decide for people; give the role to a person", mapped.actor.role);
                Fault::new(format!("{at}/role"), detail)
            });
            let nobodys = mapped.actor.operated_by.is_none().then(|| {
                let detail = "is missing: name the person in this map who answers for this machine, so that the two count as one";
                Fault::new(format!("{at}/operated_by"), detail)
            });
            [decides, nobodys].into_iter().flatten()
        });
        grouped(faults.collect())
    }

    pub fn kind_of(&self, actor_id: &ActorId) -> Option<Kind> {
        self.actors.iter().find(|mapped| mapped.actor.actor_id == *actor_id).map(|mapped| mapped.kind)
    }

    /// The actor that an identity provider or a certificate means. Only the role map makes anyone an actor, and it says
    /// whose word counts for whom: one authority must not be able to name another one's people.
    pub fn actor_named(&self, subject: &str, issuer: &str) -> Option<&MappedActor> {
        let mapped = self.actors.iter().find(|mapped| mapped.subject() == subject)?;
        Some(mapped).filter(|mapped| mapped.issuers.is_empty() || mapped.issuers.iter().any(|only| only == issuer))
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).certain("texts and numbers are JSON") + "\n"
    }
}

fn read_map(value: &Value, faults: &mut Faults) -> RoleMap {
    let mut map = RoleMap::empty();
    let Some(file) = members(value, "", &["schema_version", "approved_by", "actors"], faults) else { return map };
    check_schema_version(file, faults);
    if let Some(names) = file.get("approved_by") {
        map.approved_by = read_names(names, "/approved_by", faults);
    }
    match file.get("actors").map(Value::as_array) {
        Some(Some(list)) => {
            let mut folded = BTreeMap::new();
            let mut subjects = BTreeMap::new();
            for (index, entry) in list.iter().enumerate() {
                let at = format!("/actors/{index}");
                let Some(actor) = read_actor(entry, &at, faults) else { continue };
                if let Some(earlier) = folded.insert(actor.actor.actor_id.folded(), index) {
                    let detail = format!("repeats the actor at /actors/{earlier} (letter case is ignored)");
                    faults.push(Fault::new(format!("{at}/actor_id"), detail));
                } else if let Some(earlier) = subjects.insert(actor.subject().to_owned(), index) {
                    let detail =
                        format!("repeats the subject at /actors/{earlier}; a subject identifies exactly one actor");
                    faults.push(Fault::new(format!("{at}/subject"), detail));
                }
                map.actors.push(actor);
            }
            check_operators(&map, faults);
        }
        Some(None) => faults.push(Fault::new("/actors", "must be an array of actors")),
        None => {}
    }
    map
}

/// An operator is a person of this map, by exactly this name: a slip here would silently make two people of one.
fn check_operators(map: &RoleMap, faults: &mut Faults) {
    let kinds: BTreeMap<_, _> = map.actors.iter().map(|mapped| (&mapped.actor.actor_id, mapped.kind)).collect();
    for (index, mapped) in map.actors.iter().enumerate() {
        let at = |name: &str| format!("/actors/{index}/{name}");
        if mapped.kind == Kind::Human && mapped.max_open_items.is_some() {
            faults.push(Fault::new(at("max_open_items"), "is for machines; this actor is human"));
        }
        let Some(operator) = &mapped.actor.operated_by else { continue };
        let wrong = match (mapped.kind, kinds.get(operator)) {
            (Kind::Human, _) => "is for machines; this actor is human",
            (Kind::Machine, None) => {
                "names nobody in this map; add the person, or correct the name (letter case counts)"
            }
            (Kind::Machine, Some(Kind::Machine)) => "names a machine; name the person who answers for both",
            (Kind::Machine, Some(Kind::Human)) => continue,
        };
        faults.push(Fault::new(at("operated_by"), wrong));
    }
}

fn read_names(value: &Value, at: &str, faults: &mut Faults) -> Vec<String> {
    let Some(list) = value.as_array() else {
        faults.push(Fault::new(at, "must be an array with the names of those who approved this map"));
        return Vec::new();
    };
    let mut names: Vec<String> = Vec::new();
    for (index, name) in list.iter().enumerate() {
        match name.as_str().filter(|name| !name.trim().is_empty()) {
            None => faults.push(Fault::new(format!("{at}/{index}"), "must be the name of a person")),
            Some(name) if names.iter().any(|earlier| earlier.eq_ignore_ascii_case(name)) => {
                faults.push(Fault::new(format!("{at}/{index}"), "repeats a name; each person approves once"));
            }
            Some(name) => names.push(name.to_owned()),
        }
    }
    names
}

const OPTIONAL: [&str; 5] = ["kind", "operated_by", "max_open_items", "subject", "issuer"];

fn read_actor(value: &Value, at: &str, faults: &mut Faults) -> Option<MappedActor> {
    let entry = members_with_optional(value, at, &["actor_id", "role"], &OPTIONAL, faults)?;
    let actor_id = entry.get("actor_id").and_then(|value| read_actor_id(value, &format!("{at}/actor_id"), faults));
    let role = entry.get("role").and_then(|value| read_role(value, &format!("{at}/role"), faults));
    let kind = match entry.get("kind").map(Value::as_str) {
        None | Some(Some("human")) => Kind::Human,
        Some(Some("machine")) => Kind::Machine,
        Some(_) => {
            faults.push(Fault::new(format!("{at}/kind"), "must be human or machine"));
            Kind::Human
        }
    };
    let subject = entry.get("subject").and_then(|value| read_name(value, &format!("{at}/subject"), faults));
    let issuers = entry.get("issuer").map(|value| read_issuers(value, &format!("{at}/issuer"), faults));
    let issuers = issuers.unwrap_or_default();
    let operated_by =
        entry.get("operated_by").and_then(|value| read_actor_id(value, &format!("{at}/operated_by"), faults));
    let max_open_items =
        entry.get("max_open_items").and_then(|value| read_open_items(value, &format!("{at}/max_open_items"), faults));
    let actor = Actor { actor_id: actor_id?, role: role?, operated_by };
    Some(MappedActor { actor, kind, max_open_items, subject, issuers })
}

fn read_open_items(value: &Value, at: &str, faults: &mut Faults) -> Option<u32> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    let number = number.filter(|number| (1..=MACHINE_OPEN_ITEMS_MAX).contains(number));
    if number.is_none() {
        faults.push(Fault::new(at, format!("must be a whole number from 1 to {MACHINE_OPEN_ITEMS_MAX}")));
    }
    number
}

/// One name, or several while one authority follows another.
fn read_issuers(value: &Value, at: &str, faults: &mut Faults) -> Vec<String> {
    let Some(list) = value.as_array() else { return read_name(value, at, faults).into_iter().collect() };
    if !(1..=ISSUERS_MAX).contains(&list.len()) {
        faults.push(Fault::new(at, format!("must be a name, or an array of 1 to {ISSUERS_MAX} names")));
    }
    list.iter().enumerate().filter_map(|(index, name)| read_name(name, &format!("{at}/{index}"), faults)).collect()
}

fn one_or_several<S: Serializer>(issuers: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    match issuers {
        [only] => only.serialize(serializer),
        several => several.serialize(serializer),
    }
}

fn read_name(value: &Value, at: &str, faults: &mut Faults) -> Option<String> {
    let is_usable = |text: &&str| (1..=SUBJECT_CHARS_MAX).contains(&text.chars().count()) && text.trim() == *text;
    let name = value.as_str().filter(is_usable).filter(|text| !text.chars().any(char::is_control));
    if name.is_none() {
        let detail = format!("must be 1 to {SUBJECT_CHARS_MAX} characters without a space at either end");
        faults.push(Fault::new(at, detail));
    }
    name.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn an_actor_with_an_issuer_is_named_by_that_one_and_nobody_else() {
        let actors = r#"[{"actor_id": "ana", "role": "initiator", "subject": "CN=ana", "issuer": "CN=Ours"},
            {"actor_id": "ben", "role": "approver"},
            {"actor_id": "cyd", "role": "auditor", "issuer": ["CN=Ours", "CN=Ours 2"]}]"#;
        let text = format!(r#"{{"schema_version": 1, "approved_by": ["Ina", "Jo"], "actors": {actors}}}"#);
        let map = RoleMap::parse(text.as_bytes()).unwrap();
        let named = |subject, issuer| map.actor_named(subject, issuer).map(|mapped| mapped.actor.actor_id.as_str());
        assert_eq!(named("CN=ana", "CN=Ours"), Some("ana"));
        assert_eq!(named("CN=ana", "CN=Partner"), None);
        assert_eq!(named("ana", "CN=Ours"), None, "an actor with a subject is not called by its id");
        assert_eq!(named("ben", "CN=Partner"), Some("ben"));
        assert_eq!(
            ["CN=Ours", "CN=Ours 2", "CN=Partner"].map(|issuer| named("cyd", issuer).is_some()),
            [true, true, false]
        );
        assert_eq!(RoleMap::parse(map.to_json().as_bytes()).unwrap(), map);
    }

    fn parsed(actors: &str) -> Result<RoleMap, Vec<Fault>> {
        RoleMap::parse(
            format!(r#"{{"schema_version": 1, "approved_by": ["Ina", "Jo"], "actors": {actors}}}"#).as_bytes(),
        )
    }

    fn listed(faults: &[Fault]) -> String {
        faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_machine_is_operated_by_a_person_of_the_map_and_only_a_machine_is() {
        let map = parsed(
            r#"[{"actor_id": "ana", "role": "approver"},
            {"actor_id": "bot", "role": "initiator", "kind": "machine", "operated_by": "ana", "max_open_items": 2},
            {"actor_id": "run", "role": "executor", "kind": "machine", "operated_by": "ana"}]"#,
        )
        .unwrap();
        let bot = map.find(&"bot".parse().unwrap()).unwrap();
        assert_eq!((bot.actor.person().as_str(), bot.open_items_max()), ("ana", Some(2)));
        assert_eq!(map.find(&"run".parse().unwrap()).unwrap().open_items_max(), Some(MACHINE_OPEN_ITEMS));
        assert_eq!(map.find(&"ana".parse().unwrap()).unwrap().open_items_max(), None);
        assert_eq!(RoleMap::parse(map.to_json().as_bytes()).unwrap(), map);
        assert!(map.loose_machines().is_empty());
        let wrong = parsed(
            r#"[{"actor_id": "ana", "role": "approver", "operated_by": "ben", "max_open_items": 3},
            {"actor_id": "bot", "role": "initiator", "kind": "machine", "operated_by": "Ana"},
            {"actor_id": "ci", "role": "initiator", "kind": "machine", "operated_by": "bot"},
            {"actor_id": "cd", "role": "initiator", "kind": "machine", "operated_by": 7, "max_open_items": 0}]"#,
        );
        expect![[r#"
            /actors/3/operated_by: must be a string
            /actors/3/max_open_items: must be a whole number from 1 to 1000
            /actors/0/max_open_items: is for machines; this actor is human
            /actors/0/operated_by: is for machines; this actor is human
            /actors/1/operated_by: names nobody in this map; add the person, or correct the name (letter case counts)
            /actors/2/operated_by: names a machine; name the person who answers for both"#]]
        .assert_eq(&listed(&wrong.unwrap_err()));
    }

    #[test]
    fn a_machine_that_decides_or_that_nobody_answers_for_is_named_with_what_to_change() {
        let map = parsed(
            r#"[{"actor_id": "ana", "role": "approver"}, {"actor_id": "bot", "role": "approver", "kind": "machine"},
            {"actor_id": "run", "role": "executor", "kind": "machine"}]"#,
        );
        expect![[r#"
            /actors/1/role: is approver, but a machine cannot decide for people; give the role to a person
            /actors/1/operated_by: is missing: name the person in this map who answers for this machine, so that the two count as one
            /actors/2/operated_by: is missing: name the person in this map who answers for this machine, so that the two count as one"#]].assert_eq(&listed(&map.unwrap().loose_machines()));
    }

    #[test]
    fn a_token_pasted_as_a_name_is_not_repeated() {
        let token = "0123456789abcdef0123456789abcdef";
        let text = format!("{{\"schema_version\":1,\"approved_by\":[],\"actors\":[],\"{token}\":1}}");
        let faults = RoleMap::parse(text.as_bytes()).unwrap_err();
        assert_eq!(faults.first().map(|fault| fault.pointer.as_str()), Some("/(long name)"));
        let twice = format!("{{\"{token}\":1,\"{token}\":1}}");
        assert!(!format!("{:?}", RoleMap::parse(twice.as_bytes())).contains(token));
    }
}
