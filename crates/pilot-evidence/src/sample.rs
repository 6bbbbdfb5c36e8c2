//! A ledger built by the rules without a store, and bundles of it, for the tests of everything that reads bundles.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::needless_pass_by_value,
    reason = "only tests call this, and they stop at the first surprise"
)]

pub mod cases;
pub mod days;
mod entries;
mod files;
pub mod forgeries;
mod variants;
pub mod vectors;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use pilot_core::actor::Actor;
use pilot_core::decide::{
    ActionRequest, Caller, Content, EditRequest, NewItem, OpenItems, Request, decide, decide_creation,
};
use pilot_core::document::{ContentDigest, Document, DocumentKind};
use pilot_core::entry::details::{ChangedCredentials, Changes, Details, IssuedPermit, Named, Started};
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::{Item, ItemId, WorkflowRef};
use pilot_core::refusal::Refusal;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::Definition;
use pilot_core::workflow::builtin::{CONTROLLED_OPERATION, EMERGENCY_OPERATION, builtin};
use serde_json::{Value, json};

use crate::bundle::{Parts, PeriodParts, Scope, assemble};
use crate::checkpoint::Checkpoint;
use crate::cosignature::CosignerKey;
use crate::merkle::{Hash, root_of};
use crate::note::{Note, NoteKey};
use crate::proof::{Rows, consistency, inclusion, peaks};

/// Chooses a number below the given one. Whoever calls throws the dice.
pub type Choose<'c> = &'c mut dyn FnMut(usize) -> usize;

pub const ORIGIN: &str = "log.example.org";
/// The cast: each with the role their name is approved for.
pub const CAST: [(&str, Role); 7] = [
    ("ana", Role::Initiator),
    ("ida", Role::Initiator),
    ("ben", Role::Approver),
    ("bea", Role::Approver),
    ("sam", Role::SecurityAdmin),
    ("eve", Role::Executor),
    ("ada", Role::Auditor),
];

pub fn key() -> NoteKey {
    NoteKey::generate(ORIGIN, &[42; 32]).unwrap()
}

pub fn actor(name: &str) -> Actor {
    let (_, role) = CAST.iter().find(|(known, _)| *known == name).unwrap();
    Actor::new(name.parse().unwrap(), *role)
}

pub fn as_role(name: &str, role: Role) -> Actor {
    Actor::new(name.parse().unwrap(), role)
}

/// A ledger that grows by the rules or, if a test forces it, against them.
#[derive(Clone)]
pub struct Ledger {
    pub entries: Vec<Vec<u8>>,
    pub documents: BTreeMap<ContentDigest, Vec<u8>>,
    pub items: BTreeMap<ItemId, Item>,
    pub role_maps: Vec<Vec<u8>>,
    pub now: Time,
    /// With their texts.
    definitions: Vec<(Arc<Definition>, String)>,
    made: u32,
}

struct Leaves<'l>(&'l [Hash]);

impl Rows for Leaves<'_> {
    type Error = Infallible;

    fn row(&self, level: u8, start: u64, count: u64) -> Result<Vec<Hash>, Infallible> {
        let span = 1_usize << (level * crate::tile::TILE_HEIGHT);
        let subtree = |at: u64| root_of(&self.0[at as usize * span..(at as usize + 1) * span]);
        Ok((start..start + count).map(subtree).collect())
    }
}

fn head(leaves: &[Hash], size: u64) -> String {
    let root = root_of(&leaves[..size as usize]);
    Checkpoint { origin: ORIGIN.into(), size, root }.sign(&key())
}

/// A checkpoint with one more cosignature.
pub fn cosigned(note: &str, witness: &CosignerKey, seconds: u64) -> String {
    let text = Note::parse(note).unwrap().text;
    format!("{note}{}\n", witness.cosign(text, seconds))
}

impl Default for Ledger {
    fn default() -> Self {
        Ledger::at("2026-11-15T08:00:00Z".parse().unwrap())
    }
}

impl Ledger {
    /// A service that has just started at this time, with a role map of the whole cast.
    pub fn at(now: Time) -> Ledger {
        let mut ledger = Ledger {
            entries: Vec::new(),
            documents: BTreeMap::new(),
            items: BTreeMap::new(),
            role_maps: Vec::new(),
            now,
            definitions: builtin()
                .into_iter()
                .zip([CONTROLLED_OPERATION, EMERGENCY_OPERATION].map(str::to_owned))
                .collect(),
            made: 0,
        };
        ledger.start(Some(&role_map(&CAST)));
        ledger
    }

    /// Adds a definition, which is in force from the next start on, and returns its digest.
    pub fn define(&mut self, text: &str) -> String {
        let definition = Definition::parse(text).unwrap_or_else(|flaws| panic!("{flaws}"));
        let definition = Arc::new(definition);
        let digest = definition.digest().to_string();
        self.definitions.push((definition, text.to_owned()));
        digest
    }
}

pub fn role_map(actors: &[(&str, Role)]) -> Vec<u8> {
    let actors: Vec<_> = actors.iter().map(|(name, role)| json!({"actor_id": name, "role": role})).collect();
    json!({"schema_version": 1, "approved_by": ["chief", "second chief"], "actors": actors}).to_string().into_bytes()
}

/// The whole cast, and a machine.
fn role_map_with_machine(name: &str, role: Role, operated_by: &str) -> Vec<u8> {
    let mut map: Value = serde_json::from_slice(&role_map(&CAST)).unwrap();
    let machine = json!({"actor_id": name, "role": role, "kind": "machine", "operated_by": operated_by,
        "max_open_items": 5.0});
    map["actors"].as_array_mut().unwrap().push(machine);
    map.to_string().into_bytes()
}

impl Ledger {
    pub fn size(&self) -> u64 {
        self.entries.len() as u64
    }

    pub fn pass(&mut self, seconds: u64) {
        self.now = self.now.plus(Duration::from_secs(seconds));
    }

    pub fn start(&mut self, role_map: Option<&[u8]>) {
        let definitions: Vec<_> = self.definitions.iter().map(|(known, _)| WorkflowRef::from(known.as_ref())).collect();
        let started = Started {
            credentials: Changes { added: self.new_credentials(), removed: Vec::new(), count: Some(CAST.len() as u64) },
            definitions,
            permit_keys: Vec::new(),
            previous: (0..self.size()).rev().find(|index| self.read(*index).r#type == EntryType::ServiceStarted),
            role_map: role_map.map(ContentDigest::of_bytes),
            version: "0.1.0".to_owned(),
        };
        self.role_maps.extend(role_map.map(<[u8]>::to_vec));
        self.append(&Entry::of_service(self.size(), self.now, None, &Details::ServiceStarted(started)));
    }

    /// The first start finds one for everyone.
    fn new_credentials(&self) -> Vec<Named> {
        let named = |(number, (name, role)): (usize, &(&str, Role))| Named {
            actor_id: Some(name.parse().unwrap()),
            role: Some(*role),
            credential_id: Some(format!("{name}-1").parse().unwrap()),
            fingerprint: Some(format!("{:016x}", number + 1).parse().unwrap()),
            expires_at: None,
        };
        if self.size() == 0 { CAST.iter().enumerate().map(named).collect() } else { Vec::new() }
    }

    /// From now on the cast has a machine, with a credential of its own.
    pub fn employ(&mut self, machine: &Actor) {
        let Actor { actor_id, role, operated_by } = machine.clone();
        self.start(Some(&role_map_with_machine(actor_id.as_str(), role, operated_by.unwrap().as_str())));
        let fingerprint = Some(format!("{:016x}", CAST.len() + 1).parse().unwrap());
        let named = Named { actor_id: Some(actor_id), role: Some(role), fingerprint, ..Named::default() };
        let changes = Changes { added: vec![named], removed: Vec::new(), count: None };
        let details = Details::CredentialsChanged(ChangedCredentials { credentials: changes });
        self.append(&Entry::of_service(self.size(), self.now, None, &details));
    }

    /// Appends an entry unchecked, whatever the rules say.
    pub fn append(&mut self, entry: &Entry) {
        self.entries.push(entry.to_bytes().unwrap());
        self.pass(1);
    }

    fn keep(&mut self, document: Document) -> ContentDigest {
        self.documents.insert(document.digest.clone(), document.bytes);
        document.digest
    }

    fn nonce(&mut self) -> String {
        self.made += 1;
        format!("{:032x}", self.made)
    }

    fn definition(&self, digest: &str) -> Arc<Definition> {
        Arc::clone(&self.definitions.iter().find(|(known, _)| **known.digest() == *digest).unwrap().0)
    }

    pub fn create(&mut self, workflow: &str, who: &Actor, title: &str, payload: Value) -> Result<ItemId, Refusal> {
        // The latest one is in force.
        let definition =
            Arc::clone(&self.definitions.iter().rfind(|(known, _)| **known.name() == *workflow).unwrap().0);
        let nonce = self.nonce();
        let content = Document::content(title, &payload, &nonce);
        let id: ItemId = format!("01890a5d-ac96-774b-bcce-{:012x}", self.made).parse().unwrap();
        let judged = Content::judge(&definition, title, &payload, content.digest.clone());
        let new = NewItem { id: id.clone(), content: judged };
        let (transition, item) = decide_creation(&definition, &new, who, self.now, OpenItems::default())?;
        self.keep(content);
        self.append(&Entry::of_transition(EntryType::ItemCreated, self.size(), &transition, &item));
        self.items.insert(id.clone(), item);
        Ok(id)
    }

    pub fn edit(&mut self, id: &ItemId, who: &Actor, title: &str, patch: Value) -> Result<(), Refusal> {
        let item = self.items[id].clone();
        let (new_title, payload) = EditRequest::edited(&item, Some(title), Some(&patch));
        let nonce = self.nonce();
        let content = Document::content(&new_title, &payload, &nonce);
        let definition = self.definition(&item.workflow.digest);
        let judged = Content::judge(&definition, &new_title, &payload, content.digest.clone());
        let request = EditRequest { content: Some(judged), made_from: item.content_digest.clone(), if_match: None };
        let caller = Caller::Actor(who.clone());
        let transition = decide(&definition, &item, &Request::Edit(request), &caller, self.now)?;
        let item = item.after(&transition);
        self.keep(content);
        self.append(&Entry::of_transition(EntryType::ItemEdited, self.size(), &transition, &item));
        self.items.insert(id.clone(), item);
        Ok(())
    }

    pub fn act(&mut self, id: &ItemId, who: &Actor, action: &str, comment: &str, inputs: Value) -> Result<(), Refusal> {
        let item = self.items[id].clone();
        let request = ActionRequest {
            action: action.into(),
            content_digest: Some(item.content_digest.to_string()),
            comment: (!comment.is_empty()).then(|| comment.to_owned()),
            inputs: (!inputs.is_null()).then(|| inputs.clone()),
            if_match: None,
        };
        let definition = self.definition(&item.workflow.digest);
        let caller = Caller::Actor(who.clone());
        let transition = decide(&definition, &item, &Request::Act(request), &caller, self.now)?;
        let item = item.after(&transition);
        let entry = self.entry_of(comment, &inputs, &transition, &item);
        self.append(&entry);
        self.items.insert(id.clone(), item);
        Ok(())
    }

    fn entry_of(
        &mut self,
        comment: &str,
        inputs: &Value,
        transition: &pilot_core::decide::Transition,
        item: &Item,
    ) -> Entry {
        let (one, other) = (self.nonce(), self.nonce());
        let comment = (!comment.is_empty()).then(|| self.keep(Document::comment(comment, &one)));
        let inputs = (!inputs.is_null()).then(|| self.keep(Document::inputs(inputs, &other)));
        let entry = Entry::of_transition(EntryType::ItemTransition, self.size(), transition, item);
        Entry { comment, inputs, ..entry }
    }

    pub fn remark(&mut self, id: &ItemId, who: &Actor, text: &str) {
        let nonce = self.nonce();
        let comment = self.keep(Document::comment(text, &nonce));
        let entry = Entry::of_comment(self.size(), self.now, who, &self.items[id], comment);
        self.append(&entry);
    }

    /// Records a permit token for someone, unchecked, that expires after this many seconds.
    pub fn issue_permit(&mut self, id: &ItemId, who: &Actor, seconds: u64) {
        let expires_at = self.now.plus(Duration::from_secs(seconds));
        let issued = IssuedPermit { audience: "vault".into(), expires_at, jti: "j".into(), key_id: "k".into() };
        let entry = Entry::of_permit(self.size(), self.now, who, &self.items[id], issued);
        self.append(&entry);
    }

    /// Lets a timer move the item, if something is due.
    pub fn expire(&mut self, id: &ItemId) -> Result<(), Refusal> {
        let item = self.items[id].clone();
        let definition = self.definition(&item.workflow.digest);
        let transition = decide(&definition, &item, &Request::Timer, &Caller::Timer, self.now)?;
        let item = item.after(&transition);
        self.append(&Entry::of_transition(EntryType::ItemTransition, self.size(), &transition, &item));
        self.items.insert(id.clone(), item);
        Ok(())
    }

    /// Writes an entry about an item as if the rules had allowed it, based on the item's last one.
    pub fn force(&mut self, id: &ItemId, who: Option<&Actor>, change: impl FnOnce(&mut Entry)) {
        let about = |bytes: &&Vec<u8>| {
            let entry: Entry = serde_json::from_slice(bytes).unwrap();
            entry.item.as_ref() == Some(id) && entry.r#type.is_version()
        };
        let last: Entry = serde_json::from_slice(self.entries.iter().rev().find(about).unwrap()).unwrap();
        let mut entry = Entry {
            action: None,
            actor_id: who.map(|who| who.actor_id.clone()),
            role: who.map(|who| who.role),
            operated_by: who.and_then(|who| who.operated_by.clone()),
            at: self.now,
            from: last.to.clone(),
            index: self.size(),
            version: last.version.map(|version| version + 1),
            r#type: EntryType::ItemTransition,
            comment: None,
            inputs: None,
            ..last
        };
        change(&mut entry);
        entry.v = entry.format();
        self.append(&entry);
    }

    /// One operation from draft to its end.
    pub fn whole_operation(&mut self, title: &str, risk: &str) -> ItemId {
        let id = self.create("controlled-operation", &actor("ana"), title, payload(risk)).unwrap();
        let mut act = |who: &str, action: &str, comment: &str, inputs: Value| {
            self.act(&id, &actor(who), action, comment, inputs).unwrap();
        };
        act("ana", "submit", "", Value::Null);
        act("ben", "approve", "read twice", Value::Null);
        if risk == "high" {
            act("bea", "approve", "", Value::Null);
        }
        act("sam", "clear", "", json!({"not_after": "2026-11-20T00:00:00Z"}));
        act("eve", "start", "", Value::Null);
        act("eve", "heartbeat", "", Value::Null);
        act("eve", "succeed", "", json!({"result": "rotated, old key destroyed"}));
        act("bea", "accept", "as planned", Value::Null);
        id
    }

    fn leaves(&self) -> Vec<Hash> {
        self.entries.iter().map(|bytes| Hash::of_leaf(bytes)).collect()
    }

    pub fn read(&self, index: u64) -> Entry {
        serde_json::from_slice(&self.entries[index as usize]).unwrap()
    }

    /// The starts in force at these entries.
    fn starts_before(&self, indices: &BTreeSet<u64>) -> BTreeSet<u64> {
        let is_start = |index: &u64| self.read(*index).r#type == EntryType::ServiceStarted;
        let starts: Vec<u64> = (0..self.size()).filter(is_start).collect();
        let before = |index: &u64| starts.iter().rev().find(|start| *start < index).copied();
        indices.iter().filter_map(before).collect()
    }

    fn parts(&self, scope: Scope, indices: &BTreeSet<u64>, proved: &BTreeSet<u64>) -> Parts {
        let leaves = self.leaves();
        let checkpoint = head(&leaves, self.size());
        let entries: Vec<_> = indices.iter().map(|index| self.read(*index)).collect();
        let named = entries.iter().flat_map(Entry::documents);
        let pins: BTreeSet<_> = named.filter(|(kind, _)| *kind == DocumentKind::RoleMap).map(|(_, pin)| pin).collect();
        let is_pinned = |bytes: &&Vec<u8>| pins.contains(&ContentDigest::of_bytes(bytes));
        let period = match scope {
            Scope::Item(_) => None,
            Scope::Period { first, end, .. } => Some(PeriodParts {
                from: head(&leaves, first),
                to: head(&leaves, end),
                edge: peaks(&Leaves(&leaves), first).unwrap(),
                consistency: consistency(&Leaves(&leaves), end, self.size()).unwrap(),
            }),
        };
        let touched: BTreeSet<_> = self.touched(&scope);
        let of_items = entries.iter().filter(|entry| entry.item.as_ref().is_some_and(|id| touched.contains(id)));
        let digests = of_items.clone().flat_map(|entry| [&entry.content, &entry.comment, &entry.inputs]).flatten();
        let digests: BTreeSet<_> = digests.collect();
        let definitions: BTreeSet<_> = of_items.filter_map(|entry| entry.definition.as_deref()).collect();
        let named = self.definitions.iter();
        Parts {
            scope,
            made: self.now,
            period,
            entries: indices.iter().map(|index| self.entries[*index as usize].clone()).collect(),
            documents: digests.into_iter().filter_map(|digest| self.documents.get(digest).cloned()).collect(),
            definitions: named
                .filter(|(definition, _)| definitions.contains(&**definition.digest()))
                .map(|(_, text)| text.clone())
                .collect(),
            role_maps: self.role_maps.iter().filter(is_pinned).cloned().collect::<BTreeSet<_>>().into_iter().collect(),
            proofs: proved
                .iter()
                .map(|index| (*index, inclusion(&Leaves(&leaves), *index, self.size()).unwrap()))
                .collect(),
            checkpoint,
            kept: Vec::new(),
            timestamps: Vec::new(),
            absent: BTreeMap::new(),
            report: None,
        }
    }

    /// A checkpoint of an earlier size that a witness has cosigned, with the proof that the log has continued it.
    pub fn kept(&self, size: u64, witness: &CosignerKey, seconds: u64) -> (u64, String, Option<Vec<Hash>>) {
        let leaves = self.leaves();
        let proof = consistency(&Leaves(&leaves), size, self.size()).unwrap();
        (size, cosigned(&head(&leaves, size), witness, seconds), Some(proof))
    }

    fn touched(&self, scope: &Scope) -> BTreeSet<ItemId> {
        match scope {
            Scope::Item(id) => BTreeSet::from([id.clone()]),
            Scope::Period { first, end, .. } => (*first..*end).filter_map(|index| self.read(index).item).collect(),
        }
    }

    /// Everything about one item.
    pub fn item_parts(&self, id: &ItemId) -> Parts {
        let about = |index: &u64| self.read(*index).item.as_ref() == Some(id);
        let own: BTreeSet<u64> = (0..self.size()).filter(about).collect();
        let starts = self.starts_before(&own);
        let all = own.union(&starts).copied().collect();
        self.parts(Scope::Item(id.clone()), &all, &all)
    }

    /// Everything from one entry to another.
    pub fn period_parts(&self, first: u64, end: u64) -> Parts {
        let at = |index| if index == self.size() { self.now } else { self.read(index).at };
        let (from, to) = (if first == 0 { Time::EPOCH } else { at(first) }, at(end));
        let scope = Scope::Period { from, to, first, end };
        let touched = self.touched(&scope);
        let earlier = (0..first).filter(|index| self.read(*index).item.is_some_and(|id| touched.contains(&id)));
        let mut all: BTreeSet<u64> = earlier.chain(first..end).collect();
        all.extend(self.starts_before(&all));
        all.extend(first.checked_sub(1));
        all.extend(Some(end).filter(|end| *end < self.size()));
        let proved = all.iter().copied().filter(|index| !(first..end).contains(index)).collect();
        self.parts(scope, &all, &proved)
    }

    pub fn item_bundle(&self, id: &ItemId) -> Vec<u8> {
        assemble(&self.item_parts(id), &key()).unwrap()
    }

    pub fn period_bundle(&self, first: u64, end: u64) -> Vec<u8> {
        assemble(&self.period_parts(first, end), &key()).unwrap()
    }
}

pub fn payload(risk: &str) -> Value {
    json!({
        "purpose": "Rotate the signing key of the release pipeline",
        "operation": {"run": "rotate-key --slot 2", "host": "hsm-1"},
        "risk": risk,
        "rollback_plan": "Activate slot 1 again",
        "targets": ["hsm-1", "hsm-2"],
    })
}

pub fn emergency_payload() -> Value {
    json!({
        "purpose": "Stop the leak",
        "operation": "close-valve 7",
        "risk": "high",
        "rollback_plan": "Open it again",
        "incident": "INC-4711",
    })
}

/// A ledger with operations in every stage of their life, two starts, remarks and a deadline.
pub fn small_ledger() -> Ledger {
    let mut ledger = Ledger::default();
    ledger.whole_operation("Rotate the signing key", "high");
    let returned = ledger.create("controlled-operation", &actor("ida"), "Open port 8443", payload("low")).unwrap();
    ledger.act(&returned, &actor("ida"), "submit", "", Value::Null).unwrap();
    ledger.act(&returned, &actor("ben"), "return", "Which hosts? <b>Name them</b>.", Value::Null).unwrap();
    ledger.start(Some(&role_map(&CAST)));
    ledger.edit(&returned, &actor("ida"), "Open port 8443 on two hosts", json!({"targets": ["a", "b"]})).unwrap();
    ledger.remark(&returned, &actor("ada"), "Seen by audit");
    ledger.act(&returned, &actor("ida"), "submit", "", Value::Null).unwrap();
    ledger.act(&returned, &actor("bea"), "reject", "Not this quarter", Value::Null).unwrap();
    let late = ledger.create("controlled-operation", &actor("ana"), "Never looked at", payload("low")).unwrap();
    ledger.act(&late, &actor("ana"), "submit", "", Value::Null).unwrap();
    ledger.pass(73 * 3600);
    ledger.expire(&late).unwrap();
    ledger
}
