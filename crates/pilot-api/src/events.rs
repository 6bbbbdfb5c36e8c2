//! The ledger in pages.

use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Serialize)]
pub struct EventsView<'e> {
    pub events: Vec<&'e RawValue>,
    /// Ask again with `after` set to this. Null while the ledger is empty.
    pub next_after: Option<u64>,
}
