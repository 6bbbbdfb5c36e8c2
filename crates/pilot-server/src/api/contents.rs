//! Earlier contents of an item: what was returned, or decided on before it was edited.

use pilot_api::items::ContentView;
use pilot_core::document::{ContentDigest, DocumentKind};
use pilot_core::limits::{CONTENT_ENTRIES_MAX, PAGE_BYTES_MAX};
use pilot_store::StoredEntry;
use serde::Deserialize;
use serde_json::Value;

use crate::api::answers::json;
use crate::api::request::{Query, decode, item_id};
use crate::call::{Answer, Call};
use crate::problem::{Code, Problem};

/// How many entries are read in one visit: each may come with documents as large as a body.
const ENTRIES_AT_ONCE: usize = 16;

pub async fn get_content(call: &mut Call) -> Answer {
    Query::read(call, &[])?;
    let id = item_id(call)?;
    // Clients that build paths from parts send the colon as `%3A`.
    let last = call.head.uri.path().rsplit('/').next().and_then(decode);
    let wanted: ContentDigest = last.and_then(|text| text.parse().ok()).ok_or_else(none)?;
    call.share = Some(Box::pin(call.app.budget.take(&call.caller.actor.actor_id, PAGE_BYTES_MAX)).await?);
    let (mut after, mut seen) = (None, 0);
    while seen < CONTENT_ENTRIES_MAX {
        let stored = call.app.ledger.store.history_page(id.clone(), after, ENTRIES_AT_ONCE).await?;
        let Some(last) = stored.last() else { break };
        (after, seen) = (Some(last.index), seen + stored.len());
        if let Some(view) = stored.iter().find_map(|entry| content(entry, &wanted)) {
            return json(&view);
        }
        // Lets others run: what was read may be large.
        tokio::task::yield_now().await;
    }
    Err(none())
}

fn none() -> Problem {
    Problem::new(Code::NotFound, "This item has no content with this digest, or it was erased.")
}

/// The content that came with this entry, if it is the one.
fn content(entry: &StoredEntry, wanted: &ContentDigest) -> Option<ContentView> {
    #[derive(Deserialize)]
    struct Content {
        title: String,
        payload: Value,
        nonce: Option<String>,
    }
    let mut documents = entry.documents.iter().filter(|(kind, _)| *kind == DocumentKind::Content);
    let (_, bytes) = documents.find(|(_, bytes)| ContentDigest::of_bytes(bytes) == *wanted)?;
    let Content { title, payload, nonce } = serde_json::from_slice(bytes).ok()?;
    Some(ContentView { content_digest: wanted.clone(), title, payload, nonce })
}
