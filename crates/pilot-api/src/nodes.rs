//! The nodes that share the ledger.

use pilot_core::time::Time;
use schemars::JsonSchema;
use serde::Serialize;

use crate::named;

/// One node of the service.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Node")]
pub struct NodeView {
    /// A new one at every start.
    pub node_id: String,
    /// As configured, or the machine's host name.
    pub name: String,
    pub build: String,
    /// Whether it is the node that answers.
    pub is_this: bool,
    /// Whether it was heard of within the last second. A node that was not answers nobody.
    pub is_alive: bool,
    /// How many entries of the ledger are in force on this node.
    pub applied: u64,
    /// How many are not yet.
    pub lag: u64,
    /// What only one node does at a time, and this one does.
    pub duties: Vec<String>,
    /// Null when the ledger is the node's own.
    #[schemars(with = "Option<named::Time>")]
    pub seen_at: Option<Time>,
    #[schemars(with = "Option<named::Time>")]
    pub started_at: Option<Time>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Nodes")]
pub struct NodesView {
    pub nodes: Vec<NodeView>,
    /// Always null: the list is complete.
    pub next: Option<String>,
}
