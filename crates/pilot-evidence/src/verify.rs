//! Verification: whether a bundle is intact, signed and complete, and whether everything in it followed the rules.
//!
//! A pure function of the bundle's bytes and the trusted keys. It needs no network, no server and no clock.

pub(crate) mod contents;
pub(crate) mod items;
mod log;
mod role_maps;
mod text;
pub mod trust;
mod verdict;

use crate::bundle::{CHECKPOINT, Scope};
use crate::checkpoint::Checkpoint;

use contents::{Contents, open};
use items::{Findings, History, documents_named, histories, judge, one_at_a_time};
use role_maps::Starts;
pub use trust::Trust;
pub use verdict::{About, Check, Conclusion, Control, Fault, Finding, ItemVerdict, Open, Outcome, Verdict};

pub fn verify(bundle: &[u8], trust: &Trust) -> Verdict {
    match open(bundle, &trust.key) {
        Ok(contents) => examine(&contents, trust),
        Err(faults) => unopened(faults),
    }
}

/// The verdict on a bundle that could not even be opened: later checks would trust what nobody signed.
pub(crate) fn unopened(faults: Vec<Fault>) -> Verdict {
    let failed = faults.first().map_or(Check::Container, |fault| fault.check);
    let finding = |check: Check| match check.cmp(&failed) {
        std::cmp::Ordering::Less => Finding::holds(check, ""),
        std::cmp::Ordering::Equal => Finding::fails(check, counted(faults.len(), "fault")),
        std::cmp::Ordering::Greater => Finding::not_checked(check, format!("the {} must hold first", failed.title())),
    };
    let checks = Check::ALL.into_iter().map(finding).collect();
    Verdict::broken(checks, faults)
}

pub(crate) fn examine(contents: &Contents<'_>, trust: &Trust) -> Verdict {
    let mut faults = Vec::new();
    let left_out = match contents.left_out.len() {
        0 => String::new(),
        count => format!(", {count} left out"),
    };
    let mut checks = vec![
        Finding::holds(Check::Container, "every byte is accounted for"),
        Finding::holds(Check::Manifest, format!("signed by {}", trust.key.name)),
        Finding::holds(Check::Files, format!("{} files as listed{left_out}", contents.file_count)),
    ];
    let newest = match log::checkpoint(contents, trust, CHECKPOINT) {
        Ok(newest) => newest,
        Err(fault) => {
            checks.push(Finding::fails(Check::Checkpoint, fault.what.clone()));
            let later = Check::ALL.into_iter().filter(|check| *check > Check::Checkpoint);
            checks.extend(later.map(|check| Finding::not_checked(check, "the checkpoint must hold first")));
            return Verdict::broken(checks, vec![fault]);
        }
    };
    checks.push(Finding::holds(Check::Checkpoint, format!("{} entries, signed by {}", newest.size, newest.origin)));
    checks.push(log::witnesses(contents, trust, &mut faults));
    checks.push(log::inclusion(contents, &newest, trust, &mut faults));
    checks.push(log::completeness(contents, &newest, &mut faults));
    let histories = histories(contents);
    let missing = missing(contents, &histories);
    checks.push(documents(contents, &histories, missing, &mut faults));
    let mut findings = Findings { faults, unasked: Vec::new() };
    let (items, legality) = legality(contents, &histories, &mut findings);
    checks.push(legality);
    let Findings { mut faults, unasked } = findings;
    settle(&mut checks, &mut faults);
    Verdict {
        holds: faults.is_empty(),
        verdict: match (faults.is_empty(), missing) {
            (false, _) => Conclusion::DoesNotHold,
            (true, 0) => Conclusion::Holds,
            (true, _) => Conclusion::HoldsAsFarAsChecked,
        },
        about: Some(about(contents, &newest, trust)),
        controls: over_all(&items),
        checks,
        items,
        unasked,
        faults,
    }
}

/// Sorts faults by check, then by entry; a check with a fault does not hold.
fn settle(checks: &mut [Finding<Check>], faults: &mut [Fault]) {
    faults.sort_by_key(|fault| (fault.check, fault.entry));
    for check in checks {
        let count = faults.iter().filter(|fault| fault.check == check.name).count();
        if count > 0 && check.outcome != Outcome::Fails {
            *check = Finding::fails(check.name, counted(count, "fault"));
        }
    }
}

fn about(contents: &Contents<'_>, newest: &Checkpoint, trust: &Trust) -> About {
    About {
        origin: contents.manifest.origin.clone(),
        key: trust.key.to_string(),
        scope: contents.manifest.scope.clone(),
        made: contents.manifest.made,
        size: newest.size,
        root: newest.root.to_base64(),
        entries: contents.entries.len(),
        documents: contents.documents.len(),
        left_out: contents.left_out.clone(),
    }
}

/// How many documents that the entries name are missing: erased, or left out.
fn missing(contents: &Contents<'_>, histories: &[(pilot_core::item::ItemId, History<'_, '_>)]) -> usize {
    documents_named(contents, histories).into_iter().filter(|digest| !contents.documents.contains_key(*digest)).count()
}

fn documents(
    contents: &Contents<'_>,
    histories: &[(pilot_core::item::ItemId, History<'_, '_>)],
    missing: usize,
    faults: &mut Vec<Fault>,
) -> Finding<Check> {
    let named = documents_named(contents, histories);
    for digest in contents.documents.keys().filter(|digest| !named.contains(digest)) {
        let fault = Fault::new(Check::Documents, "document", "no entry of this bundle names it");
        faults.push(fault.in_file(crate::bundle::document_path(digest.as_str())));
    }
    let there = contents.documents.len();
    match missing {
        0 => Finding::holds(Check::Documents, format!("{there} documents, each matching the digest in its entry")),
        missing => Finding::not_checked(
            Check::Documents,
            format!("{there} documents that match the digests in their entries; {missing} erased or left out"),
        ),
    }
}

fn legality(
    contents: &Contents<'_>,
    histories: &[(pilot_core::item::ItemId, History<'_, '_>)],
    findings: &mut Findings,
) -> (Vec<ItemVerdict>, Finding<Check>) {
    let starts = Starts::of(contents, &mut findings.faults);
    let judged = histories.iter().filter_map(|(id, history)| judge(contents, id, history, &starts, findings));
    let items: Vec<_> = judged.collect();
    let from_the_start = matches!(contents.manifest.scope, Scope::Period { first: 0, .. });
    if from_the_start {
        one_at_a_time(contents, histories, &mut findings.faults);
    }
    let count = counted(histories.len(), "item");
    let failed = findings.faults.iter().filter(|fault| fault.check == Check::Legality).count();
    let limited = contents.definitions.values().any(|definition| definition.rules().one_open_per_creator);
    let limits = if limited && !from_the_start {
        "; open items per creator not checked: that needs the ledger from entry 0"
    } else {
        ""
    };
    let finding = match (failed, findings.unasked.len()) {
        (0, 0) => Finding::holds(Check::Legality, format!("{count}, every move replayed{limits}")),
        (0, open) => {
            let open = counted(open, "question");
            Finding::not_checked(
                Check::Legality,
                format!("{count}, every move replayed; {open} left open because content was left out{limits}"),
            )
        }
        (failed, _) => Finding::fails(Check::Legality, counted(failed, "fault")),
    };
    (items, finding)
}

/// Each control over all items: one failure is enough to fail it.
fn over_all(items: &[ItemVerdict]) -> Vec<Finding<Control>> {
    let of = |control: Control| {
        let found = items.iter().flat_map(|item| &item.controls).filter(move |finding| finding.name == control);
        let (mut holds, mut fails, mut open, mut why) = (0_usize, 0_usize, 0_usize, None);
        for finding in found {
            match finding.outcome {
                Outcome::Holds => holds += 1,
                Outcome::Fails => fails += 1,
                Outcome::NotChecked => {
                    open += 1;
                    why.get_or_insert(finding.detail.as_str());
                }
            }
        }
        let detail = format!("in {holds} of {}", counted(items.len(), "item"));
        match (fails, open) {
            (0, 0) => Finding::holds(control, detail),
            (0, open) => Finding::not_checked(control, format!("{detail}; not in {open}: {}", why.unwrap_or_default())),
            (fails, _) => Finding::fails(control, format!("{detail}; fails in {fails}")),
        }
    };
    Control::ALL.into_iter().map(of).collect()
}

pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
