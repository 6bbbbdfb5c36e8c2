//! A definition as a diagram: SVG for people, Mermaid and DOT for other tools.

mod svg;
mod text;

use pilot_core::role::Role;
use pilot_core::role_set::RoleSet;
use pilot_core::workflow::{Definition, Due, Kind, Mark, Name, Rules, State};

pub use svg::{Layouts, style_source, svg};
pub use text::{dot, mermaid};

/// The path one item took, to be shown in the diagram.
#[derive(Debug, Clone, Default)]
pub struct Trail {
    /// Each move as from and to, in any order.
    pub moves: Vec<(Name, Name)>,
    pub current: Option<Name>,
}

impl Trail {
    fn visits(&self, state: &str) -> bool {
        let visited = self.moves.iter().any(|(from, to)| **from == *state || **to == *state);
        visited || self.current.as_deref() == Some(state)
    }

    fn takes(&self, from: &str, to: &str) -> bool {
        self.moves.iter().any(|(before, after)| **before == *from && **after == *to)
    }
}

/// One arrow: everything that leads from one state to another.
struct Edge<'r> {
    from: &'r str,
    to: &'r str,
    labels: Vec<Label>,
    /// Only a timer leads this way.
    timer: bool,
}

struct Label {
    words: String,
    /// Empty for a timer.
    roles: RoleSet,
}

impl Edge<'_> {
    fn roles(&self) -> RoleSet {
        self.labels.iter().fold(RoleSet::EMPTY, |all, label| all.union(label.roles))
    }
}

/// Arrows between different states, in the order of the rules.
fn edges(rules: &Rules) -> Vec<Edge<'_>> {
    let mut edges: Vec<Edge<'_>> = Vec::new();
    for rule in &rules.transitions {
        let Some(to) = &rule.to else { continue };
        let words = match (&rule.when, rule.quorum, &rule.quorum_if) {
            (Some(when), ..) => format!("{} ({})", rule.action, when.equals),
            (None, Some(quorum), Some(raised)) => format!("{} ({quorum}–{})", rule.action, raised.quorum),
            (None, Some(quorum), None) if quorum > 1 => format!("{} ({quorum})", rule.action),
            _ => rule.action.to_string(),
        };
        for from in rule.from.iter().filter(|from| *from != to) {
            add(&mut edges, from, to, Label { words: words.clone(), roles: rule.roles });
        }
    }
    for timer in &rules.timers {
        let words = match &timer.due {
            Due::After(span) => format!("after {span}"),
            Due::At(Mark::WindowEnd) => "window over".to_owned(),
            Due::At(Mark::LeaseEnd) => "lease lost".to_owned(),
        };
        for from in &timer.from {
            add(&mut edges, from, &timer.to, Label { words: words.clone(), roles: RoleSet::EMPTY });
        }
    }
    for edge in &mut edges {
        edge.timer = edge.roles().is_empty();
    }
    edges
}

fn add<'r>(edges: &mut Vec<Edge<'r>>, from: &'r str, to: &'r str, label: Label) {
    match edges.iter_mut().find(|edge| edge.from == from && edge.to == to) {
        Some(edge) => edge.labels.push(label),
        None => edges.push(Edge { from, to, labels: vec![label], timer: false }),
    }
}

/// What can be done without leaving a state: shown inside its box.
fn inner(definition: &Definition, state: &State) -> Vec<Label> {
    let mut labels = Vec::new();
    if state.editable {
        labels.push(Label { words: "edit".to_owned(), roles: RoleSet::one(Role::Initiator) });
    }
    let stays = definition.rules().transitions.iter().filter(|rule| rule.to.is_none() && rule.leads_from(&state.name));
    labels.extend(stays.map(|rule| Label { words: rule.action.to_string(), roles: rule.roles }));
    labels
}

fn kind_class(kind: Kind) -> &'static str {
    match kind {
        Kind::Open => "open",
        Kind::Effect => "effect",
        Kind::Terminal => "end",
    }
}
