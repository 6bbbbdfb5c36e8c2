//! Whether the entries are in the signed log, and whether a period is complete.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use pilot_core::entry::EntryType;
use pilot_core::entry::details::Details;
use pilot_core::item::ItemId;
use pilot_core::time::Time;

use super::contents::{Contents, Mark};
use super::trust::Trust;
use super::verdict::{Check, Fault, Finding, Gap};
use crate::bundle::{CHECKPOINT, CHECKPOINT_FROM, CHECKPOINT_TO, CONSISTENCY, EDGE_FROM, Scope};
use crate::checkpoint::Checkpoint;
use crate::merkle::{Hash, Peaks};
use crate::note::Note;
use crate::proof::{check_consistency, check_inclusion};
use crate::tlog_proof::TlogProof;

/// The roots of the log that the bundle proves, by size. All of them belong to the tree of the newest checkpoint.
pub(super) type Roots = BTreeMap<u64, Hash>;

/// The bundle's newest checkpoint.
pub(super) fn checkpoint(contents: &Contents<'_>, trust: &Trust, path: &'static str) -> Result<Checkpoint, Fault> {
    let wrong = |what: String| Fault::new(Check::Checkpoint, "checkpoint", what).in_file(path);
    let note = contents.text(path).ok_or_else(|| wrong("it is missing".into()))?;
    Checkpoint::open(note, &trust.key).map_err(|error| wrong(error.to_string()))
}

/// What the known witnesses say about the newest checkpoint.
pub(super) struct Witnessed {
    pub finding: Finding<Check>,
    /// The latest moment that the required witnesses vouch for; `None` if none are required, or too few have cosigned.
    pub vouched_at: Option<Time>,
}

pub(super) fn witnesses(contents: &Contents<'_>, trust: &Trust, faults: &mut Vec<Fault>) -> Witnessed {
    let (check, policy) = (Check::Witnesses, &trust.policy);
    if policy.witnesses().is_empty() {
        let why = "no witness key was given, so only the log itself vouches for its history";
        return Witnessed { finding: Finding::not_checked(check, why), vouched_at: None };
    }
    let note = contents.text(CHECKPOINT).unwrap_or_default();
    let cosigned = match Note::parse(note).and_then(|note| policy.cosigned(&note)) {
        Ok(cosigned) => cosigned,
        Err(error) => {
            faults.push(Fault::new(check, "witnesses", error.to_string()).in_file(CHECKPOINT));
            return Witnessed { finding: Finding::fails(check, error.to_string()), vouched_at: None };
        }
    };
    let times: Vec<_> = cosigned.iter().map(|(_, time)| *time).collect();
    let signed =
        cosigned.iter().filter_map(|(witness, time)| Some(format!("{} at {}", witness.name, seconds((*time)?))));
    let signed: Vec<_> = signed.collect();
    let needed = policy.needed();
    let detail = format!("{} of {}, {needed} needed", signed.len(), times.len());
    if !policy.is_reached(&times) {
        faults.push(Fault::new(check, "witnesses", format!("cosigned by {detail}")).in_file(CHECKPOINT));
        return Witnessed { finding: Finding::fails(check, detail), vouched_at: None };
    }
    let finding = Finding::holds(check, format!("{detail}: {}", signed.join(", ")));
    let vouched_at = policy.vouched_at(&times).filter(|_| policy.requires_witnesses()).map(moment);
    Witnessed { finding, vouched_at }
}

/// The moment at which a cosignature was made, in seconds since 1970.
pub(super) fn moment(seconds: u64) -> Time {
    Time::from_unix_micros(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000))
}

fn seconds(time: u64) -> String {
    moment(time).to_string().replace(".000000", "")
}

/// Checks every entry against the log's tree. The roots of the sizes that are `asked` for are computed on the way, if
/// the entries of a period show them.
pub(super) fn inclusion(
    contents: &Contents<'_>,
    newest: &Checkpoint,
    trust: &Trust,
    asked: &BTreeSet<u64>,
    faults: &mut Vec<Fault>,
) -> io::Result<(Finding<Check>, Roots)> {
    let check = Check::Inclusion;
    let mut roots = Roots::from([(newest.size, newest.root)]);
    let range = match contents.manifest.scope {
        Scope::Item(_) => 0..0,
        Scope::Period { first, end, .. } => first..end,
    };
    let mut single = 0_usize;
    for mark in contents.entries.iter().filter(|mark| !range.contains(&mark.index)) {
        single += 1;
        faults.extend(one(contents, newest, mark)?.err());
    }
    let is_needed = |index: u64| !range.contains(&index) && contents.find(index).is_some();
    for (index, path) in contents.proofs().filter(|(index, _)| !is_needed(*index)) {
        let fault = Fault::new(check, "proof", format!("no entry {index} of this bundle needs it"));
        faults.push(fault.in_file(path));
    }
    if !range.is_empty() || matches!(contents.manifest.scope, Scope::Period { .. }) {
        match period(contents, newest, trust, &range, asked) {
            Ok(shown) => roots.extend(shown),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.iter().any(|fault| fault.check == check) {
        return Ok((Finding::fails(check, "an entry is not the one that was signed"), roots));
    }
    let several = range.end.saturating_sub(range.start);
    let detail = match (several, single) {
        (0, single) => format!("{single} entries, each with its own proof"),
        (several, 0) => format!("{several} entries, as one piece of the tree"),
        (several, single) => format!("{several} entries as one piece of the tree, {single} with their own proofs"),
    };
    Ok((Finding::holds(check, detail), roots))
}

fn one(contents: &Contents<'_>, newest: &Checkpoint, mark: &Mark) -> io::Result<Result<(), Fault>> {
    let index = mark.index;
    let wrong = |path: &str, what: String| Fault::new(Check::Inclusion, "proof", what).in_file(path).at_entry(index);
    let Some((path, text)) = contents.proof(index)? else {
        return Ok(Err(wrong(contents.file(mark), "nothing proves that it is in the log".into())));
    };
    let proof = match TlogProof::parse(&text) {
        Ok(proof) => proof,
        Err(error) => return Ok(Err(wrong(path, error.to_string()))),
    };
    // The same bytes, so their signature has already been checked.
    if Some(proof.checkpoint) != contents.text(CHECKPOINT) || proof.index != index {
        return Ok(Err(wrong(path, "it does not belong to this entry and the bundle's checkpoint".into())));
    }
    let proved = check_inclusion(mark.leaf, index, newest.size, &proof.path, newest.root);
    Ok(proved.map_err(|error| wrong(contents.file(mark), format!("it is not entry {index} of the log: {error}"))))
}

/// The entries of a period, appended to the tree before it, must give the tree after it; and the log must have
/// continued from there.
fn period(
    contents: &Contents<'_>,
    newest: &Checkpoint,
    trust: &Trust,
    range: &std::ops::Range<u64>,
    asked: &BTreeSet<u64>,
) -> Result<Roots, Fault> {
    let (first, end) = (range.start, range.end);
    let wrong = |path: &str, what: String| Fault::new(Check::Inclusion, "proof", what).in_file(path);
    let (from, to) = (checkpoint(contents, trust, CHECKPOINT_FROM)?, checkpoint(contents, trust, CHECKPOINT_TO)?);
    for (path, size, expected) in [(CHECKPOINT_FROM, from.size, first), (CHECKPOINT_TO, to.size, end)] {
        if size != expected {
            return Err(wrong(path, format!("it covers {size} entries; the manifest says {expected}")));
        }
    }
    let mut peaks = Peaks::new(first, &hashes(contents, EDGE_FROM)?)
        .ok_or_else(|| wrong(EDGE_FROM, format!("a tree of {first} entries has a different number of peaks")))?;
    if peaks.root() != from.root {
        return Err(wrong(EDGE_FROM, "it does not lead to the root of checkpoints/from".into()));
    }
    let mut roots = Roots::from([(first, from.root), (end, to.root)]);
    let inside = contents.entries.iter().filter(|mark| (first..end).contains(&mark.index));
    for (mark, index) in inside.clone().zip(first..) {
        if mark.index != index {
            let missing = Fault::new(Check::Completeness, "gap", format!("entry {index} is missing"));
            return Err(missing.in_file(contents.file(mark)).at_entry(index));
        }
        peaks.push(mark.leaf);
        if asked.contains(&(index + 1)) {
            roots.insert(index + 1, peaks.root());
        }
    }
    let count = inside.count() as u64;
    if count != end.saturating_sub(first) {
        let what = format!("the period has {} entries, but {count} are here", end.saturating_sub(first));
        return Err(Fault::new(Check::Completeness, "gap", what).at_entry(first.saturating_add(count)));
    }
    if peaks.root() != to.root {
        return Err(wrong(
            CHECKPOINT_TO,
            "the entries of the period do not lead to its root: one of them is not the log's".into(),
        ));
    }
    let consistency = hashes(contents, CONSISTENCY)?;
    check_consistency(to.size, to.root, newest.size, newest.root, &consistency)
        .map_err(|error| wrong(CONSISTENCY, format!("the checkpoint does not continue checkpoints/to: {error}")))?;
    Ok(roots)
}

fn hashes(contents: &Contents<'_>, path: &'static str) -> Result<Vec<Hash>, Fault> {
    let missing = || Fault::new(Check::Inclusion, "proof", "it is missing").in_file(path);
    hash_list(path, contents.text(path).ok_or_else(missing)?)
}

pub(super) fn hash_list(path: &str, text: &str) -> Result<Vec<Hash>, Fault> {
    let wrong =
        || Fault::new(Check::Inclusion, "proof", "it is not a list of base64 hashes, one per line").in_file(path);
    if !text.is_empty() && !text.ends_with('\n') {
        return Err(wrong());
    }
    text.split_terminator('\n').map(|line| Hash::from_base64(line).ok_or_else(wrong)).collect()
}

/// Whether the entries are those the manifest promises: the period's, or the item's.
pub(super) fn completeness(
    contents: &Contents<'_>,
    newest: &Checkpoint,
    witnessed: &Witnessed,
    faults: &mut Vec<Fault>,
    gaps: &mut BTreeSet<Gap>,
) -> io::Result<Finding<Check>> {
    let check = Check::Completeness;
    let finding = match &contents.manifest.scope {
        Scope::Item(id) => of_item(contents, id, faults)?,
        Scope::Period { .. } => around(contents, newest, witnessed, faults, gaps),
    };
    let mut earlier = None;
    for mark in &contents.entries {
        if earlier.is_some_and(|earlier| earlier > mark.at) {
            let fault = Fault::new(check, "time_order", "its time is before that of an entry with a lower index");
            faults.push(fault.in_file(contents.file(mark)).at_entry(mark.index));
        }
        earlier = Some(mark.at);
    }
    let is_faulty = faults.iter().any(|fault| fault.check == check);
    Ok(if is_faulty { Finding::fails(check, "see the faults") } else { finding })
}

/// Its entries, the starts in force, and the erasure of what was written about it.
fn of_item(contents: &Contents<'_>, id: &ItemId, faults: &mut Vec<Fault>) -> io::Result<Finding<Check>> {
    let check = Check::Completeness;
    for mark in &contents.entries {
        let belongs = match mark.r#type {
            _ if contents.item(mark) == Some(id) => true,
            EntryType::ServiceStarted => true,
            EntryType::DocumentsErased => {
                let details = contents.entry(mark)?.details();
                matches!(details, Some(Details::DocumentsErased(erased)) if erased.item == *id)
            }
            _ => false,
        };
        if !belongs {
            let fault = Fault::new(check, "scope", format!("it is not about item {id}"));
            faults.push(fault.in_file(contents.file(mark)).at_entry(mark.index));
        }
    }
    if !contents.items.contains(id) {
        faults.push(Fault::new(check, "scope", "no entry is about the item").of_item(id));
    }
    // An item's bundle cannot show what it does not contain.
    Ok(Finding::not_checked(
        check,
        "the item's versions are gap-free from its creation on; only a period's bundle can show that none follows",
    ))
}

/// The entries just before and after a period show that its range is not too narrow.
fn around(
    contents: &Contents<'_>,
    newest: &Checkpoint,
    witnessed: &Witnessed,
    faults: &mut Vec<Fault>,
    gaps: &mut BTreeSet<Gap>,
) -> Finding<Check> {
    let check = Check::Completeness;
    let Scope::Period { from, to, first, end } = contents.manifest.scope else {
        return Finding::holds(check, String::new());
    };
    let before = first.checked_sub(1).and_then(|index| contents.find(index));
    let after = Some(end).filter(|end| *end < newest.size).and_then(|index| contents.find(index));
    let mut outside = |mark: Option<&Mark>, is_wrong: bool, what: &str| {
        if let Some(mark) = mark.filter(|_| is_wrong) {
            let fault = Fault::new(check, "scope", what.to_owned());
            faults.push(fault.in_file(contents.file(mark)).at_entry(mark.index));
        }
    };
    outside(
        before,
        before.is_some_and(|mark| mark.at >= from),
        "its time is in the period, but the range leaves it out",
    );
    outside(after, after.is_some_and(|mark| mark.at < to), "its time is in the period, but the range leaves it out");
    for mark in contents.entries.iter().filter(|mark| (first..end).contains(&mark.index)) {
        let is_outside = mark.at < from || mark.at >= to;
        outside(Some(mark), is_outside, "its time is not in the period");
    }
    // Leaving them out could hide that the edge of the period was moved.
    let withheld = |index: u64, side: &str| {
        let what = format!("the entry just {side} the period is missing, so nothing shows that the range is complete");
        Fault::new(check, "scope", what).at_entry(index)
    };
    let has_before = first == 0 || before.is_some();
    faults.extend(first.checked_sub(1).filter(|_| !has_before).map(|index| withheld(index, "before")));
    faults.extend(Some(end).filter(|end| *end < newest.size && after.is_none()).map(|index| withheld(index, "after")));
    let count = end.saturating_sub(first);
    let without_gap = format!("{count} entries from {first} on without a gap");
    if end < newest.size {
        return Finding::holds(check, format!("{without_gap}; the entries on either side are outside the period"));
    }
    // The period ends where the log ends: only a cosignature from after its end shows that nothing else came.
    match witnessed.vouched_at {
        Some(vouched) if vouched.plus(SECOND) > to => {
            Finding::holds(check, format!("{without_gap}; witnesses saw the log end there at {vouched}"))
        }
        Some(vouched) => {
            gaps.insert(Gap::EndOfPeriod);
            let later = format!("witnesses saw the log end there at {vouched}, before the period was over");
            Finding::not_checked(
                check,
                format!("{without_gap}, but nothing shows that none is missing at its end: {later}"),
            )
        }
        None => Finding::not_checked(
            check,
            format!("{without_gap}; that none is missing at its end is only the log's word: no witness is required"),
        ),
    }
}

/// Cosignatures are dated in whole seconds.
const SECOND: std::time::Duration = std::time::Duration::from_secs(1);
