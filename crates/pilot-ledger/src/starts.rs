//! Every start is an entry: the program, the rules, the role map, and which credentials changed since the previous
//! start. Each start names the previous one, so that a verifier of an entry finds what was in force.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pilot_core::credentials::CredentialId;
use pilot_core::document::{Document, sha256_of_canonical};
use pilot_core::entry::Entry;
use pilot_core::entry::details::{ChangedCredentials, Changes, Details, Started};
use pilot_core::item::WorkflowRef;
use pilot_setup::error::StartError;
use pilot_store::{Fact, NoRecord, Outcome, Record, Situation, Store, StoreError, StoredEntry, Subject, Write};
use serde::{Deserialize, Serialize};

use crate::persisted;
use crate::register::{self, NamedCredential};
use crate::workflows::Workflows;

/// What a start leaves for the next one, in addition to the known credentials.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct LastStart {
    /// The index of its entry.
    #[serde(default)]
    index: Option<u64>,
    /// Whether the log's checkpoint was stored outside the database. Once it was, it must be there.
    #[serde(default)]
    pub second_place: bool,
}

impl LastStart {
    /// The fact's name.
    pub const FACT: &str = "start";

    pub async fn read(store: &dyn Store) -> Result<LastStart, StoreError> {
        match store.fact(LastStart::FACT).await? {
            Some(bytes) => LastStart::parse(&bytes),
            None => Ok(LastStart::default()),
        }
    }

    pub fn parse(bytes: &[u8]) -> Result<LastStart, StoreError> {
        persisted::from_bytes("what the last start left", bytes)
    }
}

/// Every credential there ever was, one fact each, by fingerprint.
const KNOWN: &str = "credential/known/";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    named: NamedCredential,
    /// Whether it was present at the last start.
    is_present: bool,
}

/// What earlier starts recorded about credentials.
#[derive(Debug, Default)]
pub struct KnownCredentials {
    by_fingerprint: BTreeMap<CredentialId, Known>,
    /// From an older program, which stored all of them in one fact: this start rewrites them.
    is_whole: bool,
}

impl KnownCredentials {
    pub async fn read(store: &dyn Store) -> Result<KnownCredentials, StoreError> {
        /// As an older program stored them, with the last start.
        #[derive(Default, Deserialize)]
        struct Whole {
            #[serde(default)]
            credentials: BTreeSet<NamedCredential>,
            #[serde(default)]
            former: BTreeSet<NamedCredential>,
        }
        let whole: Whole = match store.fact(LastStart::FACT).await? {
            Some(bytes) => persisted::from_bytes("what the last start left", &bytes)?,
            None => Whole::default(),
        };
        let is_whole = !whole.credentials.is_empty() || !whole.former.is_empty();
        let old = whole.former.into_iter().map(|named| (named, false));
        let old = old.chain(whole.credentials.into_iter().map(|named| (named, true)));
        let mut by_fingerprint: BTreeMap<_, _> =
            old.map(|(named, is_present)| (named.fingerprint.clone(), Known { named, is_present })).collect();
        for (name, value) in store.facts(KNOWN).await? {
            let known: Known = persisted::from_bytes(&format!("the fact `{name}`"), &value)?;
            by_fingerprint.insert(known.named.fingerprint.clone(), known);
        }
        Ok(KnownCredentials { by_fingerprint, is_whole })
    }

    /// Every credential there ever was, except those present.
    pub fn former(&self, present: &BTreeSet<NamedCredential>) -> BTreeSet<NamedCredential> {
        let present: BTreeSet<_> = present.iter().map(|named| &named.fingerprint).collect();
        let known = self.by_fingerprint.values().map(|known| &known.named);
        known.filter(|named| !present.contains(&named.fingerprint)).cloned().collect()
    }

    /// What has changed since the last start, ordered by fingerprint.
    fn changes(&self, present: &BTreeSet<NamedCredential>) -> Vec<Change> {
        let mut changes: BTreeMap<&CredentialId, Change> = BTreeMap::new();
        for (fingerprint, known) in self.by_fingerprint.iter().filter(|(_, known)| known.is_present) {
            changes.insert(fingerprint, Change { removed: Some(known.named.clone()), added: None });
        }
        for named in present {
            let change = changes.entry(&named.fingerprint).or_insert(Change { removed: None, added: None });
            if change.removed.as_ref() == Some(named) {
                changes.remove(&named.fingerprint);
            } else {
                change.added = Some(named.clone());
            }
        }
        changes.into_values().collect()
    }

    /// One fact each, if an older program stored them in one.
    fn divided(&self) -> Vec<Fact> {
        if !self.is_whole {
            return Vec::new();
        }
        self.by_fingerprint.values().map(|known| fact(&known.named, known.is_present)).collect()
    }
}

fn fact(named: &NamedCredential, is_present: bool) -> Fact {
    let known = Known { named: named.clone(), is_present };
    Fact { name: format!("{KNOWN}{}", named.fingerprint), value: Some(persisted::to_bytes(&known)) }
}

/// One credential that was added, removed or changed.
struct Change {
    removed: Option<NamedCredential>,
    added: Option<NamedCredential>,
}

impl Change {
    fn bytes(&self) -> usize {
        self.removed.iter().chain(&self.added).map(bytes_of).sum()
    }

    fn fact(&self) -> Option<Fact> {
        let gone = || self.removed.as_ref().map(|named| fact(named, false));
        self.added.as_ref().map(|named| fact(named, true)).or_else(gone)
    }
}

/// What this start brings.
pub struct Starting {
    pub credentials: BTreeSet<NamedCredential>,
    pub role_map: Option<Document>,
    /// The keys published for permit tokens; the first signs.
    pub permit_keys: Vec<String>,
    /// Whether to put another configuration in force than the one that the nodes of this ledger share.
    pub adopt: bool,
}

/// The configuration in force, of a ledger that several nodes share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Configuration {
    /// Over credentials, role map, definitions and the keys for permit tokens.
    digest: String,
    /// The start that adopted it.
    index: u64,
}

impl Configuration {
    /// The fact's name.
    const FACT: &str = "configuration";

    fn parse(bytes: &[u8]) -> Result<Configuration, StoreError> {
        persisted::from_bytes("the configuration in force", bytes)
    }

    fn digest_of(starting: &Starting, definitions: &[WorkflowRef]) -> String {
        let role_map = starting.role_map.as_ref().map(|document| &document.digest);
        let keys = &starting.permit_keys;
        // Ledgers without such keys have a digest from before there were any.
        if keys.is_empty() {
            return sha256_of_canonical(&(&starting.credentials, definitions, role_map));
        }
        sha256_of_canonical(&(&starting.credentials, definitions, role_map, keys))
    }
}

/// Whether no other node is alive: then this one decides, as it would with a ledger of its own. One that was just killed
/// counts as alive for a moment.
async fn is_alone(store: &dyn Store) -> bool {
    for _ in 0..20 {
        if store.is_alone() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    false
}

/// How a start relates to the configuration in force.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Joining {
    /// This ledger has no other nodes.
    Alone,
    /// It is the one in force.
    Same(Configuration),
    /// It becomes the one in force, in place of this one.
    Adopting { digest: String, before: Option<Configuration> },
}

impl Joining {
    async fn find(store: &dyn Store, starting: &Starting, definitions: &[WorkflowRef]) -> Result<Joining, StartError> {
        if !store.is_shared() {
            return Ok(Joining::Alone);
        }
        let digest = Configuration::digest_of(starting, definitions);
        let found = store.fact(Configuration::FACT).await?;
        match found.map(|bytes| Configuration::parse(&bytes)).transpose()? {
            Some(found) if found.digest == digest => Ok(Joining::Same(found)),
            Some(found) if !starting.adopt && !is_alone(store).await => Err(StartError::Refused(format!(
                "this node's credentials, role map, definitions or permit.key are not those that entry {} put in force for all nodes.\n\
                 Fix: give this node the same files as the others. To put these files in force instead, start one node \
                 with `pilot serve --adopt`; the others then stop answering until they are restarted with them.",
                found.index
            ))),
            before => Ok(Joining::Adopting { digest, before }),
        }
    }

    /// Whether the configuration in force is still the one that was found.
    fn still_holds(&self, stored: Option<&[u8]>) -> bool {
        let stored = stored.map(Configuration::parse);
        match (self, stored) {
            (Joining::Alone, _) | (Joining::Adopting { before: None, .. }, None) => true,
            (Joining::Same(found) | Joining::Adopting { before: Some(found), .. }, Some(Ok(stored))) => {
                *found == stored
            }
            _ => false,
        }
    }

    /// What the start changes about it.
    fn fact(&self, index: u64) -> Option<Fact> {
        let Joining::Adopting { digest, .. } = self else { return None };
        let adopted = Configuration { digest: digest.clone(), index };
        Some(Fact { name: Configuration::FACT.to_owned(), value: Some(persisted::to_bytes(&adopted)) })
    }
}

/// The most that definitions and changes in one entry may take together: the log's format limits an entry to less than
/// 64 KiB.
const LISTS_BYTES_MAX: usize = 60 * 1024;
/// The most that the changes may take.
const CHANGES_BYTES_MAX: usize = 40 * 1024;

fn bytes_of(value: &impl Serialize) -> usize {
    // Including the comma after it.
    serde_json::to_vec(value).map_or(0, |json| json.len() + 1)
}

/// What is left for changes after these definitions. Even the most definitions that can be in force leave some room.
fn room_beside(definitions: &[WorkflowRef]) -> usize {
    LISTS_BYTES_MAX.saturating_sub(definitions.iter().map(bytes_of).sum()).min(CHANGES_BYTES_MAX)
}

/// How many of these, from the first on, fit into `room` bytes.
fn fitting(changes: &[Change], room: usize) -> usize {
    let mut bytes = 0;
    let fits = |change: &&Change| {
        bytes += change.bytes();
        bytes <= room
    };
    changes.iter().take_while(fits).count()
}

/// Those added and those removed, each in order.
fn told(changes: &[Change], count: Option<u64>) -> Changes {
    let added: BTreeSet<_> = changes.iter().filter_map(|change| change.added.as_ref()).collect();
    let removed: BTreeSet<_> = changes.iter().filter_map(|change| change.removed.as_ref()).collect();
    let [added, removed] = [added, removed].map(|named| named.into_iter().map(Into::into).collect());
    Changes { added, removed, count }
}

/// Records the start. If very many credentials changed, most of the changes come first, in entries of their own; if
/// this start is cut off, the next one continues from there.
pub async fn write(store: &dyn Store, workflows: &Workflows, starting: Starting) -> Result<(), StartError> {
    let definitions: Vec<_> = workflows.in_force().map(|definition| WorkflowRef::from(definition.as_ref())).collect();
    let joining = Joining::find(store, &starting, &definitions).await?;
    let Starting { credentials: present, role_map, permit_keys, .. } = starting;
    let (before, known) = (LastStart::read(store).await?, KnownCredentials::read(store).await?);
    let changes = known.changes(&present);
    let room = room_beside(&definitions);
    let mut left = changes.as_slice();
    let mut divided = known.divided();
    loop {
        let fitting = fitting(left, room);
        if fitting == left.len() {
            break;
        }
        // At least one, however long its names.
        let (first, rest) = left.split_at(fitting.max(1));
        let details = Details::CredentialsChanged(ChangedCredentials { credentials: told(first, None) });
        // The split facts go with the first entry: from then on they are the ones that count.
        let last = before.clone();
        let facts = first.iter().filter_map(Change::fact);
        let facts: Vec<_> = std::mem::take(&mut divided).into_iter().chain(facts).collect();
        record(store, details, None, facts, move |_| last.clone(), Joining::Alone).await?;
        left = rest;
    }
    let details = Details::ServiceStarted(Started {
        credentials: told(left, Some(present.len() as u64)),
        definitions,
        permit_keys,
        previous: before.index,
        role_map: role_map.as_ref().map(|document| document.digest.clone()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    let facts = left.iter().filter_map(Change::fact);
    let facts = divided.into_iter().chain(facts).chain(register::at_start(store, &present).await?).collect();
    let left = |index| LastStart { index: Some(index), second_place: true };
    let index = record(store, details, role_map, facts, left, joining.clone()).await?;
    match joining {
        Joining::Alone => {}
        Joining::Same(found) => store.join(found.index),
        Joining::Adopting { .. } => store.join(index),
    }
    Ok(())
}

/// Writes an entry, together with what the next start will read, and returns its index.
async fn record(
    store: &dyn Store,
    details: Details,
    role_map: Option<Document>,
    facts: Vec<Fact>,
    left: impl Fn(u64) -> LastStart + Send + Sync + 'static,
    joining: Joining,
) -> Result<u64, StartError> {
    let decide = move |situation: &Situation<'_>| {
        if !joining.still_holds(situation.facts.first().and_then(Option::as_deref)) {
            return Err(NoRecord::Nothing);
        }
        let last = Some(persisted::to_bytes(&left(situation.index)));
        let last = Fact { name: LastStart::FACT.to_owned(), value: last };
        Ok(Record {
            documents: role_map.iter().cloned().collect(),
            facts: facts.iter().cloned().chain([last]).chain(joining.fact(situation.index)).collect(),
            adopts: matches!(joining, Joining::Adopting { .. }),
            ..Record::of(Entry::of_service(situation.index, situation.now, None, &details))
        })
    };
    let write = Write::new(Subject::Ledger, None, decide).reading([Configuration::FACT.to_owned()]);
    match store.settle(write).await? {
        Outcome::Recorded { entry, .. } => Ok(entry.index),
        Outcome::Nothing => Err(StartError::Refused(
            "another node adopted a configuration while this one was starting; start it again".into(),
        )),
        other => Err(StartError::Refused(format!("the start could not be written to the ledger: {other:?}"))),
    }
}

/// The indices of the starts below `until`, newest first, down to the one in force at `from`.
pub async fn in_force(store: &dyn Store, from: u64, until: u64) -> Result<Vec<u64>, StoreError> {
    let mut next = LastStart::read(store).await?.index;
    let mut found = Vec::new();
    while let Some(index) = next {
        let entry = store.entries(index, 1).await?.pop().filter(|entry| entry.index == index);
        let entry = entry.ok_or_else(|| StoreError::Damaged(format!("entry {index}, a start, is missing")))?;
        next = previous(&entry)?;
        if index < until {
            found.push(index);
        }
        if index <= from {
            break;
        }
    }
    Ok(found)
}

fn previous(start: &StoredEntry) -> Result<Option<u64>, StoreError> {
    let unreadable = |error| StoreError::Damaged(format!("entry {}, a start, cannot be read: {error}", start.index));
    let entry: Entry = serde_json::from_slice(&start.bytes).map_err(unreadable)?;
    let Some(Details::ServiceStarted(started)) = entry.details() else {
        return Err(StoreError::Damaged(format!("entry {}, a start, does not read as one", start.index)));
    };
    match started.previous {
        // Always backwards: otherwise the loop might never end.
        Some(previous) if previous >= start.index => {
            Err(StoreError::Damaged(format!("entry {}, a start, names a later one before it", start.index)))
        }
        previous => Ok(previous),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilot_core::limits::{ACTOR_ID_CHARS_MAX, CREDENTIAL_ID_CHARS_MAX, DEFINITIONS_MAX};
    use pilot_core::time::Time;
    use serde_json::json;

    /// With names of the maximum length.
    fn credential(number: usize) -> NamedCredential {
        let named = json!({
            "actor_id": "a".repeat(ACTOR_ID_CHARS_MAX),
            "credential_id": "c".repeat(CREDENTIAL_ID_CHARS_MAX),
            "expires_at": "2026-11-15T00:00:00.000001Z",
            "fingerprint": format!("{number:016x}"),
            "role": "security_admin",
        });
        serde_json::from_value(named).unwrap()
    }

    fn definition(number: usize) -> WorkflowRef {
        let digest = format!("sha256:{number:064x}");
        serde_json::from_value(json!({ "name": "n".repeat(64), "version": u32::MAX, "digest": digest })).unwrap()
    }

    #[test]
    fn an_entry_has_room_for_as_many_definitions_as_may_be_in_force_and_for_changes_beside_them() {
        for count in [2, 128, DEFINITIONS_MAX] {
            let definitions: Vec<_> = (0..count).map(definition).collect();
            let changed: Vec<_> = (0..1_000).map(credential).collect();
            let change = |named: &NamedCredential| Change { removed: None, added: Some(named.clone()) };
            let fit = fitting(&changed.iter().map(change).collect::<Vec<_>>(), room_beside(&definitions));
            assert!(fit > 10, "{count} definitions leave room for {fit} changes");
            let fitting: Vec<_> = changed[..fit].iter().map(change).collect();
            let details = Details::ServiceStarted(Started {
                credentials: told(&fitting, Some(u64::from(u32::MAX))),
                definitions,
                permit_keys: vec!["k".repeat(43); 2],
                previous: Some(u64::MAX),
                role_map: Some(format!("sha256:{:064x}", 0).parse().unwrap()),
                version: "0.0.0".to_owned(),
            });
            let entry = Entry::of_service(u64::MAX, Time::EPOCH, None, &details);
            let bytes = serde_json::to_vec(&entry).unwrap().len();
            assert!(bytes < usize::from(u16::MAX), "{count} definitions make an entry of {bytes} bytes");
        }
    }
}
