//! The transparency log as others read it: checkpoint, tiles, entries and proofs.

use std::sync::Arc;

use pilot_api::log::{ProofView, ProofsView};
use pilot_core::fault::Fault;
use pilot_core::json::INTEGER_MAX;
use pilot_core::limits::{PAGE_BYTES_MAX, PROOFS_MAX};
use pilot_evidence::merkle::Hash;
use pilot_evidence::tile::{TILE_WIDTH, Wanted};
use pilot_wire::body::Body;

use crate::api::answers::{json, page};
use crate::api::request::{Query, item_id};
use crate::call::{Answer, Call};
use crate::problem::{Code, Problem};

/// The newest checkpoint with the required cosignatures; with `cosignatures=any`, the newest with those it has.
pub async fn get_checkpoint(call: &Call) -> Answer {
    let query = Query::read(call, &["cosignatures"])?;
    let is_any = match query.get("cosignatures") {
        None | Some("required") => false,
        Some("any") => true,
        Some(_) => return Err(Problem::invalid(vec![Fault::new("/query/cosignatures", "must be required or any")])),
    };
    let (ledger, witnesses) = (&call.app.ledger, &call.app.witnesses);
    let signed = match ledger.signer.checkpoint().await {
        Ok(signed) => signed,
        // Older than the ledger, but still true: a reader who needs a newer one can see its size.
        Err(_) => Arc::clone(&ledger.signer.newest().borrow()),
    };
    let covered = if is_any { None } else { witnesses.newest_covered() };
    let note = covered.unwrap_or_else(|| witnesses.cosigned(&signed));
    Ok(page("text/plain; charset=utf-8", note))
}

pub async fn get_tile(call: &Call) -> Answer {
    let Some(Wanted::Hashes { level, index, width }) = wanted(call, "") else { return Err(no_such_tile()) };
    let hashes = call.app.ledger.store.tile(level, index * TILE_WIDTH as u64, width as u64).await?;
    let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.0).collect();
    Ok(page("application/octet-stream", Body::from(bytes)))
}

/// Entries as they were hashed, each preceded by its length.
pub async fn get_entry_bundle(call: &Call) -> Answer {
    let Some(Wanted::Entries { index, width }) = wanted(call, "entries/") else { return Err(no_such_tile()) };
    let entries = call.app.ledger.store.entries(index * TILE_WIDTH as u64, width).await?;
    let mut bytes = Vec::new();
    for entry in entries {
        let length = u16::try_from(entry.bytes.len()).map_err(|error| Problem::internal(&error))?;
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&entry.bytes);
    }
    Ok(page("application/octet-stream", Body::from(bytes)))
}

/// What the path asks for, if the log reaches that far.
fn wanted(call: &Call, prefix: &str) -> Option<Wanted> {
    let path = format!("{prefix}{}", call.parameter.as_deref()?);
    let wanted = Wanted::parse(&path)?;
    let width = match wanted {
        Wanted::Hashes { width, .. } | Wanted::Entries { width, .. } => width,
    };
    let size = call.app.ledger.store.head().borrow().size();
    (wanted.available(size) >= width).then_some(wanted)
}

fn no_such_tile() -> Problem {
    Problem::new(Code::NotFound, "The log has no such tile, or is not that long yet.")
}

/// How many entries of an item are read at a time: each may come with documents as large as a body, which a proof does
/// not need.
const ENTRIES_AT_ONCE: usize = 64;

pub async fn get_item_proof(call: &mut Call) -> Answer {
    let query = Query::read(call, &["after", "limit"])?;
    let after = query.number("after", 0, INTEGER_MAX)?;
    let limit = query.number("limit", 1, PROOFS_MAX as u64)?.unwrap_or(PROOFS_MAX as u64);
    let limit = usize::try_from(limit).unwrap_or(PROOFS_MAX);
    let id = item_id(call)?;
    call.share = Some(Box::pin(call.app.budget.take(&call.caller.actor.actor_id, PAGE_BYTES_MAX)).await?);
    let store = &call.app.ledger.store;
    let (mut leaves, mut last, mut is_last) = (Vec::new(), after, false);
    while leaves.len() < limit && !is_last {
        let wanted = (limit - leaves.len()).min(ENTRIES_AT_ONCE);
        // One more than wanted shows whether there are more.
        let read = store.history_page(id.clone(), last, wanted + 1).await?;
        is_last = read.len() <= wanted;
        let read = read.iter().take(wanted);
        leaves.extend(read.map(|entry| (entry.index, Hash::of_leaf(&entry.bytes))));
        last = leaves.last().map(|(index, _)| *index).or(last);
    }
    if leaves.is_empty() && store.item(id).await?.is_none() {
        return Err(Problem::no_such_item());
    }
    let last = leaves.last().map(|(index, _)| *index);
    let signed = call.app.ledger.signer.covering(last.map_or(0, |last| last + 1)).await?;
    let indices = leaves.iter().map(|(index, _)| *index).collect();
    // Dropped with the request: if the caller hangs up, the store stops.
    let paths = store.inclusions(indices, signed.checkpoint.size).await?;
    let (next, checkpoint) = (last.filter(|_| !is_last), call.app.witnesses.cosigned(&signed));
    let is_short = leaves.len() <= ENTRIES_AT_ONCE;
    let answer = move || {
        let proofs = leaves.into_iter().zip(paths).map(|((index, leaf), path)| ProofView {
            index,
            leaf_hash: leaf.to_base64(),
            hashes: path.into_iter().map(Hash::to_base64).collect(),
        });
        json(&ProofsView { checkpoint, proofs: proofs.collect(), next })
    };
    if is_short {
        return answer();
    }
    Box::pin(call.app.workshop.long(&call.caller.actor.actor_id, answer)).await?
}
