//! Builds a bundle while reading the store, on a thread of its own, and sends it as it grows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use pilot_core::document::{ContentDigest, DocumentKind};
use pilot_core::entry::{EntryType, Written};
use pilot_core::leak::Sweep;
use pilot_core::limits::{EXPORT_DEADLINE, EXPORT_PIECE_BYTES, EXPORT_REPORTED_BYTES_MAX};
use pilot_core::workflow::Definition;
use pilot_evidence::bundle::{ALL_DOCUMENTS, Absence, BundleWriter, ENTRIES_PER_FILE, PeriodParts, Scope};
use pilot_evidence::report::report_with;
use pilot_store::StoredEntry;
use pilot_wire::body::Broken;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::exports::Place;
use super::plan::Plan;
use super::sources::{EvidenceError, Sources};
use crate::proofs::{self, Inclusions};
use crate::signer::{Signed, Signer};

/// Where the pieces of a bundle go; an error cuts the answer short.
type Pieces = mpsc::Sender<Result<Bytes, Broken>>;

/// How many entries with a proof of their own are read at a time.
const SINGLE_ENTRIES_READ: usize = 64;

/// Writes the bundle and sends it as it grows. An error now cuts the answer short, and the reader notices: without its
/// last part it is not a bundle.
///
/// Must run on a thread of its own: hashing and searching a whole period takes long, and it waits for its reader.
pub async fn write(sources: Sources, plan: Plan, place: Place, sender: Pieces) {
    let written = Gatherer::new(&sources, &plan, place, &sender).write();
    let error = match tokio::time::timeout(EXPORT_DEADLINE, written).await {
        Ok(Ok(()) | Err(EvidenceError::Gone)) => return,
        Ok(Err(error)) => error.to_string(),
        Err(late) => late.to_string(),
    };
    tracing::error!(cause = error, "an evidence bundle could not be finished");
    let _ = sender.try_send(Err(Broken));
}

/// What an entry refers to that must be in the bundle too.
#[derive(Deserialize)]
struct Named<'e> {
    #[serde(borrow)]
    definition: Option<&'e str>,
    #[serde(borrow)]
    comment: Option<&'e str>,
    #[serde(borrow)]
    content: Option<&'e str>,
    #[serde(borrow)]
    inputs: Option<&'e str>,
    #[serde(borrow, rename = "type")]
    kind: &'e str,
}

impl<'e> Named<'e> {
    /// The documents that were stored with the entry.
    fn documents(&self) -> impl Iterator<Item = (DocumentKind, &'e str)> {
        let brings_content = ["item.created", "item.edited"].contains(&self.kind);
        let content = (DocumentKind::Content, self.content.filter(|_| brings_content));
        let others = [(DocumentKind::Comment, self.comment), (DocumentKind::Inputs, self.inputs)];
        [content].into_iter().chain(others).filter_map(|(kind, digest)| Some((kind, digest?)))
    }
}

/// Whether each document that was stored with an entry is still there, which is the usual case.
fn has_all(entry: &Written<'_>, stored: &StoredEntry) -> bool {
    let brings_content = matches!(entry.r#type, EntryType::ItemCreated | EntryType::ItemEdited);
    let named = [
        (DocumentKind::Content, entry.content.is_some() && brings_content),
        (DocumentKind::Comment, entry.comment.is_some()),
        (DocumentKind::Inputs, entry.inputs.is_some()),
    ];
    let is_there = |kind: DocumentKind| stored.documents.iter().any(|(there, _)| *there == kind);
    named.into_iter().all(|(kind, is_named)| !is_named || is_there(kind))
}

struct Gatherer<'g> {
    sources: &'g Sources,
    plan: &'g Plan,
    sender: &'g Pieces,
    /// Released before the last piece is sent: a caller who has received a bundle may ask for the next one.
    place: Place,
    writer: BundleWriter,
    sweep: Sweep<'g>,
    /// Entries waiting until their file is full, and the index of the first.
    lines: Vec<Vec<u8>>,
    first_line: u64,
    /// Definitions stored with the ledger that are not in the bundle yet, by digest.
    definitions: BTreeMap<String, String>,
    written: BTreeSet<String>,
    /// What was already sent, for the report; `None` once it got too large.
    sent: Option<Vec<u8>>,
}

impl<'g> Gatherer<'g> {
    fn new(sources: &'g Sources, plan: &'g Plan, place: Place, sender: &'g Pieces) -> Gatherer<'g> {
        Gatherer {
            sources,
            plan,
            sender,
            place,
            writer: BundleWriter::new(plan.scope.clone(), sources.clock.now()),
            sweep: sources.guard.sweep(),
            lines: Vec::new(),
            first_line: 0,
            definitions: BTreeMap::new(),
            written: BTreeSet::new(),
            sent: plan.with_report.then(Vec::new),
        }
    }

    async fn write(mut self) -> Result<(), EvidenceError> {
        let kept = self.sources.store.keep_definitions(Vec::new()).await?;
        self.definitions = kept.into_iter().map(|kept| (kept.digest, kept.text)).collect();
        self.writer.checkpoint(&self.plan.checkpoint.note)?;
        if matches!(self.plan.scope, Scope::Period { .. }) {
            let parts = self.period_parts().await?;
            self.writer.period(&parts)?;
        }
        self.kept_checkpoints().await?;
        if let Some((count, all)) = self.sources.witnesses.count(&self.plan.checkpoint) {
            self.writer.cosigned(count, all);
        }
        if !self.plan.with_documents {
            self.writer.absent(ALL_DOCUMENTS, Absence::NotAskedFor);
        }
        let (before, after) = self.plan.single_around();
        self.single(&before).await?;
        self.range().await?;
        self.single(&after).await?;
        self.flush().await?;
        self.proofs().await?;
        self.report().await?;
        let Gatherer { sources, writer, sender, place, .. } = self;
        let rest = finish(&sources.signer, writer).await?;
        drop(place);
        sender.send(Ok(rest.into())).await.map_err(|_| EvidenceError::Gone)
    }

    async fn period_parts(&self) -> Result<PeriodParts, EvidenceError> {
        let (signer, newest) = (&self.sources.signer, &self.plan.checkpoint.checkpoint);
        Ok(PeriodParts {
            from: signer.sign_past(self.plan.first, newest).await?,
            to: signer.sign_past(self.plan.end, newest).await?,
            edge: proofs::peaks(&*self.sources.store, self.plan.first).await?,
            consistency: proofs::consistency(&*self.sources.store, self.plan.end, newest.size).await?,
        })
    }

    /// What dates the entries, and what connects the bundle with a checkpoint its reader has kept.
    async fn kept_checkpoints(&mut self) -> Result<(), EvidenceError> {
        let newest = self.plan.checkpoint.checkpoint.size;
        for (size, cosigned) in &self.plan.kept {
            self.writer.kept_checkpoint(*size, &cosigned.note)?;
        }
        for (size, stamped) in &self.plan.stamped {
            self.writer.timestamp(*size, &stamped.note, stamped.reply.as_deref().unwrap_or_default())?;
        }
        // In a period the entries themselves show the root of each size.
        let is_shown = |size: u64| self.plan.end > self.plan.first && (self.plan.first..=self.plan.end).contains(&size);
        let dated = self.plan.kept.keys().chain(self.plan.stamped.keys());
        let sizes = dated.copied().chain(self.plan.proved_from);
        for size in sizes.filter(|size| *size < newest && !is_shown(*size)) {
            let proof = proofs::consistency(&*self.sources.store, size, newest).await?;
            self.writer.consistency_from(size, &proof)?;
            self.still_wanted()?;
        }
        self.pass_on(EXPORT_PIECE_BYTES).await
    }

    async fn single(&mut self, indices: &[u64]) -> Result<(), EvidenceError> {
        let mut left = indices;
        while let Some(first) = left.first() {
            let wanted = left.get(..SINGLE_ENTRIES_READ).unwrap_or(left);
            let page = self.sources.store.whole_entries_at(wanted.to_vec()).await?;
            left = left.get(page.len().max(1)..).unwrap_or_default();
            self.page(*first, page).await?;
        }
        Ok(())
    }

    /// The next page is read while one is being hashed and searched.
    async fn range(&mut self) -> Result<(), EvidenceError> {
        let (store, end) = (Arc::clone(&self.sources.store), self.plan.end);
        let read = |from: u64| {
            let wanted = usize::try_from(end.saturating_sub(from)).unwrap_or(usize::MAX).min(ENTRIES_PER_FILE);
            (wanted > 0).then(|| store.whole_entries(from, wanted))
        };
        let (mut first, mut reading) = (self.plan.first, read(self.plan.first));
        while let Some(page) = reading {
            let page = page.await?;
            let after = page.last().ok_or(EvidenceError::Entry(first))?.index + 1;
            reading = read(after);
            self.page(first, page).await?;
            first = after;
        }
        Ok(())
    }

    async fn page(&mut self, first: u64, page: Vec<StoredEntry>) -> Result<(), EvidenceError> {
        if page.is_empty() {
            return Err(EvidenceError::Entry(first));
        }
        for stored in page {
            self.entry(stored).await?;
        }
        self.still_wanted()
    }

    /// Adds an entry, and writes what it refers to.
    async fn entry(&mut self, stored: StoredEntry) -> Result<(), EvidenceError> {
        self.clean("an entry", &stored.bytes)?;
        let is_neighbour = self.plan.neighbours.contains(&stored.index);
        if !is_neighbour {
            self.named(&stored)?;
        }
        let StoredEntry { index, bytes, documents } = stored;
        if !is_neighbour {
            for (kind, document) in &documents {
                self.document(*kind, document, index)?;
                self.pass_on(EXPORT_PIECE_BYTES).await?;
            }
        }
        if self.lines.is_empty() {
            self.first_line = index;
        }
        self.lines.push(bytes);
        if self.lines.len() == ENTRIES_PER_FILE { self.flush().await } else { Ok(()) }
    }

    /// Adds the definition that an entry names, and says which of its documents are gone.
    fn named(&mut self, stored: &StoredEntry) -> Result<(), EvidenceError> {
        if let Some(entry) = Written::read(&stored.bytes).filter(|entry| has_all(entry, stored)) {
            return entry.definition.map_or(Ok(()), |digest| self.definition(digest));
        }
        let unreadable = |_| EvidenceError::Entry(stored.index);
        let named: Named<'_> = serde_json::from_slice(&stored.bytes).map_err(unreadable)?;
        if let Some(digest) = named.definition {
            self.definition(digest)?;
        }
        for (kind, digest) in named.documents().filter(|_| self.plan.with_documents) {
            if !stored.documents.iter().any(|(there, _)| *there == kind) {
                self.writer.absent(digest, Absence::Erased);
            }
        }
        Ok(())
    }

    /// Writes the waiting entries.
    async fn flush(&mut self) -> Result<(), EvidenceError> {
        let lines = std::mem::take(&mut self.lines);
        if !lines.is_empty() {
            self.writer.entries(self.first_line, &lines)?;
        }
        self.pass_on(EXPORT_PIECE_BYTES).await
    }

    /// Once for each digest: a definition is long, and every entry about an item refers to one.
    fn definition(&mut self, digest: &str) -> Result<(), EvidenceError> {
        if self.written.contains(digest) {
            return Ok(());
        }
        let missing = || EvidenceError::Definition(digest.to_owned());
        let text = self.definitions.remove(digest).ok_or_else(missing)?;
        let definition = Definition::parse(&text).ok().filter(|definition| **definition.digest() == *digest);
        let definition = definition.ok_or_else(missing)?;
        // In the canonical form as well: the text could have it in escapes.
        let has_token = |bytes: &[u8]| self.sources.guard.find(bytes).is_some();
        if has_token(text.as_bytes()) || has_token(&definition.to_canonical()) {
            return Err(EvidenceError::Token("a definition"));
        }
        self.writer.definition(&definition, &text)?;
        self.written.insert(digest.to_owned());
        Ok(())
    }

    /// What was not a token when it was written may have become one since. Such a document is left out; the proof still
    /// holds.
    fn document(&mut self, kind: DocumentKind, document: &[u8], index: u64) -> Result<(), EvidenceError> {
        if kind == DocumentKind::RoleMap {
            self.clean("a role map", document)?;
            return Ok(self.writer.role_map(document)?);
        }
        if !self.plan.with_documents {
            return Ok(());
        }
        if self.sweep.finds_token(document) {
            tracing::warn!(entry = index, "a document contains a live token and was left out of an evidence bundle");
            self.writer.absent(ContentDigest::of_bytes(document).as_str(), Absence::Token);
            return Ok(());
        }
        Ok(self.writer.document(document)?)
    }

    fn clean(&mut self, what: &'static str, json: &[u8]) -> Result<(), EvidenceError> {
        if self.sweep.finds_token(json) { Err(EvidenceError::Token(what)) } else { Ok(()) }
    }

    async fn proofs(&mut self) -> Result<(), EvidenceError> {
        let Signed { checkpoint, note } = &*self.plan.checkpoint;
        let mut inclusions = Inclusions::new(&*self.sources.store, checkpoint.size);
        for index in &self.plan.single {
            let path = inclusions.of(*index).await?;
            self.writer.proof(*index, &path, note)?;
            self.pass_on(EXPORT_PIECE_BYTES).await?;
            self.still_wanted()?;
        }
        Ok(())
    }

    /// A page for people about the bundle so far, from the same verifier its reader will use. The bundle is complete
    /// evidence without it, and anyone can generate it from the bundle, so if something goes wrong here the page is
    /// left out.
    async fn report(&mut self) -> Result<(), EvidenceError> {
        self.pass_on(0).await?;
        let Some(mut bundle) = self.sent.take() else {
            let why = if self.plan.with_report { Absence::TooLong } else { Absence::NotAskedFor };
            self.writer.absent("report", why);
            return Ok(());
        };
        bundle.extend(finish(&self.sources.signer, self.writer.clone()).await?);
        let trust = self.sources.witnesses.trust(self.sources.signer.verifier());
        let (cause, why) = match report_with(&bundle, &trust, &self.sources.layouts) {
            Ok(html) if self.sources.guard.find(html.as_bytes()).is_none() => return Ok(self.writer.report(&html)?),
            Ok(_) => ("it is too long to be searched for tokens, or contains one".to_owned(), Absence::TooLong),
            Err(verdict) => (verdict.sentence(), Absence::Failed),
        };
        self.writer.absent("report", why);
        tracing::warn!(cause, "the report was left out of an evidence bundle");
        Ok(())
    }

    /// Sends what is ready, once it is at least `bytes_min`.
    async fn pass_on(&mut self, bytes_min: usize) -> Result<(), EvidenceError> {
        if self.writer.ready_bytes() < bytes_min.max(1) {
            return Ok(());
        }
        let ready = self.writer.take_ready();
        self.sent = self.sent.take().filter(|sent| sent.len() + ready.len() <= EXPORT_REPORTED_BYTES_MAX);
        self.sent.iter_mut().for_each(|sent| sent.extend_from_slice(&ready));
        self.sender.send(Ok(ready.into())).await.map_err(|_| EvidenceError::Gone)
    }

    /// Nothing is computed for a peer that has gone.
    fn still_wanted(&self) -> Result<(), EvidenceError> {
        if self.sender.is_closed() { Err(EvidenceError::Gone) } else { Ok(()) }
    }
}

/// Signs the manifest and returns the rest of the bundle.
async fn finish(signer: &Signer, bundle: BundleWriter) -> Result<Vec<u8>, EvidenceError> {
    let verifier = signer.verifier();
    let closed = bundle.close(&verifier.name);
    let signature = signer.sign_manifest(closed.manifest()).await?;
    Ok(closed.finish(&verifier, &signature)?)
}
