//! How many schemas apply to the same value, one inside the other. An endless chain could never be judged; a very long one
//! would exhaust the stack.

use super::super::node::{Node, NodeId};
use crate::limits::SCHEMA_CHAIN_MAX;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    Endless,
    TooLong,
}

/// The first node found on a chain without an end, or one that is too long.
pub(super) fn find_flaw(nodes: &[Node]) -> Option<(NodeId, Flaw)> {
    let mut chains = Chains { nodes, lengths: vec![0; nodes.len()], path: Vec::new() };
    (0..nodes.len()).find_map(|id| chains.length(id).err())
}

struct Chains<'n> {
    nodes: &'n [Node],
    /// Of the longest chain from each node; 0 for those not visited yet.
    lengths: Vec<usize>,
    path: Vec<NodeId>,
}

impl Chains<'_> {
    fn length(&mut self, id: NodeId) -> Result<usize, (NodeId, Flaw)> {
        let known = self.lengths.get(id).copied().unwrap_or(0);
        if known > 0 {
            return Ok(known);
        }
        if let Some(at) = self.path.iter().position(|before| *before == id) {
            return Err((self.reference_from(at).unwrap_or(id), Flaw::Endless));
        }
        if self.path.len() == SCHEMA_CHAIN_MAX {
            return Err((self.path.first().copied().unwrap_or(id), Flaw::TooLong));
        }
        self.path.push(id);
        let mut longest = 0;
        let nodes = self.nodes;
        for next in nodes.get(id).into_iter().flat_map(Node::in_place) {
            longest = longest.max(self.length(next)?);
        }
        self.path.pop();
        if longest == SCHEMA_CHAIN_MAX {
            return Err((id, Flaw::TooLong));
        }
        if let Some(length) = self.lengths.get_mut(id) {
            *length = longest + 1;
        }
        Ok(longest + 1)
    }

    /// Every circle has a reference: the place where a person would cut it.
    fn reference_from(&self, at: usize) -> Option<NodeId> {
        self.path.iter().skip(at).copied().find(|id| self.nodes.get(*id).is_some_and(Node::has_ref))
    }
}
