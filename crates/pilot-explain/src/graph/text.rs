//! Mermaid and DOT, for pages and tools that do their own drawing.

use std::fmt::Write as _;

use super::{Edge, edges, kind_class};
use pilot_core::role_set::RoleSet;
use pilot_core::workflow::{Definition, Kind};

fn label(edge: &Edge<'_>, between: &str) -> String {
    let who = |roles: RoleSet| if roles.is_empty() { "timer".to_owned() } else { roles.to_string() };
    let words = edge.labels.iter().map(|label| format!("{} ({})", label.words, who(label.roles)));
    words.collect::<Vec<_>>().join(between)
}

/// Names contain only lowercase letters, digits, - and _, so they need no escaping; but Mermaid reads - in an id as an
/// arrow.
fn id(name: &str) -> String {
    name.replace('-', "_")
}

pub fn mermaid(definition: &Definition) -> String {
    let rules = definition.rules();
    let mut text = String::from("stateDiagram-v2\n");
    let _ = writeln!(text, "    [*] --> {}: create (initiator)", id(&rules.initial));
    for state in &rules.states {
        let _ = writeln!(text, "    {} : {}", id(&state.name), state.name);
    }
    for edge in edges(rules) {
        let _ = writeln!(text, "    {} --> {}: {}", id(edge.from), id(edge.to), label(&edge, " / "));
    }
    for state in rules.states.iter().filter(|state| state.kind == Kind::Terminal) {
        let _ = writeln!(text, "    {} --> [*]", id(&state.name));
    }
    text.push_str("    classDef effect stroke-width:4px\n    classDef end stroke-dasharray:0,font-style:italic\n");
    for state in rules.states.iter().filter(|state| state.kind != Kind::Open) {
        let _ = writeln!(text, "    class {} {}", id(&state.name), kind_class(state.kind));
    }
    text
}

pub fn dot(definition: &Definition) -> String {
    let rules = definition.rules();
    let mut text = format!("digraph \"{}\" {{\n    rankdir=TB;\n    node [shape=box, style=rounded];\n", rules.name);
    for state in &rules.states {
        let look = match state.kind {
            Kind::Open => "",
            Kind::Effect => " [style=\"rounded,bold\", penwidth=3]",
            Kind::Terminal => " [peripheries=2]",
        };
        let _ = writeln!(text, "    \"{}\"{look};", state.name);
    }
    for edge in edges(rules) {
        let dashed = if edge.timer { ", style=dashed" } else { "" };
        let _ = writeln!(text, "    \"{}\" -> \"{}\" [label=\"{}\"{dashed}];", edge.from, edge.to, label(&edge, "\\n"));
    }
    text.push_str("}\n");
    text
}
