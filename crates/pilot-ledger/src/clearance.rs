//! Who let an item pass to execution, as its entries say.

use pilot_core::actor::ActorId;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::Item;
use pilot_core::workflow::Definition;
use pilot_store::{Store, StoreError};

/// Those whose votes on the present content stand.
pub fn approved_by(item: &Item) -> Vec<ActorId> {
    let counted = item.votes.iter().filter(|vote| vote.content_digest == item.content_digest);
    counted.map(|vote| vote.actor_id.clone()).collect()
}

/// Who set the window in which the item is executed; `None` if its definition has no such step. Looks from the newest
/// entry back, because the one it wants is just before the start.
pub async fn cleared_by(
    store: &dyn Store,
    definition: &Definition,
    item: &Item,
) -> Result<Option<ActorId>, StoreError> {
    let sets_window = |action: &str| {
        definition.rules().transitions.iter().any(|rule| rule.sets_window.is_some() && *rule.action == *action)
    };
    for index in store.places(item.id.clone()).await?.into_iter().rev() {
        let stored = store.entries(index, 1).await?;
        let entry = stored.iter().find_map(|stored| Entry::parse(&stored.bytes).ok());
        let is_it = |entry: &Entry| {
            entry.r#type == EntryType::ItemTransition && entry.action.as_deref().is_some_and(sets_window)
        };
        if let Some(entry) = entry.filter(is_it) {
            return Ok(entry.actor_id);
        }
    }
    Ok(None)
}
