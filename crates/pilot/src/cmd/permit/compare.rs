//! What a permit approves, next to the files someone is about to use; and the permit in a few lines.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use pilot_core::limits::{GATE_BYTES_MAX, PAYLOAD_BYTES_MAX};
use pilot_core::payload::Payload;
use pilot_evidence::permit::Permit;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::exit::Failure;

/// The file must be the approved operation byte for byte.
pub(super) fn operation(permit: &Permit, path: &Path) -> Result<(), Failure> {
    let (member, approved) = permit.operation();
    let approved = match approved {
        Some(Value::String(text)) => text.into_bytes(),
        Some(value) => Payload::of(&value).as_str().as_bytes().to_vec(),
        None => return Err(Failure::Refused(format!("--operation: the approved payload has no {member}"))),
    };
    let given = read(path, PAYLOAD_BYTES_MAX as u64)?;
    if given == approved {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "--operation: {} is not what was approved: its sha256 is {}, and that of the approved {member} is {}; use the \
         approved bytes, without a line end of your own, or propose a new item",
        path.display(),
        sha256(&given),
        sha256(&approved)
    )))
}

/// `NAME=FILE`: the file must have the sha256 that was approved under this name.
pub(super) fn artifact(permit: &Permit, given: &str) -> Result<(), Failure> {
    let (name, path) = given
        .split_once('=')
        .filter(|(name, path)| !name.is_empty() && !path.is_empty())
        .ok_or_else(|| Failure::Usage("--artifact: write it as NAME=FILE".to_owned()))?;
    let (member, approved) = permit.operation();
    let listed = approved.as_ref().and_then(|approved| approved.get("artifacts")?.as_array()).into_iter().flatten();
    let mut named = listed.filter(|artifact| artifact.get("name").and_then(Value::as_str) == Some(name));
    let (first, second) = (named.next(), named.next());
    let approved = first.and_then(|artifact| artifact.get("sha256")?.as_str()).ok_or_else(|| {
        Failure::Refused(format!(
            "--artifact: the approved payload has no {member}.artifacts entry with the name {name:?} and a sha256"
        ))
    })?;
    if second.is_some() {
        return Err(Failure::Refused(format!(
            "--artifact: {name:?} is approved twice, so it is not clear which counts"
        )));
    }
    let found = sha256(&read(Path::new(path), GATE_BYTES_MAX)?);
    if found == approved {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "--artifact: {path} is not what was approved as {name:?}: its sha256 is {found}, and {approved} was approved"
    )))
}

fn read(path: &Path, max: u64) -> Result<Vec<u8>, Failure> {
    let failed = |error| Failure::environment(path.display(), error);
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(max + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > max {
        return Err(Failure::Refused(format!("{}: is larger than anything that can be approved", path.display())));
    }
    Ok(bytes)
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The permit for programs.
pub(super) fn view(permit: &Permit) -> Value {
    let (member, approved) = permit.operation();
    let item = &permit.item;
    json!({
        "log": permit.log.to_string(),
        "size": permit.size,
        "root": permit.root.to_base64(),
        "vouched_at": permit.vouched_at,
        "vouched_by": if permit.by_witnesses { "witnesses" } else { "log" },
        "cosigned": permit.cosigned,
        "item": {
            "id": item.id, "title": item.title, "workflow": item.workflow, "state": item.state,
            "version": item.version, "content_digest": item.content_digest, "attempts": item.attempts,
            "window": item.window, "lease": item.lease,
        },
        "begun": permit.begun,
        member: approved,
    })
}

/// The permit for people.
pub(super) fn rows(permit: &Permit) -> Vec<(&'static str, String)> {
    let (item, begun) = (&permit.item, &permit.begun);
    let window = item.window.as_ref();
    vec![
        ("log", permit.log.name.clone()),
        ("checkpoint", format!("{} entries", permit.size)),
        ("vouched for", format!("at {} by {}", permit.vouched_at, permit.voucher())),
        ("item", format!("{} ({})", item.id, item.title)),
        ("state", item.state.to_string()),
        ("content", item.content_digest.to_string()),
        ("begun", format!("{} by {} at {}, entry {}", begun.action, begun.actor.actor_id, begun.at, begun.entry)),
        ("window", window.map_or("none".to_owned(), |window| format!("{} to {}", window.not_before, window.not_after))),
    ]
}
