//! A schema as it is applied: nodes that refer to each other by number.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::pattern::Pattern;
use super::rule::Rule;
use crate::certain::Certain as _;

pub(super) type NodeId = usize;

/// Whatever a schema refers to, it is read from its root.
pub(super) const ROOT: NodeId = 0;

#[derive(Debug)]
pub(super) struct Schema {
    pub(super) nodes: Vec<Node>,
}

impl Schema {
    pub(super) fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(id).certain("every number was given to a node")
    }
}

#[derive(Debug, Default)]
pub(super) struct Node {
    /// In the order of their faults; those about what others have left over come last.
    pub(super) keywords: Vec<Keyword>,
}

#[derive(Debug)]
pub(super) enum Keyword {
    Rule { rule: Rule, sentence: String },
    Required(Vec<String>),
    DependentRequired(Vec<(String, Vec<String>)>),
    Members(Members),
    MemberNames(NodeId),
    Items { first: Vec<NodeId>, others: Option<NodeId> },
    Contains { item: NodeId, min: u64, max: Option<u64> },
    DependentSchemas(Vec<(String, NodeId)>),
    AllOf(Vec<NodeId>),
    AnyOf { branches: Vec<NodeId>, has_one_of: bool },
    OneOf(Vec<NodeId>),
    Not(NodeId),
    If { test: NodeId, then: Option<NodeId>, otherwise: Option<NodeId> },
    Ref(NodeId),
    UnevaluatedMembers(NodeId),
    UnevaluatedItems(NodeId),
}

#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) named: BTreeMap<String, NodeId>,
    pub(super) patterns: Vec<(Arc<Pattern>, NodeId)>,
    pub(super) others: Others,
}

/// Members that no name and no pattern speaks of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Others {
    #[default]
    Free,
    Refused,
    Judged(NodeId),
}

impl Node {
    pub(super) fn never() -> Node {
        let sentence = "is not allowed here".to_owned();
        Node { keywords: vec![Keyword::Rule { rule: Rule::Never, sentence }] }
    }

    /// Whether it asks which members or items nothing else has judged.
    pub(super) fn asks_for_the_rest(&self) -> bool {
        matches!(self.keywords.last(), Some(Keyword::UnevaluatedMembers(_) | Keyword::UnevaluatedItems(_)))
    }

    /// The nodes that judge the same value as this one.
    pub(super) fn in_place(&self) -> impl Iterator<Item = NodeId> {
        self.keywords.iter().flat_map(Keyword::in_place)
    }

    pub(super) fn has_ref(&self) -> bool {
        self.keywords.iter().any(|keyword| matches!(keyword, Keyword::Ref(_)))
    }
}

impl Keyword {
    fn in_place(&self) -> Vec<NodeId> {
        match self {
            Keyword::AllOf(branches) | Keyword::AnyOf { branches, .. } | Keyword::OneOf(branches) => branches.clone(),
            Keyword::Not(id) | Keyword::Ref(id) => vec![*id],
            Keyword::If { test, then, otherwise } => [Some(*test), *then, *otherwise].into_iter().flatten().collect(),
            Keyword::DependentSchemas(list) => list.iter().map(|(_, id)| *id).collect(),
            Keyword::Rule { .. }
            | Keyword::Required(_)
            | Keyword::DependentRequired(_)
            | Keyword::Members(_)
            | Keyword::MemberNames(_)
            | Keyword::Items { .. }
            | Keyword::Contains { .. }
            | Keyword::UnevaluatedMembers(_)
            | Keyword::UnevaluatedItems(_) => Vec::new(),
        }
    }
}
