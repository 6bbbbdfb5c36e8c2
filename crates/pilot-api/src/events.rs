//! The ledger in pages.

use pilot_core::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::named;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Events")]
pub struct EventsView<'e> {
    #[schemars(with = "Vec<named::Entry>")]
    pub events: Vec<&'e RawValue>,
    /// Ask again with `after` set to this. Null while the ledger is empty.
    #[schemars(with = "Option<i64>")]
    pub next_after: Option<u64>,
}

/// An entry, as a client reads it: also one of a kind that only a newer service writes.
#[derive(Debug, Deserialize)]
pub struct EventView {
    pub index: u64,
    pub at: Time,
    pub r#type: String,
    pub actor_id: Option<String>,
    pub role: Option<String>,
    pub action: Option<String>,
    pub item: Option<String>,
    pub from: Option<String>,
    pub to: Option<String>,
    /// The digest of the item's content after this entry.
    pub content: Option<String>,
}

/// A page of the ledger, as a client reads it.
#[derive(Debug, Deserialize)]
pub struct EventsPage {
    pub events: Vec<EventView>,
    pub next_after: Option<u64>,
}
