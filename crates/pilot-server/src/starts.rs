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
        let unreadable = |error| StoreError::Damaged(format!("what the last start left cannot be read: {error}"));
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

/// What the changes in one entry may take: in the log's format an entry has less than 64 KiB.
const CHANGES_BYTES_MAX: usize = 40 * 1024;

/// How many of these, from the first on, fit into one entry.
fn fitting(changed: &[NamedCredential]) -> usize {
    let mut bytes = 0;
    let fits = |one: &&NamedCredential| {
        bytes += serde_json::to_vec(one).map_or(0, |json| json.len());
        bytes <= CHANGES_BYTES_MAX
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
async fn write_most_changes(app: &App, present: &BTreeSet<NamedCredential>) -> Result<(), StartError> {
    loop {
        let before = LastStart::read(&*app.store).await?;
        let changed = before.changed(present);
        let Some(first_left) = changed.get(fitting(&changed)) else { return Ok(()) };
        // The two sides of one change stay together.
        let end = changed.partition_point(|one| one.fingerprint < first_left.fingerprint).max(1);
        let after = before.after(present, changed.get(..end).unwrap_or_default());
        let details = json!({ "credentials": told(&before, &after) });
        record(app, EntryType::CredentialsChanged, details, None, move |_| after.clone()).await?;
    }
}

pub async fn write(app: &App, starting: Starting) -> Result<(), StartError> {
    let Starting { credentials: present, role_map } = starting;
    write_most_changes(app, &present).await?;
    let before = LastStart::read(&*app.store).await?;
    let after = before.after(&present, &before.changed(&present));
    let definitions: Vec<_> =
        app.workflows.in_force().map(|definition| WorkflowRef::from(definition.as_ref())).collect();
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
