//! The endpoints that are told about entries.

use pilot_core::time::Time;
use schemars::JsonSchema;
use serde::Serialize;

use crate::named;

/// One endpoint; never its path or a key.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Webhook")]
pub struct WebhookView {
    pub name: String,
    /// Host and port of the receiver.
    pub host: String,
    pub state: WebhookState,
    /// Why nothing is sent, if the endpoint is paused.
    pub paused_because: Option<String>,
    /// The index of the entry that is delivered next; null if the endpoint has not begun.
    pub next: Option<u64>,
    /// How many entries are still to be delivered or passed over.
    pub lag: u64,
    /// Since when no delivery has succeeded; null while they do.
    #[schemars(with = "Option<named::Time>")]
    pub failing_since: Option<Time>,
    /// What the receiver last answered, or why it could not be reached.
    pub last_answer: Option<String>,
    #[schemars(with = "Option<named::Time>")]
    pub last_answer_at: Option<Time>,
    /// When something was last delivered.
    #[schemars(with = "Option<named::Time>")]
    pub delivered_at: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
pub enum WebhookState {
    Delivering,
    /// The last attempt failed; it is repeated.
    Failing,
    /// Nothing is sent until someone resumes it.
    Paused,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Webhooks")]
pub struct WebhooksView {
    pub webhooks: Vec<WebhookView>,
    /// Always null: the list is complete.
    pub next: Option<String>,
}
