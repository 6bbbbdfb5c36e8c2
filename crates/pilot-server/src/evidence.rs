//! Gathers what an auditor takes away: entries, documents, rules, role maps and proofs, written as one bundle while it is
//! read from the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use pilot_core::document::DocumentKind;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::ItemId;
use pilot_core::time::Time;
use pilot_evidence::bundle::{BundleError, BundleWriter, ENTRIES_PER_FILE, PeriodParts, Scope};
use pilot_evidence::report::report;
use pilot_store::{Store, StoreError, StoredEntry};
use tokio::sync::mpsc;

use crate::app::App;
use crate::body::Broken;
use crate::proofs;
use crate::signer::{SignError, Signed};
use crate::starts;

/// Of a larger bundle the service makes no report: it would have to hold all of it in memory. Whoever has the bundle can.
const REPORTED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Item(ItemId),
    /// From the first of these times to just before the second, so that periods can follow one another.
    Period(Time, Time),
}

#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    #[error("there is no such item")]
    NoSuchItem,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Sign(#[from] SignError),
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error("entry {0} cannot be read")]
    Entry(u64),
    #[error("the definition {0} is not in the store")]
    Definition(String),
    #[error("{0} holds a live token")]
    Token(&'static str),
    #[error("the report cannot be made: {0}")]
    Report(String),
    #[error("the reader has gone")]
    Gone,
}

/// What a bundle will hold, known before its first byte is sent.
pub struct Plan {
    scope: Scope,
    checkpoint: Arc<Signed>,
    /// The entries of the period, which prove each other; none for an item.
    first: u64,
    end: u64,
    /// Entries with a proof of their own, below `first` or not below `end`.
    single: BTreeSet<u64>,
    /// Of these, the ones that show nothing but where the period ends: their items are none of its business.
    neighbours: BTreeSet<u64>,
    with_documents: bool,
}

impl Plan {
    pub async fn make(app: &Arc<App>, wanted: Wanted, with_documents: bool) -> Result<Plan, EvidenceError> {
        match wanted {
            Wanted::Item(id) => Plan::item(app, id, with_documents).await,
            Wanted::Period(from, to) => Plan::period(app, from, to, with_documents).await,
        }
    }

    async fn item(app: &Arc<App>, id: ItemId, with_documents: bool) -> Result<Plan, EvidenceError> {
        let history = app.store.history(id.clone()).await?;
        if history.is_empty() {
            return Err(EvidenceError::NoSuchItem);
        }
        let checkpoint = app.witnesses.best(&app.signer).await?;
        let single = history.iter().map(|entry| entry.index).collect();
        let single = with_starts(&*app.store, single).await?;
        let scope = Scope::Item(id);
        Ok(Plan { scope, checkpoint, first: 0, end: 0, single, neighbours: BTreeSet::new(), with_documents })
    }

    async fn period(app: &Arc<App>, from: Time, to: Time, with_documents: bool) -> Result<Plan, EvidenceError> {
        let (store, checkpoint) = (&*app.store, app.witnesses.best(&app.signer).await?);
        let size = checkpoint.checkpoint.size;
        let first = lowest(store, size, |at| at >= from).await?;
        let end = lowest(store, size, |at| at >= to).await?.max(first);
        let touched = touched_items(store, first, end).await?;
        let mut single = earlier_entries(store, &touched, first).await?;
        let mut neighbours = BTreeSet::new();
        for index in first.checked_sub(1).into_iter().chain(Some(end).filter(|end| *end < size)) {
            single.insert(index);
            let entry = entry_at(store, index).await?;
            neighbours.extend(entry.item.filter(|id| !touched.contains_key(id)).map(|_| index));
        }
        // The rules in force before the period are judged by, so the start they came with belongs to it.
        let single = with_starts(store, single).await?;
        let single = single.into_iter().filter(|index| !(first..end).contains(index)).collect();
        let scope = Scope::Period { from, to, first, end };
        Ok(Plan { scope, checkpoint, first, end, single, neighbours, with_documents })
    }

    /// How many entries the bundle will hold.
    pub fn entries(&self) -> u64 {
        self.single.len() as u64 + (self.end - self.first)
    }

    /// A name for the file that says what it is.
    pub fn file_name(&self) -> String {
        match &self.scope {
            Scope::Item(id) => format!("evidence-{id}.zip"),
            Scope::Period { first, end, .. } => format!("evidence-entries-{first}-to-{end}.zip"),
        }
    }
}

fn read(stored: &StoredEntry) -> Result<Entry, EvidenceError> {
    serde_json::from_slice(&stored.bytes).map_err(|_| EvidenceError::Entry(stored.index))
}

async fn entry_at(store: &dyn Store, index: u64) -> Result<Entry, EvidenceError> {
    read(store.entries(index, 1).await?.first().ok_or(EvidenceError::Entry(index))?)
}

/// The lowest index below `size` whose time fits, or `size`. Time never runs backwards along the ledger.
async fn lowest(store: &dyn Store, size: u64, fits: impl Fn(Time) -> bool) -> Result<u64, EvidenceError> {
    let (mut low, mut high) = (0, size);
    while low < high {
        let middle = low + (high - low) / 2;
        if fits(entry_at(store, middle).await?.at) { high = middle } else { low = middle + 1 }
    }
    Ok(low)
}

/// The items with an entry from `first` to `end`, each with whether it was created there.
async fn touched_items(store: &dyn Store, first: u64, end: u64) -> Result<BTreeMap<ItemId, bool>, EvidenceError> {
    let (mut touched, mut next) = (BTreeMap::new(), first);
    while next < end {
        let wanted = usize::try_from(end - next).unwrap_or(usize::MAX).min(ENTRIES_PER_FILE);
        let page = store.entries(next, wanted).await?;
        next = page.last().ok_or(EvidenceError::Entry(next))?.index + 1;
        for stored in &page {
            let entry = read(stored)?;
            if let Some(id) = entry.item {
                touched.entry(id).or_insert(entry.r#type == EntryType::ItemCreated);
            }
        }
    }
    Ok(touched)
}

/// What happened to these items before `first`: without it they could not be judged.
async fn earlier_entries(
    store: &dyn Store,
    touched: &BTreeMap<ItemId, bool>,
    first: u64,
) -> Result<BTreeSet<u64>, EvidenceError> {
    let mut indices = BTreeSet::new();
    for (id, _) in touched.iter().filter(|(_, is_new)| !**is_new) {
        let history = store.history(id.clone()).await?;
        indices.extend(history.iter().map(|entry| entry.index).filter(|index| *index < first));
    }
    Ok(indices)
}

/// These entries, and for each the start of the service that was in force at it.
async fn with_starts(store: &dyn Store, mut indices: BTreeSet<u64>) -> Result<BTreeSet<u64>, EvidenceError> {
    let (Some(lowest), Some(highest)) = (indices.first(), indices.last()) else { return Ok(indices) };
    let starts: BTreeSet<u64> =
        starts::in_force(store, *lowest, *highest + 1).await?.iter().map(|start| start.index).collect();
    let in_force: Vec<_> = indices.iter().filter_map(|index| starts.range(..=*index).next_back()).copied().collect();
    indices.extend(in_force);
    Ok(indices)
}

/// Writes the bundle and sends it as it grows. What goes wrong now ends the answer in the middle, where its reader
/// notices: without its last part a bundle is none.
pub async fn send(app: Arc<App>, plan: Plan, sender: mpsc::Sender<Result<Bytes, Broken>>) {
    let sent = Gatherer::new(&app, &plan, &sender).write().await;
    match sent {
        Ok(()) | Err(EvidenceError::Gone) => {}
        Err(error) => {
            tracing::error!(cause = error.to_string(), "an evidence bundle could not be finished");
            let _ = sender.send(Err(Broken)).await;
        }
    }
}

struct Gatherer<'g> {
    app: &'g Arc<App>,
    plan: &'g Plan,
    sender: &'g mpsc::Sender<Result<Bytes, Broken>>,
    writer: BundleWriter,
    /// Entries that wait for their file to be full.
    lines: Vec<StoredEntry>,
    /// By digest.
    definitions: BTreeMap<String, String>,
    /// What was sent already, for the report, unless it became too much.
    sent: Option<Vec<u8>>,
}

impl<'g> Gatherer<'g> {
    fn new(app: &'g Arc<App>, plan: &'g Plan, sender: &'g mpsc::Sender<Result<Bytes, Broken>>) -> Gatherer<'g> {
        let writer = BundleWriter::new(plan.scope.clone(), app.ledger_clock.now());
        let (lines, definitions, sent) = (Vec::new(), BTreeMap::new(), Some(Vec::new()));
        Gatherer { app, plan, sender, writer, lines, definitions, sent }
    }

    async fn write(mut self) -> Result<(), EvidenceError> {
        let kept = self.app.store.keep_definitions(Vec::new()).await?;
        self.definitions = kept.into_iter().map(|kept| (kept.digest, kept.text)).collect();
        self.writer.checkpoint(&self.plan.checkpoint.note)?;
        if matches!(self.plan.scope, Scope::Period { .. }) {
            let parts = self.period_parts().await?;
            self.writer.period(&parts)?;
        }
        for index in self.plan.single.range(..self.plan.first.max(self.plan.end)) {
            self.single(*index).await?;
        }
        self.range().await?;
        for index in self.plan.single.range(self.plan.first.max(self.plan.end)..) {
            self.single(*index).await?;
        }
        self.flush().await?;
        for index in &self.plan.single {
            let Signed { checkpoint, note } = &*self.plan.checkpoint;
            let path = proofs::inclusion(&*self.app.store, *index, checkpoint.size).await?;
            self.writer.proof(*index, &path, note)?;
            self.pass_on().await?;
        }
        self.report().await?;
        let rest = self.app.signer.sign_bundle(self.writer)?;
        self.sender.send(Ok(rest.into())).await.map_err(|_| EvidenceError::Gone)
    }

    async fn period_parts(&self) -> Result<PeriodParts, EvidenceError> {
        let (signer, newest) = (&self.app.signer, &self.plan.checkpoint.checkpoint);
        Ok(PeriodParts {
            from: signer.sign_past(self.plan.first, newest).await?,
            to: signer.sign_past(self.plan.end, newest).await?,
            edge: proofs::peaks(&*self.app.store, self.plan.first).await?,
            consistency: proofs::consistency(&*self.app.store, self.plan.end, newest.size).await?,
        })
    }

    async fn single(&mut self, index: u64) -> Result<(), EvidenceError> {
        let stored = self.app.store.whole_entries(index, 1).await?.pop();
        self.entry(stored.ok_or(EvidenceError::Entry(index))?).await
    }

    async fn range(&mut self) -> Result<(), EvidenceError> {
        let mut next = self.plan.first;
        while next < self.plan.end {
            let wanted = usize::try_from(self.plan.end - next).unwrap_or(usize::MAX).min(ENTRIES_PER_FILE);
            let page = self.app.store.whole_entries(next, wanted).await?;
            next = page.last().ok_or(EvidenceError::Entry(next))?.index + 1;
            for stored in page {
                self.entry(stored).await?;
            }
        }
        Ok(())
    }

    async fn entry(&mut self, stored: StoredEntry) -> Result<(), EvidenceError> {
        self.lines.push(stored);
        if self.lines.len() == ENTRIES_PER_FILE { self.flush().await } else { Ok(()) }
    }

    /// Writes the entries that wait, and whatever they name.
    async fn flush(&mut self) -> Result<(), EvidenceError> {
        let lines = std::mem::take(&mut self.lines);
        let Some(first) = lines.first() else { return Ok(()) };
        let bytes: Vec<_> = lines.iter().map(|stored| stored.bytes.clone()).collect();
        self.clean("an entry", &bytes.concat())?;
        self.writer.entries(first.index, &bytes)?;
        for stored in lines.iter().filter(|stored| !self.plan.neighbours.contains(&stored.index)) {
            let entry = read(stored)?;
            if let Some(digest) = &entry.definition {
                self.definition(digest)?;
            }
            for (kind, document) in &stored.documents {
                self.document(*kind, document, stored.index)?;
            }
        }
        self.pass_on().await
    }

    fn definition(&mut self, digest: &str) -> Result<(), EvidenceError> {
        let missing = || EvidenceError::Definition(digest.to_owned());
        let text = self.definitions.get(digest).ok_or_else(missing)?;
        self.clean("a definition", text.as_bytes())?;
        Ok(self.writer.definition(digest, text)?)
    }

    /// What was no token when it was written may have become one. Such a document is left out: the proof stands.
    fn document(&mut self, kind: DocumentKind, document: &[u8], index: u64) -> Result<(), EvidenceError> {
        if kind == DocumentKind::RoleMap {
            self.clean("a role map", document)?;
            return Ok(self.writer.role_map(document)?);
        }
        if !self.plan.with_documents {
            return Ok(());
        }
        if self.app.guard.find(document).is_some() {
            tracing::warn!(entry = index, "a document holds a live token and was left out of an evidence bundle");
            return Ok(());
        }
        Ok(self.writer.document(document)?)
    }

    fn clean(&self, what: &'static str, bytes: &[u8]) -> Result<(), EvidenceError> {
        if self.app.guard.find(bytes).is_some() { Err(EvidenceError::Token(what)) } else { Ok(()) }
    }

    /// A page for people about what the bundle holds so far, by the same verifier that its reader will use.
    async fn report(&mut self) -> Result<(), EvidenceError> {
        self.pass_on().await?;
        let Some(mut bundle) = self.sent.take() else { return Ok(()) };
        bundle.extend(self.app.signer.sign_bundle(self.writer.clone())?);
        let trust = self.app.witnesses.trust(self.app.signer.verifier());
        let made = tokio::task::spawn_blocking(move || report(&bundle, &trust).map_err(|verdict| verdict.sentence()));
        let made = made.await.unwrap_or_else(|error| Err(error.to_string()));
        let html = made.map_err(EvidenceError::Report)?;
        self.clean("the report", html.as_bytes())?;
        Ok(self.writer.report(&html)?)
    }

    async fn pass_on(&mut self) -> Result<(), EvidenceError> {
        let ready = self.writer.take_ready();
        if ready.is_empty() {
            return Ok(());
        }
        self.sent = self.sent.take().filter(|sent| sent.len() + ready.len() <= REPORTED_BYTES_MAX);
        self.sent.iter_mut().for_each(|sent| sent.extend_from_slice(&ready));
        self.sender.send(Ok(ready.into())).await.map_err(|_| EvidenceError::Gone)
    }
}
