//! One look at the log: its signatures, its growth since the last look, and its times.

use std::time::Duration;

use pilot_core::entry::Entry;
use pilot_core::time::Time;
use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::merkle::Hash;
use pilot_evidence::note::Note;
use pilot_evidence::proof::{check_consistency, check_inclusion, consistency, inclusion};
use pilot_evidence::verify::{CLOCK_TOLERANCE, Trust};

use super::state::State;
use crate::client::Client;
use crate::cmd::log::tiles::Tiles;
use crate::exit::Failure;

/// What a look has found, if all is well.
pub(super) struct Looked {
    pub(super) size: u64,
    /// How many entries there were at the last look.
    pub(super) before: Option<u64>,
    pub(super) root: String,
    pub(super) signed_by: Vec<String>,
    pub(super) last_entry_at: Option<Time>,
}

impl Looked {
    pub(super) fn has_grown(&self) -> bool {
        self.before != Some(self.size)
    }
}

/// Why a look did not succeed.
pub(super) enum Trouble {
    /// The log has said two things that cannot both be true, and both are kept.
    Contradiction { kind: &'static str, what: String },
    /// Something is wrong that may come right: witnesses are missing, a clock is off.
    Doubt { kind: &'static str, what: String },
    /// The log could not be asked.
    Unreachable(Failure),
}

impl Trouble {
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Trouble::Contradiction { what, .. } | Trouble::Doubt { what, .. } => Failure::Refused(what),
            Trouble::Unreachable(failure) => failure,
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Trouble::Unreachable(failure)
    }
}

fn doubt(kind: &'static str, what: impl Into<String>) -> Trouble {
    Trouble::Doubt { kind, what: what.into() }
}

pub(super) fn look(client: &Client, trust: &Trust, state: &mut State, now: Time) -> Result<Looked, Trouble> {
    let text = cosigned_checkpoint(client, trust, state.size())?;
    let checkpoint = Checkpoint::open(&text, &trust.key)
        .map_err(|error| doubt("signature", format!("the checkpoint does not verify: {error}")))?;
    let note = Note::parse(&text).map_err(|error| doubt("signature", error.to_string()))?;
    let cosigned = trust.policy.cosigned(&note);
    let cosigned = cosigned.map_err(|error| doubt("signature", format!("a cosignature does not verify: {error}")))?;
    let before = state.size();
    grows(client, &checkpoint, &text, state)?;
    let times: Vec<_> = cosigned.iter().map(|(_, time)| *time).collect();
    let signed_by: Vec<_> =
        cosigned.iter().filter(|(_, time)| time.is_some()).map(|(witness, _)| witness.name.clone()).collect();
    let last_entry_at = last_entry(client, &checkpoint)?;
    state.keep(&checkpoint, &text, now)?;
    if !trust.policy.is_reached(&times) {
        let (there, needed) = (signed_by.len(), trust.policy.needed());
        return Err(doubt(
            "witnesses",
            format!("the checkpoint has {there} cosignatures of known witnesses; {needed} are needed"),
        ));
    }
    in_time(&times, last_entry_at, now)?;
    let Checkpoint { size, root, .. } = checkpoint;
    Ok(Looked { size, before, root: root.to_base64(), signed_by, last_entry_at })
}

/// The newest checkpoint. One that was signed a moment ago gets its cosignatures within seconds, and another node of the
/// service may be a moment behind what was seen before, so it is asked for again.
fn cosigned_checkpoint(client: &Client, trust: &Trust, seen: Option<u64>) -> Result<String, Failure> {
    let mut tries = 0;
    loop {
        let text = client.get("/v1/log/checkpoint?cosignatures=any")?.text()?;
        let cosigned = Note::parse(&text).and_then(|note| trust.policy.cosigned(&note));
        let is_reached = cosigned
            .is_ok_and(|known| trust.policy.is_reached(&known.iter().map(|(_, time)| *time).collect::<Vec<_>>()));
        let size = Checkpoint::open(&text, &trust.key).map(|checkpoint| checkpoint.size);
        let is_behind = size.is_ok_and(|size| seen.is_some_and(|seen| size < seen));
        tries += 1;
        if (is_reached && !is_behind) || tries == TRIES {
            return Ok(text);
        }
        std::thread::sleep(PAUSE);
    }
}

const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);

/// The log must continue what was kept of it.
fn grows(client: &Client, new: &Checkpoint, note: &str, state: &State) -> Result<(), Trouble> {
    let Some(kept) = state.newest().cloned() else { return Ok(()) };
    let contradicts = |kind: &'static str, what: String| {
        let kept = state.keep_conflict(note);
        let kept = kept.map_or_else(|error| format!("could not be saved: {error}"), |path| path.display().to_string());
        Trouble::Contradiction { kind, what: format!("{what}; both checkpoints: {kept}") }
    };
    match new.size.cmp(&kept.size) {
        std::cmp::Ordering::Equal if new.root == kept.root => Ok(()),
        std::cmp::Ordering::Equal => {
            Err(contradicts("fork", format!("the log has signed another root for {} entries", new.size)))
        }
        // Genuine, but old: a service that was restored, or one that serves an old answer.
        std::cmp::Ordering::Less => {
            let what = format!("the log shows {} entries, but had {} before: entries are missing", new.size, kept.size);
            Err(contradicts("shrunk", what))
        }
        std::cmp::Ordering::Greater => {
            let proof = consistency(&Tiles { client, size: new.size }, kept.size, new.size)?;
            let proved = check_consistency(kept.size, kept.root, new.size, new.root, &proof);
            proved.map_err(|error| {
                let what = format!("the log of {} entries does not continue the {} seen before", new.size, kept.size);
                contradicts("fork", format!("{what}: {error}"))
            })
        }
    }
}

/// The time of the newest entry, which must be in the signed tree.
fn last_entry(client: &Client, checkpoint: &Checkpoint) -> Result<Option<Time>, Trouble> {
    let Some(index) = checkpoint.size.checked_sub(1) else { return Ok(None) };
    let tiles = Tiles { client, size: checkpoint.size };
    let bytes = tiles.entry(index)?;
    let path = inclusion(&tiles, index, checkpoint.size)?;
    let proved = check_inclusion(Hash::of_leaf(&bytes), index, checkpoint.size, &path, checkpoint.root);
    proved.map_err(|error| doubt("entries", format!("entry {index} is not the one that was signed: {error}")))?;
    let entry = Entry::parse(&bytes).map_err(|error| doubt("entries", format!("entry {index}: {error}")))?;
    Ok(Some(entry.at))
}

/// Neither the service nor a witness may be ahead of this machine's clock, nor an entry later than its cosignature.
fn in_time(cosigned: &[Option<u64>], last_entry_at: Option<Time>, now: Time) -> Result<(), Trouble> {
    let moment =
        |seconds: u64| Time::from_unix_micros(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000));
    let latest = cosigned.iter().flatten().max().map(|seconds| moment(*seconds));
    let limit = now.plus(CLOCK_TOLERANCE);
    if let Some(at) = latest.filter(|at| *at > limit) {
        return Err(doubt("clock", format!("a cosignature is dated {at}, which is in the future")));
    }
    if let Some(at) = last_entry_at.filter(|at| *at > limit) {
        return Err(doubt("clock", format!("the newest entry is dated {at}, which is in the future")));
    }
    match (last_entry_at, latest) {
        (Some(at), Some(seen)) if at > seen.plus(CLOCK_TOLERANCE) => {
            Err(doubt("clock", format!("the newest entry is dated {at}, but witnesses had already seen it at {seen}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_cannot_be_are_doubted_and_ten_minutes_are_not() {
        let now = Time::from_unix_micros(1_800_000_000_000_000);
        let at = |seconds: i64| Time::from_unix_micros((1_800_000_000 + seconds) * 1_000_000);
        let verdict = |cosigned: &[Option<u64>], entry: i64| in_time(cosigned, Some(at(entry)), now).is_ok();
        assert!(verdict(&[], 0) && verdict(&[], 590) && !verdict(&[], 610));
        assert!(verdict(&[Some(1_800_000_590)], 0) && !verdict(&[Some(1_800_000_610)], 0));
        assert!(
            verdict(&[None, Some(1_799_999_000)], -1_000 + 590) && !verdict(&[None, Some(1_799_999_000)], -1_000 + 610)
        );
    }
}
