//! Whether the times in the entries agree with those of witnesses and timestamping authorities.
//!
//! A cosignature or a timestamp dates a tree: what is in it was there at that time, and what is not came later. So every
//! dated checkpoint bounds the times of all entries, on one side or the other.

use std::time::Duration;

use pilot_core::time::Time;

use super::contents::{Contents, Mark};
use super::log::{Roots, hash_list, moment};
use super::trust::Trust;
use super::verdict::{Check, Fault, Finding, counted};
use crate::bundle::{CHECKPOINT, consistency_path, stamped_path, timestamp_path};
use crate::checkpoint::Checkpoint;
use crate::note::Note;
use crate::proof::check_consistency;
use crate::timestamp::{Authorities, Timestamp};

/// How far the clocks of the service and of a witness may be apart: as far as the service lets its own clock leap.
pub const CLOCK_TOLERANCE: Duration = Duration::from_mins(10);

/// A tree that known witnesses have cosigned, or that has a timestamp. Of several witnesses the one counts that says least, so a fault takes all
/// of them.
struct Dated {
    size: u64,
    earliest: Time,
    latest: Time,
}

/// Opens the cosigned checkpoints of the bundle, adds their roots, and compares the times of all entries with theirs.
pub(super) fn times(
    contents: &Contents<'_>,
    newest: &Checkpoint,
    trust: &Trust,
    roots: &mut Roots,
    faults: &mut Vec<Fault>,
) -> Finding<Check> {
    let check = Check::Times;
    let before = faults.len();
    let mut dated = Vec::new();
    for (size, (path, note)) in &contents.kept {
        match kept(contents, newest, trust, roots, *size, path, note) {
            Ok(checkpoint) => {
                roots.insert(*size, checkpoint.root);
                dated.extend(cosigned(trust, *size, path, note, faults));
            }
            Err(fault) => faults.push(fault),
        }
    }
    let cosigned_count = dated.len();
    let mut doubt = None;
    for (size, note) in &contents.stamped {
        match stamped(contents, newest, trust, roots, *size, note) {
            Ok((checkpoint, at)) => {
                roots.insert(*size, checkpoint.root);
                match at {
                    Ok(at) => dated.push(Dated { size: *size, earliest: at, latest: at }),
                    Err(why) => doubt = why.map(|why| format!("{}: {why}", timestamp_path(*size))).or(doubt),
                }
            }
            Err(fault) => faults.push(fault),
        }
    }
    let stamped_count = dated.len() - cosigned_count;
    for size in contents.timestamps.keys().filter(|size| !contents.stamped.contains_key(size)) {
        let fault = Fault::new(check, "timestamp", "the checkpoint that it is of is missing");
        faults.push(fault.in_file(timestamp_path(*size)));
    }
    let note = contents.text(CHECKPOINT).unwrap_or_default();
    // The witnesses' check reports what is wrong with these.
    dated.extend(cosigned(trust, newest.size, CHECKPOINT, note, &mut Vec::new()));
    let cosigned_count = dated.len() - stamped_count;
    let reach = dated.iter().map(|one| one.size).max().unwrap_or(0);
    let bounds = Bounds::of(dated);
    faults.extend(bounds.too_late(contents));
    faults.extend(bounds.too_early(contents));
    if faults.len() > before {
        return Finding::fails(check, "see the faults");
    }
    let doubt = doubt.map(|doubt| format!("; not trusted, so not counted: {doubt}")).unwrap_or_default();
    let last = contents.entries.last().map_or(0, |mark| mark.index);
    if reach > 0 && last >= reach {
        let what = format!("the entries before {reach} fit; nobody who is trusted has dated those after them{doubt}");
        return Finding::not_checked(check, what);
    }
    match (cosigned_count, stamped_count) {
        (0, 0) if trust.policy.witnesses().is_empty() && trust.authorities.is_none() => {
            Finding::not_checked(check, "no witness key was given, so only the service's own clock dates the entries")
        }
        (0, 0) => Finding::not_checked(
            check,
            format!("nobody whose key or certificate was given has dated a checkpoint of this bundle{doubt}"),
        ),
        (1, 0) => Finding::holds(check, "no entry is later than its cosignature"),
        (count, 0) => Finding::holds(check, format!("every entry fits the times of {count} cosigned checkpoints")),
        (0, count) => {
            let stamped = counted(count, "timestamp");
            Finding::holds(check, format!("every entry fits the times of {stamped}{doubt}"))
        }
        (cosigned, stamped) => {
            let (cosigned, stamped) = (counted(cosigned, "cosigned checkpoint"), counted(stamped, "timestamp"));
            Finding::holds(check, format!("every entry fits the times of {cosigned} and {stamped}{doubt}"))
        }
    }
}

/// When it was timestamped; or why that does not count, if a reader wanted it to.
type StampedAt = Result<Time, Option<String>>;

/// A timestamped checkpoint must be one of the log, the log must have continued it, and the timestamp must be of it. Its
/// time counts if its authority is trusted. One that is not says nothing, as an unknown witness does: anyone on the way to
/// an authority could have answered in its place.
fn stamped(
    contents: &Contents<'_>,
    newest: &Checkpoint,
    trust: &Trust,
    roots: &Roots,
    size: u64,
    note: &str,
) -> Result<(Checkpoint, StampedAt), Fault> {
    let checkpoint = kept(contents, newest, trust, roots, size, &stamped_path(size), note)?;
    let wrong = |what: String| Fault::new(Check::Times, "timestamp", what).in_file(timestamp_path(size));
    let reply = contents.timestamps.get(&size).ok_or_else(|| wrong("it is missing".into()))?;
    let timestamp = Timestamp::parse(reply).map_err(|error| wrong(error.to_string()))?;
    timestamp.check_of(note.as_bytes()).map_err(|error| wrong(error.to_string()))?;
    let Some(Authorities(authority)) = &trust.authorities else { return Ok((checkpoint, Err(None))) };
    let signed = timestamp.check_signature(&**authority);
    Ok((checkpoint, signed.map(|()| timestamp.at).map_err(|error| Some(error.to_string()))))
}

/// A kept checkpoint must be one of the log, and the log must have continued it.
fn kept(
    contents: &Contents<'_>,
    newest: &Checkpoint,
    trust: &Trust,
    roots: &Roots,
    size: u64,
    path: &str,
    note: &str,
) -> Result<Checkpoint, Fault> {
    let wrong = |what: String| Fault::new(Check::Times, "checkpoint", what).in_file(path);
    let checkpoint = Checkpoint::open(note, &trust.key).map_err(|error| wrong(error.to_string()))?;
    if checkpoint.size != size {
        return Err(wrong(format!("it covers {} entries", checkpoint.size)));
    }
    if proved_root(contents, newest, roots, size, &checkpoint)? {
        Ok(checkpoint)
    } else {
        Err(wrong("nothing proves that the log continues it".into()))
    }
}

/// Whether the bundle proves that the log continues this checkpoint; a fault if it proves the opposite.
pub(super) fn proved_root(
    contents: &Contents<'_>,
    newest: &Checkpoint,
    roots: &Roots,
    size: u64,
    checkpoint: &Checkpoint,
) -> Result<bool, Fault> {
    let other = |path: &str, what: &str| Fault::new(Check::Times, "checkpoint", what).in_file(path);
    if let Some(root) = roots.get(&size) {
        let differs = || other(CHECKPOINT, &format!("the log has another root at {size} entries"));
        return if *root == checkpoint.root { Ok(true) } else { Err(differs()) };
    }
    let Some((path, text)) = contents.consistencies.get(&size) else { return Ok(false) };
    let proof = hash_list(path, text)?;
    let proved = check_consistency(size, checkpoint.root, newest.size, newest.root, &proof);
    proved.map_err(|error| other(&consistency_path(size), &format!("the log does not continue it: {error}")))?;
    Ok(true)
}

/// When known witnesses have cosigned it, if any has.
fn cosigned(trust: &Trust, size: u64, path: &str, note: &str, faults: &mut Vec<Fault>) -> Option<Dated> {
    let cosigned = Note::parse(note).and_then(|note| {
        Ok(trust.policy.cosigned(&note)?.into_iter().filter_map(|(_, time)| time).collect::<Vec<_>>())
    });
    match cosigned {
        Ok(times) => {
            let (earliest, latest) = (moment(*times.iter().min()?), moment(*times.iter().max()?));
            Some(Dated { size, earliest, latest })
        }
        Err(error) => {
            faults.push(Fault::new(Check::Times, "witnesses", error.to_string()).in_file(path));
            None
        }
    }
}

/// For each entry, between which times it must be.
struct Bounds {
    /// Ascending.
    sizes: Vec<u64>,
    /// The lowest `latest` from this checkpoint on: whatever is in all of these trees was there by then.
    seen_by: Vec<Time>,
    /// The highest `earliest` up to this checkpoint: whatever is in none of these trees came after that.
    unseen_at: Vec<Time>,
}

impl Bounds {
    fn of(mut dated: Vec<Dated>) -> Bounds {
        dated.sort_by_key(|one| one.size);
        let lower = |least: &mut Option<Time>, one: &Dated| {
            *least = Some(least.map_or(one.latest, |least| least.min(one.latest)));
            *least
        };
        let mut seen_by: Vec<_> = dated.iter().rev().scan(None, lower).collect();
        seen_by.reverse();
        let higher = |most: &mut Option<Time>, one: &Dated| {
            *most = Some(most.map_or(one.earliest, |most| most.max(one.earliest)));
            *most
        };
        let unseen_at = dated.iter().scan(None, higher).collect();
        Bounds { sizes: dated.iter().map(|one| one.size).collect(), seen_by, unseen_at }
    }

    /// How many of the trees do not have this entry.
    fn without(&self, index: u64) -> usize {
        self.sizes.partition_point(|size| *size <= index)
    }

    fn seen_by(&self, index: u64) -> Option<Time> {
        self.seen_by.get(self.without(index)).copied()
    }

    fn unseen_at(&self, index: u64) -> Option<Time> {
        self.without(index).checked_sub(1).and_then(|last| self.unseen_at.get(last)).copied()
    }

    /// What is in a tree was there when it was cosigned. One fault for all such entries: a wrong clock is wrong for many.
    fn too_late(&self, contents: &Contents<'_>) -> Option<Fault> {
        let latest = |mark: &Mark| self.seen_by(mark.index).map(|seen| seen.plus(CLOCK_TOLERANCE));
        let is_late = |mark: &&Mark| latest(mark).is_some_and(|latest| mark.at > latest);
        let mut late = contents.entries.iter().filter(is_late);
        let first = late.next()?;
        let seen = self.seen_by(first.index)?;
        let what = format!("its time is {}, but it had already been seen at {seen}", first.at);
        Some(clock_fault(contents, first, &what, late.count()))
    }

    /// What is not in a tree came after it was cosigned.
    fn too_early(&self, contents: &Contents<'_>) -> Option<Fault> {
        let is_early =
            |mark: &&Mark| self.unseen_at(mark.index).is_some_and(|seen| mark.at.plus(CLOCK_TOLERANCE) < seen);
        let mut early = contents.entries.iter().filter(is_early);
        let first = early.next()?;
        let seen = self.unseen_at(first.index)?;
        let what = format!("its time is {}, but it had not been seen at {seen}", first.at);
        Some(clock_fault(contents, first, &what, early.count()))
    }
}

fn clock_fault(contents: &Contents<'_>, mark: &Mark, what: &str, others: usize) -> Fault {
    let others = if others > 0 { format!("; the same is true of {others} later entries") } else { String::new() };
    let fault = Fault::new(Check::Times, "clock", format!("{what}{others}"));
    fault.in_file(contents.file(mark)).at_entry(mark.index)
}
