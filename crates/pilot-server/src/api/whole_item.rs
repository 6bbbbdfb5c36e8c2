//! One item as its caller sees it: what they could do and what it would lead to, who is waited for, what they have seen.

use pilot_api::items::{ItemView, ReadEntry};
use pilot_api::outlook::{HoldView, How, OutlookView, SeenView, WholeItemView};
use pilot_core::actor::Actor;
use pilot_core::decide::{prospect, waiting};
use pilot_core::document::ContentDigest;
use pilot_core::entry::Entry;
use pilot_core::item::Item;
use pilot_core::limits::{NEWEST_ENTRIES_MAX, WHO_CAN_NAMED_MAX};
use pilot_core::time::Time;
use pilot_core::workflow::Definition;
use pilot_store::look::Look;
use serde::Deserialize;

use crate::api::who_can::people;
use crate::app::App;
use crate::problem::Problem;

/// How many entries are read in one visit. Most items have fewer.
const ENTRIES_AT_ONCE: usize = 32;

/// What the rules and the list of actors say. The caller of this adds what only the ledger knows.
pub fn whole_item<'i>(
    app: &App,
    definition: &'i Definition,
    item: &'i Item,
    caller: &Actor,
    now: Time,
) -> WholeItemView<'i> {
    let prospect = prospect(definition, item, caller, now);
    let people = if item.is_terminal(definition) { Vec::new() } else { people(app) };
    let outlook = OutlookView::new(&prospect, waiting(definition, item, &people, WHO_CAN_NAMED_MAX, now));
    WholeItemView { item: ItemView::with(definition, item, prospect.actions), outlook }
}

/// The nonce in a content document, if the document is the one that the digest is of.
pub fn nonce_of(content: &[u8], digest: &ContentDigest) -> Option<String> {
    #[derive(Deserialize)]
    struct Content {
        nonce: Option<String>,
    }
    if ContentDigest::of_bytes(content) != *digest {
        return None;
    }
    serde_json::from_slice::<Content>(content).ok()?.nonce
}

/// What the caller of an answer decided on by writing the entry that it is about.
pub fn decided(item: &Item, at: Time) -> SeenView {
    SeenView { content_digest: item.content_digest.clone(), at, how: How::Decided }
}

/// The later of a decision and a look.
pub fn later(decided: Option<SeenView>, look: Option<Look>) -> Option<SeenView> {
    let looked = look.map(|Look { at, content_digest, .. }| SeenView { content_digest, at, how: How::Looked });
    match (decided, looked) {
        // At the same moment, the decision says more.
        (Some(decided), Some(looked)) => Some(if looked.at > decided.at { looked } else { decided }),
        (decided, looked) => decided.or(looked),
    }
}

/// What an item's newest entries tell.
#[derive(Default)]
pub struct Newest {
    /// The actor's last entry about a content.
    pub decided: Option<SeenView>,
    pub hold: Option<HoldView>,
}

/// Walks back over the item's entries, as far as there is something to find.
pub async fn newest(app: &App, item: &Item, actor: &Actor) -> Result<Newest, Problem> {
    let (mut found, mut hold) = (Newest::default(), None);
    let (mut before, mut walked) = (None, 0);
    // Someone who never took part has decided on nothing.
    let mut seeks_decision = item.participants.contains_key(&actor.actor_id);
    let mut seeks_hold = item.held;
    while (seeks_decision || seeks_hold) && walked < NEWEST_ENTRIES_MAX {
        let stored = app.ledger.store.newest_entries(item.id.clone(), before, ENTRIES_AT_ONCE).await?;
        for entry in &stored {
            let unreadable = |error| Problem::internal(&format!("a stored record cannot be read: {error}"));
            let entry = Entry::parse(&entry.bytes).map_err(unreadable)?;
            // The item was read a moment earlier, and may have moved on since.
            if entry.version.is_none_or(|version| version > item.version) {
                continue;
            }
            if seeks_decision && entry.actor_id.as_ref() == Some(&actor.actor_id) {
                found.decided = entry.content.clone().map(|digest| SeenView {
                    content_digest: digest,
                    at: entry.at,
                    how: How::Decided,
                });
                seeks_decision = found.decided.is_none();
            }
            if seeks_hold && entry.action.as_deref() == Some("hold") {
                hold = entry.actor().map(|actor| (actor, entry.at, entry.index));
                seeks_hold = false;
            }
        }
        walked += stored.len();
        before = stored.last().map(|last| last.index);
        if stored.len() < ENTRIES_AT_ONCE {
            break;
        }
        tokio::task::yield_now().await;
    }
    if let Some((Actor { actor_id, role, operated_by: _ }, at, index)) = hold {
        found.hold = Some(HoldView { actor_id, role, at, comment: comment_at(app, index).await? });
    }
    Ok(found)
}

async fn comment_at(app: &App, index: u64) -> Result<Option<String>, Problem> {
    let stored = app.ledger.store.whole_entries_at(vec![index]).await?;
    let unreadable = |error| Problem::internal(&format!("a stored record cannot be read: {error}"));
    let read = stored.first().map(|entry| ReadEntry::read(&entry.bytes, &entry.documents)).transpose();
    Ok(read.map_err(unreadable)?.and_then(|entry| entry.written().comment.map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_decision_and_a_look_the_later_counts() {
        let digest = |text: &str| ContentDigest::of_bytes(text.as_bytes());
        let decided =
            || SeenView { content_digest: digest("decided"), at: Time::from_unix_micros(5), how: How::Decided };
        let look = |at| Look::new(digest("looked"), Time::from_unix_micros(at));
        let how = |decided, look| later(decided, look).map(|seen| (seen.how, seen.content_digest));
        assert_eq!(how(None, None), None);
        assert_eq!(how(Some(decided()), None), Some((How::Decided, digest("decided"))));
        assert_eq!(how(None, Some(look(1))), Some((How::Looked, digest("looked"))));
        assert_eq!(how(Some(decided()), Some(look(4))), Some((How::Decided, digest("decided"))));
        assert_eq!(how(Some(decided()), Some(look(5))), Some((How::Decided, digest("decided"))));
        assert_eq!(how(Some(decided()), Some(look(6))), Some((How::Looked, digest("looked"))));
    }
}
