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
#[derive(Default, Serialize, Deserialize)]
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

pub async fn write(app: &App, starting: Starting) -> Result<(), StartError> {
    let before = LastStart::read(&*app.store).await?;
    let Starting { credentials: present, role_map } = starting;
    let former = before.former(&present);
    let definitions: Vec<_> =
        app.workflows.in_force().map(|definition| WorkflowRef::from(definition.as_ref())).collect();
    let mut details = json!({
        "credentials": {
            "added": present.difference(&before.credentials).collect::<Vec<_>>(),
            "count": present.len(),
            "removed": before.credentials.difference(&present).collect::<Vec<_>>(),
        },
        "definitions": definitions,
        "version": env!("CARGO_PKG_VERSION"),
    });
    if let Some(members) = details.as_object_mut() {
        members.extend(before.index.map(|index| ("previous".to_owned(), json!(index))));
        members.extend(role_map.as_ref().map(|document| ("role_map".to_owned(), json!(document.digest))));
    }
    let decide = move |situation: &Situation<'_>| {
        let fact = LastStart {
            credentials: present.clone(),
            former: former.clone(),
            index: Some(situation.index),
            second_place: true,
        };
        Ok(Record {
            entry: Entry::new(EntryType::ServiceStarted, situation.index, situation.now, None, details.clone()),
            documents: role_map.iter().cloned().collect(),
            standing: None,
            answer: Vec::new(),
            // Plain names and numbers alone: writing them as JSON cannot fail.
            fact: Some((LastStart::FACT, serde_json::to_vec(&fact).unwrap_or_default())),
        })
    };
    let write = Write::new(Subject::Ledger, None, decide);
    match app.store.settle(write).await? {
        Outcome::Recorded { .. } => Ok(()),
        other => Err(StartError::Refused(format!("the start could not be written to the ledger: {other:?}"))),
    }
}

/// The starts below `until`, newest first, down to the one in force at `from`, each with its role map.
pub async fn in_force(store: &dyn Store, from: u64, until: u64) -> Result<Vec<StoredEntry>, StoreError> {
    let mut next = LastStart::read(store).await?.index;
    let mut found = Vec::new();
    while let Some(index) = next {
        let entry = store.whole_entries(index, 1).await?.pop();
        let entry = entry.ok_or_else(|| StoreError::Damaged(format!("entry {index}, a start, is missing")))?;
        next = previous(&entry);
        if index < until {
            found.push(entry);
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
