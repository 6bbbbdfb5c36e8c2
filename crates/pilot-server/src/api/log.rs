//! The transparency log as others read it: checkpoint, tiles, entries and proofs.

use std::sync::Arc;

use pilot_core::fault::Fault;
use pilot_core::json::INTEGER_MAX;
use pilot_core::limits::PROOFS_MAX;
use pilot_evidence::merkle::Hash;
use pilot_evidence::tile::{TILE_WIDTH, Wanted};
use serde::Serialize;

use crate::api::request::{Query, item_id, no_such_item};
use crate::app::App;
use crate::body::Body;
use crate::problem::{Code, Problem};
use crate::routes::{Answer, Call};

/// The newest checkpoint with the required cosignatures; with `cosignatures=any`, the newest with those it has.
pub async fn get_checkpoint(call: &Call) -> Answer {
    let query = Query::read(call, &["cosignatures"])?;
    let is_any = match query.get("cosignatures") {
        None | Some("required") => false,
        Some("any") => true,
        Some(_) => return Err(Problem::invalid(vec![Fault::new("/query/cosignatures", "must be required or any")])),
    };
    let App { signer, witnesses, .. } = &*call.app;
    let signed = match signer.checkpoint().await {
        Ok(signed) => signed,
        // Older than the ledger, but as true as ever: whoever needs a newer one sees its size.
        Err(_) => Arc::clone(&signer.newest().borrow()),
    };
    let covered = if is_any { None } else { witnesses.newest_covered() };
    let note = covered.unwrap_or_else(|| witnesses.cosigned(&signed));
    Ok(super::page("text/plain; charset=utf-8", note))
}

pub async fn get_tile(call: &Call) -> Answer {
    let Some(Wanted::Hashes { level, index, width }) = wanted(call, "") else { return Err(no_such_tile()) };
    let hashes = call.app.store.tile(level, index * TILE_WIDTH as u64, width as u64).await?;
    let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.0).collect();
    Ok(super::page("application/octet-stream", Body::from(bytes)))
}

/// Entries as they were hashed, each with its length before it.
pub async fn get_entry_bundle(call: &Call) -> Answer {
    let Some(Wanted::Entries { index, width }) = wanted(call, "entries/") else { return Err(no_such_tile()) };
    let entries = call.app.store.entries(index * TILE_WIDTH as u64, width).await?;
    let mut bytes = Vec::new();
    for entry in entries {
        let length = u16::try_from(entry.bytes.len()).map_err(|error| Problem::internal(&error))?;
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&entry.bytes);
    }
    Ok(super::page("application/octet-stream", Body::from(bytes)))
}

/// What the path asks for, when the log reaches that far.
fn wanted(call: &Call, prefix: &str) -> Option<Wanted> {
    let path = format!("{prefix}{}", call.parameter.as_deref()?);
    let wanted = Wanted::parse(&path)?;
    let width = match wanted {
        Wanted::Hashes { width, .. } | Wanted::Entries { width, .. } => width,
    };
    let size = call.app.store.head().borrow().size();
    (wanted.available(size) >= width).then_some(wanted)
}

fn no_such_tile() -> Problem {
    Problem::new(Code::NotFound, "The log has no such tile, or is not that long yet.")
}

#[derive(Serialize)]
struct ProofsView {
    /// The signed tree head the proofs lead to.
    checkpoint: String,
    proofs: Vec<ProofView>,
    /// What to give as `after` for the rest; none when this was all.
    next: Option<u64>,
}

#[derive(Serialize)]
struct ProofView {
    index: u64,
    leaf_hash: String,
    hashes: Vec<String>,
}

pub async fn get_item_proof(call: &Call) -> Answer {
    let query = Query::read(call, &["after", "limit"])?;
    let after = query.number("after", 0, INTEGER_MAX)?;
    let limit = query.number("limit", 1, PROOFS_MAX as u64)?.unwrap_or(PROOFS_MAX as u64);
    let limit = usize::try_from(limit).unwrap_or(PROOFS_MAX);
    let (store, id) = (&call.app.store, item_id(call)?);
    let mut history = store.history_page(id.clone(), after, limit + 1).await?;
    if history.is_empty() && store.item(id).await?.is_none() {
        return Err(no_such_item());
    }
    let is_last = history.len() <= limit;
    history.truncate(limit);
    let last = history.last().map(|entry| entry.index);
    let signed = call.app.signer.covering(last.map_or(0, |last| last + 1)).await?;
    let indices = history.iter().map(|entry| entry.index).collect();
    // Dropped with the request: when the caller hangs up, the store stops.
    let paths = store.inclusions(indices, signed.checkpoint.size).await?;
    let proofs = history.iter().zip(paths).map(|(entry, path)| ProofView {
        index: entry.index,
        leaf_hash: Hash::of_leaf(&entry.bytes).to_base64(),
        hashes: path.into_iter().map(Hash::to_base64).collect(),
    });
    let next = last.filter(|_| !is_last);
    super::json(&ProofsView { checkpoint: call.app.witnesses.cosigned(&signed), proofs: proofs.collect(), next })
}
