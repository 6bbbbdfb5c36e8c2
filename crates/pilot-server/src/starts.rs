//! Every start is an entry: which program, which rules, which role map, and what changed among the credentials since the
//! start before it. Each names the one before, so that whoever judges an entry finds what was in force.

use std::collections::BTreeSet;

use pilot_core::document::Document;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::WorkflowRef;
use pilot_store::{Outcome, Record, Situation, Store, StoreError, StoredEntry, Subject, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::app::App;
use crate::register::NamedCredential;
use crate::start::StartError;

/// What a start leaves for the next one.
#[derive(Default, Clone, Serialize, Deserialize)]
pub struct LastStart {
    credentials: BTreeSet<NamedCredential>,
    /// Those of earlier starts that are gone.
    #[serde(default)]
    former: BTreeSet<NamedCredential>,
    /// Its entry.
    #[serde(default)]
    index: Option<u64>,
    /// Whether the log's checkpoint was kept outside of the database. Once it was, it must be there.
    #[serde(default)]
    pub second_place: bool,
}

impl LastStart {
    /// The name it is kept under.
    pub const FACT: &str = "start";

    pub async fn read(store: &dyn Store) -> Result<LastStart, StoreError> {
        match store.fact(LastStart::FACT).await? {
            Some(bytes) => LastStart::parse(&bytes),
            None => Ok(LastStart::default()),
        }
    }

    pub fn parse(bytes: &[u8]) -> Result<LastStart, StoreError> {
        let unreadable = |error| StoreError::Damaged(format!("the record of the last start cannot be read: {error}"));
        serde_json::from_slice(bytes).map_err(unreadable)
    }

    /// Every credential there ever was, but for those present.
    pub fn former(&self, present: &BTreeSet<NamedCredential>) -> BTreeSet<NamedCredential> {
        let is_gone = |named: &&NamedCredential| !present.iter().any(|other| other.fingerprint == named.fingerprint);
        self.former.union(&self.credentials).filter(is_gone).cloned().collect()
    }
}

/// What this start brings along.
pub struct Starting {
    pub credentials: BTreeSet<NamedCredential>,
    pub role_map: Option<Document>,
}

/// What definitions and changes in one entry may take together: in the log's format an entry has less than 64 KiB.
const LISTS_BYTES_MAX: usize = 60 * 1024;
/// What the changes may take.
const CHANGES_BYTES_MAX: usize = 40 * 1024;

fn bytes_of(value: &impl Serialize) -> usize {
    // With the comma behind it.
    serde_json::to_vec(value).map_or(0, |json| json.len() + 1)
}

/// What is left for changes beside these definitions. As many as may be in force leave room for some.
fn room_beside(definitions: &[WorkflowRef]) -> usize {
    LISTS_BYTES_MAX.saturating_sub(definitions.iter().map(bytes_of).sum()).min(CHANGES_BYTES_MAX)
}

/// How many of these, from the first on, fit into so many bytes.
fn fitting(changed: &[NamedCredential], room: usize) -> usize {
    let mut bytes = 0;
    let fits = |one: &&NamedCredential| {
        bytes += bytes_of(one);
        bytes <= room
    };
    changed.iter().take_while(fits).count()
}

impl LastStart {
    /// The credentials that are not as they were, those of one fingerprint side by side.
    fn changed(&self, present: &BTreeSet<NamedCredential>) -> Vec<NamedCredential> {
        let mut changed: Vec<_> = self.credentials.symmetric_difference(present).cloned().collect();
        changed.sort_by(|one, other| one.fingerprint.cmp(&other.fingerprint));
        changed
    }

    /// As if these few changes were all.
    fn after(&self, present: &BTreeSet<NamedCredential>, changed: &[NamedCredential]) -> LastStart {
        let mut credentials = self.credentials.clone();
        for one in changed {
            if present.contains(one) {
                credentials.insert(one.clone());
            } else {
                credentials.remove(one);
            }
        }
        let former = self.former(&credentials);
        LastStart { credentials, former, index: self.index, second_place: self.second_place }
    }
}

/// Which were added and which removed.
fn told(before: &LastStart, after: &LastStart) -> Value {
    json!({
        "added": after.credentials.difference(&before.credentials).collect::<Vec<_>>(),
        "removed": before.credentials.difference(&after.credentials).collect::<Vec<_>>(),
    })
}

/// The first of very many changes in entries of their own, each of which the next start goes on from if this one is cut
/// off.
async fn write_most_changes(app: &App, present: &BTreeSet<NamedCredential>, room: usize) -> Result<(), StartError> {
    loop {
        let before = LastStart::read(&*app.store).await?;
        let changed = before.changed(present);
        let Some(first_left) = changed.get(fitting(&changed, room)) else { return Ok(()) };
        // The two sides of one change stay together.
        let end = changed.partition_point(|one| one.fingerprint < first_left.fingerprint).max(1);
        let after = before.after(present, changed.get(..end).unwrap_or_default());
        let details = json!({ "credentials": told(&before, &after) });
        record(app, EntryType::CredentialsChanged, details, None, move |_| after.clone()).await?;
    }
}

pub async fn write(app: &App, starting: Starting) -> Result<(), StartError> {
    let Starting { credentials: present, role_map } = starting;
    let definitions: Vec<_> =
        app.workflows.in_force().map(|definition| WorkflowRef::from(definition.as_ref())).collect();
    write_most_changes(app, &present, room_beside(&definitions)).await?;
    let before = LastStart::read(&*app.store).await?;
    let after = before.after(&present, &before.changed(&present));
    let mut credentials = told(&before, &after);
    if let Some(members) = credentials.as_object_mut() {
        members.insert("count".to_owned(), json!(present.len()));
    }
    let mut details =
        json!({ "credentials": credentials, "definitions": definitions, "version": env!("CARGO_PKG_VERSION") });
    if let Some(members) = details.as_object_mut() {
        members.extend(before.index.map(|index| ("previous".to_owned(), json!(index))));
        members.extend(role_map.as_ref().map(|document| ("role_map".to_owned(), json!(document.digest))));
    }
    record(app, EntryType::ServiceStarted, details, role_map, move |index| LastStart {
        credentials: after.credentials.clone(),
        former: after.former.clone(),
        index: Some(index),
        second_place: true,
    })
    .await
}

/// Writes an entry, and beside it what the next start finds.
async fn record(
    app: &App,
    kind: EntryType,
    details: Value,
    role_map: Option<Document>,
    left: impl Fn(u64) -> LastStart + Send + Sync + 'static,
) -> Result<(), StartError> {
    let decide = move |situation: &Situation<'_>| {
        Ok(Record {
            entry: Entry::new(kind, situation.index, situation.now, None, details.clone()),
            documents: role_map.iter().cloned().collect(),
            standing: None,
            answer: Vec::new(),
            // Plain names and numbers alone: writing them as JSON cannot fail.
            fact: Some((LastStart::FACT, serde_json::to_vec(&left(situation.index)).unwrap_or_default())),
        })
    };
    match app.store.settle(Write::new(Subject::Ledger, None, decide)).await? {
        Outcome::Recorded { .. } => Ok(()),
        other => Err(StartError::Refused(format!("the start could not be written to the ledger: {other:?}"))),
    }
}

/// Where the starts below `until` are, newest first, down to the one in force at `from`.
pub async fn in_force(store: &dyn Store, from: u64, until: u64) -> Result<Vec<u64>, StoreError> {
    let mut next = LastStart::read(store).await?.index;
    let mut found = Vec::new();
    while let Some(index) = next {
        let entry = store.entries(index, 1).await?.pop().filter(|entry| entry.index == index);
        let entry = entry.ok_or_else(|| StoreError::Damaged(format!("entry {index}, a start, is missing")))?;
        next = previous(&entry);
        if index < until {
            found.push(index);
        }
        if index <= from {
            break;
        }
    }
    Ok(found)
}

fn previous(start: &StoredEntry) -> Option<u64> {
    let entry: Entry = serde_json::from_slice(&start.bytes).ok()?;
    // Only ever backwards: a chain that does not get smaller would never end.
    entry.details?.get("previous").and_then(Value::as_u64).filter(|previous| *previous < start.index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilot_core::limits::{ACTOR_ID_CHARS_MAX, CREDENTIAL_ID_CHARS_MAX, DEFINITIONS_MAX};
    use pilot_core::time::Time;

    /// Names as long as they may be.
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
            let fit = fitting(&changed, room_beside(&definitions));
            assert!(fit > 10, "{count} definitions leave room for {fit} changes");
            let details = json!({
                "credentials": { "added": &changed[..fit], "removed": [], "count": u32::MAX },
                "definitions": definitions, "previous": u64::MAX, "version": "0.0.0",
                "role_map": format!("sha256:{:064x}", 0),
            });
            let entry = Entry::new(EntryType::ServiceStarted, u64::MAX, Time::EPOCH, None, details);
            let bytes = serde_json::to_vec(&entry).unwrap().len();
            assert!(bytes < usize::from(u16::MAX), "{count} definitions make an entry of {bytes} bytes");
        }
    }
}
