//! Which documents a bundle lacks, and why: erased, left out of it after it was signed, or not put into it.

use std::collections::{BTreeMap, BTreeSet};

use pilot_core::document::ContentDigest;
use pilot_core::entry::details::Details;
use pilot_core::item::ItemId;

use super::contents::Contents;
use super::items::{History, documents_named};
use super::verdict::{Check, Fault, Finding};
use crate::bundle::{ALL_DOCUMENTS, Absence, document_path};

/// The documents that entries name and the bundle does not have, by the reason.
pub(super) struct Missing {
    named: BTreeSet<ContentDigest>,
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

impl Missing {
    pub(super) fn of(contents: &Contents<'_>, histories: &[(ItemId, History<'_, '_>)]) -> Missing {
        let named: BTreeSet<_> = documents_named(contents, histories).into_iter().cloned().collect();
        let erasures = erasures(contents);
        let mut owners = BTreeMap::new();
        for (id, history) in histories {
            for entry in history.iter().map(|held| &held.entry) {
                let digests = [&entry.content, &entry.comment, &entry.inputs].into_iter().flatten();
                owners.extend(digests.map(|digest| (digest, id)));
            }
        }
        let left_out: BTreeSet<_> = contents.left_out.iter().map(String::as_str).collect();
        let mut by_reason = BTreeMap::new();
        for digest in named.iter().filter(|digest| !contents.documents.contains_key(*digest)) {
            let erased = owners.get(digest).and_then(|id| erasures.get(*id));
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
        Missing { named, by_reason }
    }

    pub(super) fn count(&self) -> usize {
        self.by_reason.values().sum()
    }

    pub(super) fn check(&self, contents: &Contents<'_>, faults: &mut Vec<Fault>) -> Finding<Check> {
        for digest in contents.documents.keys().filter(|digest| !self.named.contains(*digest)) {
            let fault = Fault::new(Check::Documents, "document", "no entry of this bundle names it");
            faults.push(fault.in_file(document_path(digest.as_str())));
        }
        let there = contents.documents.len();
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
fn erasures(contents: &Contents<'_>) -> BTreeMap<ItemId, u64> {
    let entries = contents.entries.iter().map(|held| &held.entry);
    let erased = entries.filter_map(|entry| match entry.details() {
        Some(Details::DocumentsErased(erased)) => Some((erased.item, entry.index)),
        _ => None,
    });
    erased.collect()
}
