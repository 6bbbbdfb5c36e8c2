//! Which documents a bundle lacks, and why: erased, left out of it after it was signed, or not put into it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use data_encoding::HEXLOWER;
use pilot_core::document::ContentDigest;
use pilot_core::entry::details::Details;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::ItemId;

use super::contents::{Contents, Mark, document_key};
use super::verdict::{Check, Fault, Finding};
use crate::bundle::{ALL_DOCUMENTS, Absence, document_path};

/// The documents that entries name: those of the items a bundle is about, and of its period's other entries.
pub(super) struct Named {
    /// Of each document of the bundle, in their order, whether an entry names it.
    there: Vec<bool>,
    /// With the last item that names it, if any does.
    missing: BTreeMap<ContentDigest, Option<ItemId>>,
}

/// The documents that the bundle does not have, by the reason.
pub(super) struct Missing {
    named: Vec<bool>,
    by_reason: BTreeMap<Reason, usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// An entry of this index says so.
    Erased(u64),
    /// The manifest lists it, so it was removed afterwards.
    Redacted,
    /// The manifest says why it was not put in.
    Said(Absence),
    /// Nothing says why.
    Unknown,
}

impl Named {
    pub(super) fn of(contents: &Contents<'_>) -> Named {
        Named { there: vec![false; contents.documents().len()], missing: BTreeMap::new() }
    }

    /// Takes in what one entry names.
    pub(super) fn take(&mut self, contents: &Contents<'_>, item: Option<&ItemId>, entry: &Entry) {
        for digest in [&entry.content, &entry.comment, &entry.inputs].into_iter().flatten() {
            let place = contents.find_document(&document_key(digest));
            if let Some(is_named) = place.and_then(|place| self.there.get_mut(place)) {
                *is_named = true;
            } else {
                let owner = self.missing.entry(digest.clone()).or_default();
                *owner = item.cloned().or(owner.take());
            }
        }
    }

    /// Why each of them is missing, once everything that names documents was taken in.
    pub(super) fn missing(mut self, contents: &Contents<'_>) -> io::Result<Missing> {
        let is_other = |mark: &&Mark| mark.item.is_none() && mark.names_documents && contents.is_inside(mark.index);
        for mark in contents.entries.iter().filter(is_other) {
            self.take(contents, None, &contents.entry(mark)?);
        }
        let erasures = erasures(contents)?;
        let left_out: BTreeSet<_> = contents.left_out.iter().map(String::as_str).collect();
        let mut by_reason = BTreeMap::new();
        for (digest, owner) in &self.missing {
            let erased = owner.as_ref().and_then(|id| erasures.get(id));
            let absent = &contents.manifest.absent;
            let said = absent.get(digest.as_str()).or_else(|| absent.get(ALL_DOCUMENTS));
            let reason = match (left_out.contains(document_path(digest.as_str()).as_str()), erased, said) {
                (true, ..) => Reason::Redacted,
                (false, Some(entry), _) => Reason::Erased(*entry),
                (false, None, Some(said)) => Reason::Said(*said),
                (false, None, None) => Reason::Unknown,
            };
            *by_reason.entry(reason).or_insert(0) += 1;
        }
        Ok(Missing { named: self.there, by_reason })
    }
}

impl Missing {
    pub(super) fn count(&self) -> usize {
        self.by_reason.values().sum()
    }

    pub(super) fn check(&self, contents: &Contents<'_>, faults: &mut Vec<Fault>) -> Finding<Check> {
        for (digest, _) in contents.documents().zip(&self.named).filter(|(_, is_named)| !**is_named) {
            let fault = Fault::new(Check::Documents, "document", "no entry of this bundle names it");
            faults.push(fault.in_file(document_path(&HEXLOWER.encode(digest))));
        }
        let there = contents.documents().len();
        if self.by_reason.is_empty() {
            return Finding::holds(
                Check::Documents,
                format!("{there} documents, each matching the digest in its entry"),
            );
        }
        let reasons: Vec<_> =
            self.by_reason.iter().map(|(reason, count)| format!("{count} {}", reason.words())).collect();
        let reasons = reasons.join(", ");
        Finding::not_checked(
            Check::Documents,
            format!("{there} documents that match the digests in their entries; missing: {reasons}"),
        )
    }
}

impl Reason {
    fn words(self) -> String {
        match self {
            Reason::Erased(entry) => format!("erased, according to entry {entry}"),
            Reason::Redacted => "left out after the bundle was signed".to_owned(),
            Reason::Said(Absence::Erased) => "erased, according to the service".to_owned(),
            Reason::Said(Absence::Token) => "left out because they contain a live token".to_owned(),
            Reason::Said(Absence::NotAskedFor) => "not asked for".to_owned(),
            Reason::Said(Absence::TooLong | Absence::Failed) => "not written".to_owned(),
            Reason::Unknown => "without a reason".to_owned(),
        }
    }
}

/// The entry that records the erasure of each item's documents.
fn erasures(contents: &Contents<'_>) -> io::Result<BTreeMap<ItemId, u64>> {
    let mut erasures = BTreeMap::new();
    for entry in contents.of_types(&[EntryType::DocumentsErased]) {
        let (mark, entry) = entry?;
        if let Some(Details::DocumentsErased(erased)) = entry.details() {
            erasures.insert(erased.item, mark.index);
        }
    }
    Ok(erasures)
}
