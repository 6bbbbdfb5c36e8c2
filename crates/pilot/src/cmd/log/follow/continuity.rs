//! Whether the log is still the one whose entries were passed on: otherwise an index means another entry.

use std::time::Duration;

use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::proof::{check_consistency, check_inclusion, consistency, inclusion};

use super::cursor::Cursor;
use crate::client::Client;
use crate::cmd::log::tiles::Tiles;
use crate::exit::Failure;

/// Another node of the service may be a moment behind the one that sent the last entries.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);

const REMEDY: &str = "If the ledger was restored from a backup, the entry `ledger.restored` says from which index on \
     it is another history: start again with another --state directory and --from that index, and tell those who \
     evaluate the entries. If it was not restored, keep this directory and find out why.";

/// Why the log could not be followed.
pub(super) enum Broken {
    /// Trying again would not help.
    ForGood(Failure),
    /// Something did not work that may work in a moment.
    ForNow(Failure),
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Broken::ForNow(failure)
    }
}

fn contradiction(what: impl std::fmt::Display) -> Broken {
    Broken::ForGood(Failure::Refused(format!("{what}. {REMEDY}")))
}

/// What the log shows of itself now. Its signature is not checked here: that is what a monitor is for.
pub(super) fn current(client: &Client) -> Result<Checkpoint, Failure> {
    parse(&client.get("/v1/log/checkpoint")?.text()?)
}

pub(super) fn parse(note: &str) -> Result<Checkpoint, Failure> {
    let text = note.split_once("\n\n").map(|(text, _)| format!("{text}\n"));
    let parsed = text.and_then(|text| Checkpoint::parse(&text).ok());
    parsed.ok_or_else(|| Failure::Environment("the checkpoint is not what a pilot service sends".into()))
}

/// What the log shows now, if it continues what was seen of it and contains the last entry that was passed on.
pub(super) fn continued(client: &Client, cursor: &Cursor) -> Result<Checkpoint, Broken> {
    let Cursor { reached, seen } = cursor;
    let size = seen.size.max(reached.next);
    let mut now = current(client)?;
    for _ in 1..TRIES {
        if now.size >= size || now.origin != seen.origin {
            break;
        }
        std::thread::sleep(PAUSE);
        now = current(client)?;
    }
    if now.origin != seen.origin {
        let (there, here) = (&now.origin, &seen.origin);
        return Err(contradiction(format!("this is log `{there}`, but the state directory belongs to log `{here}`")));
    }
    if now.size < size {
        let missing = size - now.size;
        return Err(contradiction(format!(
            "the ledger has {} entries, but had {size} before: {missing} are missing",
            now.size
        )));
    }
    let tiles = Tiles { client, size: now.size };
    if seen.size > 0 {
        let is_same = if seen.size == now.size {
            seen.root == now.root
        } else {
            let proof = consistency(&tiles, seen.size, now.size)?;
            check_consistency(seen.size, seen.root, now.size, now.root, &proof).is_ok()
        };
        if !is_same {
            let (size, before) = (now.size, seen.size);
            return Err(contradiction(format!(
                "the ledger of {size} entries does not continue the {before} seen before"
            )));
        }
    }
    if let (Some(last), Some(index)) = (reached.last, reached.next.checked_sub(1)) {
        let path = inclusion(&tiles, index, now.size)?;
        check_inclusion(last, index, now.size, &path, now.root)
            .map_err(|_| contradiction(format!("entry {index} is not the one that was passed on")))?;
    }
    Ok(now)
}
