//! Lists the nodes that share the ledger, for those who oversee the service.

use pilot_api::nodes::{NodeView, NodesView};
use pilot_store::{Duty, NodeState};

use crate::api::answers::json;
use crate::app::App;
use crate::call::Answer;
use crate::caller::Caller;

pub fn list_nodes(app: &App, _: &Caller, _: Option<&str>) -> Answer {
    let nodes = app.ledger.store.nodes();
    let nodes = if nodes.is_empty() { vec![only_node(app)] } else { nodes.into_iter().map(view).collect() };
    json(&NodesView { nodes, next: None })
}

fn view(node: NodeState) -> NodeView {
    NodeView {
        node_id: node.id,
        name: node.name,
        build: node.build,
        is_this: node.is_this,
        is_alive: node.is_alive,
        applied: node.applied,
        lag: node.lag,
        duties: node.duties,
        seen_at: node.seen_at,
        started_at: node.started_at,
    }
}

/// A service with a ledger of its own has every duty, and nothing to catch up with.
fn only_node(app: &App) -> NodeView {
    NodeView {
        node_id: app.request_ids.run().to_owned(),
        name: app.node_name.clone(),
        build: env!("CARGO_PKG_VERSION").to_owned(),
        is_this: true,
        is_alive: true,
        applied: app.ledger.store.head().borrow().size(),
        lag: 0,
        duties: Duty::ALL.map(|duty| duty.as_str().to_owned()).to_vec(),
        seen_at: None,
        started_at: None,
    }
}
