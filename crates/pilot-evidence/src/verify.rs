//! Verification: whether a bundle is intact, signed and complete, and whether everything in it followed the rules.
//!
//! A pure function of the bundle's bytes and the trusted keys. It needs no network, no server and no clock, and little
//! memory: entries and documents are read from the bundle when they are needed.

mod chain;
pub(crate) mod contents;
pub(crate) mod items;
mod log;
mod missing;
mod packed;
mod pins;
mod progress;
pub(crate) mod register;
mod role_maps;
mod text;
mod times;
pub mod trust;
mod verdict;

use std::collections::BTreeSet;
use std::io;

use pilot_core::certain::Certain as _;
use pilot_core::document::ContentDigest;
use pilot_core::item::WorkflowRef;

use crate::bundle::source::Source;
use crate::bundle::{CHECKPOINT, Scope};
use crate::checkpoint::Checkpoint;

use chain::Carried;
pub use chain::Predecessor;
use contents::{Contents, OpenError, open};
use items::{Findings, History, histories, judge};
use log::Roots;
use missing::Named;
pub use progress::{Stage, Watch};
use register::{Credentials, Register};
use role_maps::Starts;
pub use times::CLOCK_TOLERANCE;
pub use trust::{Pins, Trust};
use verdict::counted;
pub use verdict::{About, Check, Conclusion, Control, Fault, Finding, Gap, ItemVerdict, Open, Outcome, Verdict};

/// Verifies a bundle in memory.
pub fn verify(bundle: &[u8], trust: &Trust) -> Verdict {
    verify_from(&bundle.into(), trust, &mut |_, _, _| {}).certain(IN_MEMORY)
}

/// Verifies a bundle that is read piece by piece. The error is of whatever it is read from.
pub fn verify_from(source: &Source<'_>, trust: &Trust, watch: &mut Watch<'_>) -> io::Result<Verdict> {
    match opened(source, trust, watch)? {
        Ok(contents) => examine(&contents, trust, watch),
        Err(verdict) => Ok(*verdict),
    }
}

/// A bundle's contents, or the verdict on one that cannot even be opened. The outer error is of whatever it is read from.
pub(crate) fn opened<'s>(
    source: &'s Source<'s>,
    trust: &Trust,
    watch: &mut Watch<'_>,
) -> io::Result<Result<Contents<'s>, Box<Verdict>>> {
    match open(source, &trust.key, watch) {
        Ok(contents) => Ok(Ok(contents)),
        Err(OpenError::Faults(faults)) => Ok(Err(Box::new(unopened(faults)))),
        Err(OpenError::Unreadable(error)) => Err(error),
    }
}

pub(crate) const IN_MEMORY: &str = "bytes in memory can always be read";

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

/// Verifies the bundle of a period, and returns what the next one must follow. The inner error is its verdict.
pub fn predecessor(
    source: &Source<'_>,
    trust: &Trust,
    watch: &mut Watch<'_>,
) -> io::Result<Result<Predecessor, Box<Verdict>>> {
    let contents = match opened(source, trust, watch)? {
        Ok(contents) => contents,
        Err(verdict) => return Ok(Err(verdict)),
    };
    let Examined { mut verdict, newest, roots, carried } = examined(&contents, trust, watch)?;
    let end = match contents.manifest.scope {
        Scope::Period { end, .. } if verdict.holds => Some(end),
        Scope::Item(_) if verdict.holds => {
            let what = "it is about an item: only a period can be followed";
            verdict.refute(Fault::new(Check::Completeness, "scope", what));
            None
        }
        _ => None,
    };
    let found = end.and_then(|end| Some((end, *roots.get(&end)?, newest?)));
    Ok(found.map(|(end, root, newest)| Predecessor { end, root, newest, carried }).ok_or_else(|| Box::new(verdict)))
}

pub(crate) fn examine(contents: &Contents<'_>, trust: &Trust, watch: &mut Watch<'_>) -> io::Result<Verdict> {
    Ok(examined(contents, trust, watch)?.verdict)
}

/// A verdict, and what the next period's bundle can build on.
struct Examined {
    verdict: Verdict,
    newest: Option<Checkpoint>,
    roots: Roots,
    carried: Option<Carried>,
}

fn examined(contents: &Contents<'_>, trust: &Trust, watch: &mut Watch<'_>) -> io::Result<Examined> {
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
            let verdict = Verdict::broken(checks, vec![fault]);
            return Ok(Examined { verdict, newest: None, roots: Roots::new(), carried: None });
        }
    };
    checks.push(Finding::holds(Check::Checkpoint, format!("{} entries, signed by {}", newest.size, newest.origin)));
    let witnessed = log::witnesses(contents, trust, &mut faults);
    checks.push(witnessed.finding.clone());
    let (inclusion, mut roots) = log::inclusion(contents, &newest, trust, &asked(contents, trust), &mut faults)?;
    checks.push(inclusion);
    let mut gaps = BTreeSet::new();
    checks.push(log::completeness(contents, &newest, &witnessed, &mut faults, &mut gaps)?);
    checks.push(times::times(contents, &newest, trust, &mut roots, &mut faults));
    checks.push(pins::pins(contents, &newest, trust, &roots, &mut faults)?);
    let mut findings = Findings { faults, unasked: Vec::new() };
    let mut carried = carried(contents, trust);
    let Replayed { items, named, legality } = replayed(contents, carried.as_mut(), &mut findings, watch)?;
    let missing = named.missing(contents)?;
    gaps.extend((missing.count() > 0).then_some(Gap::LeftOut));
    checks.push(missing.check(contents, &mut findings.faults));
    checks.push(legality);
    let Findings { mut faults, unasked } = findings;
    settle(&mut checks, &mut faults);
    let controls = over_all(&items);
    let is_open = |outcome: Outcome| outcome == Outcome::NotChecked;
    let open = checks.iter().any(|check| is_open(check.outcome)) || controls.iter().any(|one| is_open(one.outcome));
    gaps.extend((trust.strict && open).then_some(Gap::Strict));
    let verdict = Verdict {
        holds: faults.is_empty(),
        verdict: match (faults.is_empty(), gaps.is_empty()) {
            (false, _) => Conclusion::DoesNotHold,
            (true, true) => Conclusion::Holds,
            (true, false) => Conclusion::HoldsAsFarAsChecked,
        },
        gaps,
        about: Some(about(contents, &newest, trust)),
        controls,
        checks,
        items,
        unasked,
        faults,
    };
    Ok(Examined { verdict, newest: Some(newest), roots, carried })
}

/// The sizes at which the log's root is needed.
fn asked(contents: &Contents<'_>, trust: &Trust) -> BTreeSet<u64> {
    let pinned = trust.pins.checkpoint.iter().map(|checkpoint| checkpoint.size);
    let previous = trust.pins.after.iter().flat_map(Predecessor::roots).map(|(size, _)| size);
    contents.kept.keys().chain(contents.stamped.keys()).copied().chain(pinned).chain(previous).collect()
}

/// What is known from the ledger's first entry on: nothing yet, what the previous period knew, or `None`.
fn carried(contents: &Contents<'_>, trust: &Trust) -> Option<Carried> {
    match &contents.manifest.scope {
        Scope::Period { first: 0, .. } => Some(Carried::default()),
        Scope::Period { first, .. } => {
            trust.pins.after.as_ref().filter(|after| after.end == *first).and_then(|after| after.carried.clone())
        }
        Scope::Item(_) => None,
    }
}

/// The register of credentials as it was before this bundle's first entry; `None` if the ledger is not followed from
/// its first entry to there.
pub(crate) fn register_before(contents: &Contents<'_>, trust: &Trust) -> Option<Register> {
    carried(contents, trust).map(|carried| carried.register)
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
        documents: contents.documents().len(),
        left_out: contents.left_out.clone(),
        checkpoint: ContentDigest::of_bytes(newest.text().as_bytes()).to_string(),
        definitions: contents.definitions.values().map(|definition| WorkflowRef::from(&**definition)).collect(),
        role_maps: contents.role_maps.keys().cloned().collect(),
    }
}

/// What asking the rules again gave.
struct Replayed {
    items: Vec<ItemVerdict>,
    named: Named,
    legality: Finding<Check>,
}

/// Reads the items one after another, and asks the rules again for each.
fn replayed(
    contents: &Contents<'_>,
    mut carried: Option<&mut Carried>,
    findings: &mut Findings,
    watch: &mut Watch<'_>,
) -> io::Result<Replayed> {
    let starts = Starts::of(contents, &mut findings.faults)?;
    let credentials = Credentials::follow(contents, carried.as_mut().map(|carried| &mut carried.register))?;
    let histories = histories(contents);
    let (mut items, mut named) = (Vec::with_capacity(histories.len()), Named::of(contents));
    let (mut done, total) = (0, histories.iter().map(History::len).sum::<usize>() as u64);
    for item in &histories {
        watch(Stage::Replaying, done, total);
        done += item.len() as u64;
        let history = item.read(contents)?;
        for held in &history {
            named.take(contents, Some(item.id), &held.entry);
        }
        items.extend(judge(contents, item.id, &history, &starts, &credentials, findings)?);
        if let Some(carried) = &mut carried {
            carried.open_items.follow(contents, item.id, &history, &mut findings.faults);
        }
    }
    let legality = legality(contents, histories.len(), carried.is_some(), findings);
    Ok(Replayed { items, named, legality })
}

fn legality(contents: &Contents<'_>, items: usize, from_the_start: bool, findings: &Findings) -> Finding<Check> {
    let count = counted(items, "item");
    let failed = findings.faults.iter().filter(|fault| fault.check == Check::Legality).count();
    let limited = contents.definitions.values().any(|definition| definition.rules().one_open_per_creator);
    let limits = if limited && !from_the_start {
        "; open items per creator not checked: that needs the ledger from entry 0, or --after"
    } else {
        ""
    };
    match (failed, findings.unasked.len()) {
        (0, 0) => Finding::holds(Check::Legality, format!("{count}, every move replayed{limits}")),
        (0, open) => {
            let open = counted(open, "question");
            Finding::not_checked(
                Check::Legality,
                format!("{count}, every move replayed; {open} left open because content was left out{limits}"),
            )
        }
        (failed, _) => Finding::fails(Check::Legality, counted(failed, "fault")),
    }
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
