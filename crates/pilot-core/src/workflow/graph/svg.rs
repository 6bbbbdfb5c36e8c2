//! The picture itself. Colours and fonts are in one style sheet inside the SVG, with a dark half, so that the same file
//! serves the console, a report and a terminal user's browser, under a policy that allows nothing from outside.

use std::fmt::Write as _;

use dagre::graph::{Graph, GraphOptions};
use dagre::{EdgeLabel, LayoutOptions, NodeLabel, Point, layout};

use crate::role::Role;
use crate::role_set::RoleSet;
use crate::workflow::graph::{Edge, Label, Trail, edges, inner, kind_class};
use crate::workflow::{Definition, Kind, Name, State};

const LINE: f64 = 15.0;
const LETTER: f64 = 6.7;
const MARGIN: f64 = 16.0;
const LEGEND: f64 = 44.0;

type Layout = Graph<NodeLabel, EdgeLabel>;

/// The definition as an SVG document; with a trail, the way one item took stands out.
pub fn svg(definition: &Definition, trail: Option<&Trail>) -> String {
    let rules = definition.rules();
    let edges = edges(rules);
    let graph = laid_out(definition, &edges);
    let (width, height) = size(&graph, definition, &edges);
    let width = width.max(640.0);
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {:.0}\" width=\"{width:.0}\" height=\"{:.0}\" \
         role=\"img\" aria-labelledby=\"t d\">",
        height + LEGEND,
        height + LEGEND
    );
    let _ = writeln!(svg, "<title id=\"t\">{}</title>", escape(&rules.title));
    let _ = writeln!(svg, "<desc id=\"d\">{}</desc>\n<style>{STYLE}</style>", escape(&rules.description));
    let _ = writeln!(svg, "<rect class=\"paper\" width=\"{width:.0}\" height=\"{:.0}\"/>", height + LEGEND);
    for edge in &edges {
        draw_arrow(&mut svg, &graph, edge, trail);
    }
    for state in &rules.states {
        draw_state(&mut svg, &graph, definition, state, trail);
    }
    // Words last: no line is drawn over them.
    for edge in &edges {
        draw_words(&mut svg, &graph, edge, trail);
    }
    draw_legend(&mut svg, height + 8.0);
    svg.push_str("</svg>\n");
    svg
}

fn laid_out(definition: &Definition, edges: &[Edge<'_>]) -> Layout {
    let mut graph = Graph::with_options(GraphOptions { directed: true, multigraph: true, compound: false });
    for state in &definition.rules().states {
        let (width, height) = state_size(definition, state);
        graph.set_node(state.name.to_string(), Some(NodeLabel { width, height, ..NodeLabel::default() }));
    }
    for edge in edges {
        let (width, height) = words_size(&edge.labels);
        // The main way is short and straight; ends and deadlines may go around.
        let weight = if edge.timer || definition.rules().is_terminal(edge.to) { 1 } else { 4 };
        graph.set_edge(edge.from, edge.to, Some(EdgeLabel { width, height, weight, ..EdgeLabel::default() }), None);
    }
    let options = LayoutOptions {
        nodesep: 36.0,
        edgesep: 18.0,
        ranksep: 34.0,
        marginx: MARGIN,
        marginy: MARGIN,
        ..LayoutOptions::default()
    };
    layout(&mut graph, Some(options));
    graph
}

#[expect(clippy::cast_precision_loss, reason = "a label has a few dozen letters")]
fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

#[expect(clippy::cast_precision_loss, reason = "an arrow has a few labels")]
fn words_size(labels: &[Label]) -> (f64, f64) {
    let width = labels.iter().map(|label| text_width(&label.words)).fold(0.0, f64::max);
    (width + 10.0, labels.len() as f64 * LINE + 2.0)
}

fn state_size(definition: &Definition, state: &State) -> (f64, f64) {
    let inner = inner(definition, state);
    let inside = inner_words(&inner);
    let width = text_width(&state.name).mul_add(1.15, 34.0).max(text_width(&inside) + 24.0);
    (width.max(90.0), if inner.is_empty() { 34.0 } else { 50.0 })
}

fn inner_words(labels: &[Label]) -> String {
    let words = labels.iter().map(|label| format!("↻ {}", label.words));
    words.collect::<Vec<_>>().join("  ")
}

/// The drawing's extent: boxes, bends and words.
fn size(graph: &Layout, definition: &Definition, edges: &[Edge<'_>]) -> (f64, f64) {
    let mut extent = (0.0_f64, 0.0_f64);
    let mut reach = |x: f64, y: f64| extent = (extent.0.max(x), extent.1.max(y));
    for state in &definition.rules().states {
        if let Some(node) = graph.node(&state.name) {
            reach(node.x.unwrap_or(0.0) + node.width / 2.0, node.y.unwrap_or(0.0) + node.height / 2.0);
        }
    }
    for edge in edges {
        let Some(label) = graph.edge(edge.from, edge.to, None) else { continue };
        label.points.iter().for_each(|point| reach(point.x, point.y));
        reach(label.x.unwrap_or(0.0) + label.width / 2.0, label.y.unwrap_or(0.0) + label.height / 2.0);
    }
    (extent.0 + MARGIN, extent.1 + MARGIN)
}

fn draw_state(svg: &mut String, graph: &Layout, definition: &Definition, state: &State, trail: Option<&Trail>) {
    let Some(node) = graph.node(&state.name) else { return };
    let (x, y) = (node.x.unwrap_or(0.0), node.y.unwrap_or(0.0));
    let (width, height) = (node.width, node.height);
    let (left, top) = (x - width / 2.0, y - height / 2.0);
    let visited = trail.is_some_and(|trail| trail.visits(&state.name));
    let current = trail.is_some_and(|trail| trail.current.as_deref() == Some(&*state.name));
    let _ = writeln!(
        svg,
        "<g class=\"state {}{}{}{}\"><title>{}</title>",
        kind_class(state.kind),
        if trail.is_some() && !visited { " aside" } else { "" },
        if visited { " visited" } else { "" },
        if current { " current" } else { "" },
        escape(&state.description)
    );
    let corner = if state.kind == Kind::Terminal { height / 2.0 } else { 7.0 };
    let _ = writeln!(
        svg,
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{corner:.1}\"/>"
    );
    let inner = inner(definition, state);
    let line = if inner.is_empty() { y + 5.0 } else { y - 3.0 };
    let mark = if state.kind == Kind::Effect { "⚡ " } else { "" };
    let _ = writeln!(svg, "<text class=\"name\" x=\"{x:.1}\" y=\"{line:.1}\">{mark}{}</text>", escape(&state.name));
    if let Some(first) = inner.first() {
        let class = role_class(first.roles);
        let words = escape(&inner_words(&inner));
        let _ = writeln!(svg, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\">{words}</text>", y + 14.0);
    }
    svg.push_str("</g>\n");
}

fn draw_arrow(svg: &mut String, graph: &Layout, edge: &Edge<'_>, trail: Option<&Trail>) {
    let Some(label) = graph.edge(edge.from, edge.to, None) else { return };
    let class = arrow_class(edge, trail);
    let _ = writeln!(svg, "<g class=\"arrow {class}\"><path d=\"{}\"/>", curve(&label.points));
    if let [.., before, tip] = label.points.as_slice() {
        let _ = writeln!(svg, "<polygon points=\"{}\"/>", head(before, tip));
    }
    svg.push_str("</g>\n");
}

fn arrow_class(edge: &Edge<'_>, trail: Option<&Trail>) -> String {
    let role = if edge.timer { "timer" } else { role_class(edge.roles()) };
    let taken = match trail {
        Some(trail) if trail.takes(edge.from, edge.to) => " taken",
        Some(_) => " aside",
        None => "",
    };
    format!("{role}{taken}")
}

fn draw_words(svg: &mut String, graph: &Layout, edge: &Edge<'_>, trail: Option<&Trail>) {
    let Some(place) = graph.edge(edge.from, edge.to, None) else { return };
    let (Some(x), Some(y)) = (place.x, place.y) else { return };
    let aside = trail.is_some_and(|trail| !trail.takes(edge.from, edge.to));
    let mut line = y - place.height / 2.0 + 12.0;
    for label in &edge.labels {
        let class = if label.roles.is_empty() { "timer" } else { role_class(label.roles) };
        let aside = if aside { " aside" } else { "" };
        let words = if label.roles.is_empty() { format!("⏱ {}", label.words) } else { label.words.clone() };
        let _ = writeln!(svg, "<text class=\"{class}{aside}\" x=\"{x:.1}\" y=\"{line:.1}\">{}</text>", escape(&words));
        line += LINE;
    }
}

/// A smooth line through the bends: quadratic curves from middle to middle, straight at both ends.
fn curve(points: &[Point]) -> String {
    let [first, inner @ .., last] = points else { return String::new() };
    let mut path = format!("M{:.1},{:.1}", first.x, first.y);
    for (index, bend) in inner.iter().enumerate() {
        let next = inner.get(index + 1).unwrap_or(last);
        let (x, y) = if index + 1 == inner.len() {
            (last.x, last.y)
        } else {
            (f64::midpoint(bend.x, next.x), f64::midpoint(bend.y, next.y))
        };
        let _ = write!(path, "Q{:.1},{:.1} {x:.1},{y:.1}", bend.x, bend.y);
    }
    if inner.is_empty() {
        let _ = write!(path, "L{:.1},{:.1}", last.x, last.y);
    }
    path
}

fn head(before: &Point, tip: &Point) -> String {
    let (dx, dy) = (tip.x - before.x, tip.y - before.y);
    let length = dx.hypot(dy).max(0.1);
    let (ux, uy) = (dx / length * 8.0, dy / length * 8.0);
    let corner = |side: f64| format!("{:.1},{:.1}", tip.x - ux - uy * side, tip.y - uy + ux * side);
    format!("{:.1},{:.1} {} {}", tip.x, tip.y, corner(0.45), corner(-0.45))
}

/// One role has its colour; several share a neutral one.
fn role_class(roles: RoleSet) -> &'static str {
    let mut each = roles.iter();
    match (each.next(), each.next()) {
        (Some(role), None) => role.as_str(),
        _ => "several",
    }
}

fn draw_legend(svg: &mut String, top: f64) {
    let mut x = MARGIN;
    let y = top + 18.0;
    let roles = [Role::Initiator, Role::Approver, Role::SecurityAdmin, Role::Executor]
        .map(|role| (role.as_str(), role.as_str()));
    let others = [("several", "several roles"), ("timer", "⏱ time"), ("name", "⚡ effect")];
    svg.push_str("<g class=\"legend\">\n");
    for (class, words) in roles.into_iter().chain(others) {
        let _ = writeln!(svg, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>");
        x += text_width(words) + 22.0;
    }
    svg.push_str("</g>\n");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// For an item's page: the trail of its transitions.
impl FromIterator<(Name, Name)> for Trail {
    fn from_iter<T: IntoIterator<Item = (Name, Name)>>(moves: T) -> Self {
        let moves: Vec<_> = moves.into_iter().collect();
        let current = moves.last().map(|(_, to)| to.clone());
        Trail { moves, current }
    }
}

const STYLE: &str = "
svg{--paper:#fff;--ink:#1f2328;--box:#f6f8fa;--line:#8c959f;--effect:#fff1d6;--effectline:#bc4c00;--end:#eaeef2;--now:#ddf4ff;
--initiator:#0757ba;--approver:#116329;--security_admin:#8250df;--executor:#bc4c00;--several:#424a53;--timer:#6e7781}
@media (prefers-color-scheme:dark){svg{--paper:#0d1117;--ink:#e6edf3;--box:#161b22;--line:#6e7681;--effect:#3d2a08;--effectline:#f0883e;--end:#21262d;
--now:#0c2d6b;--initiator:#79c0ff;--approver:#56d364;--security_admin:#d2a8ff;--executor:#ffa657;--several:#c9d1d9;--timer:#8b949e}}
text{font:12px ui-sans-serif,system-ui,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;text-anchor:middle;paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}
.legend text{text-anchor:start}
.state text{stroke:none}
.name{font-weight:600;font-size:13px;fill:var(--ink)}
.paper{fill:var(--paper)}
.state rect{fill:var(--box);stroke:var(--line);stroke-width:1.2}
.effect rect{fill:var(--effect);stroke:var(--effectline);stroke-width:2.6}
.end rect{fill:var(--end)}
.end .name{font-weight:400}
.arrow path{fill:none;stroke-width:1.4}
.arrow.timer path{stroke-dasharray:5 4}
text.initiator{fill:var(--initiator)}text.approver{fill:var(--approver)}text.security_admin{fill:var(--security_admin)}
text.executor{fill:var(--executor)}text.several{fill:var(--several)}text.timer{fill:var(--timer)}
.arrow.initiator path{stroke:var(--initiator)}.arrow.initiator polygon{fill:var(--initiator)}
.arrow.approver path{stroke:var(--approver)}.arrow.approver polygon{fill:var(--approver)}
.arrow.security_admin path{stroke:var(--security_admin)}.arrow.security_admin polygon{fill:var(--security_admin)}
.arrow.executor path{stroke:var(--executor)}.arrow.executor polygon{fill:var(--executor)}
.arrow.several path{stroke:var(--several)}.arrow.several polygon{fill:var(--several)}
.arrow.timer path{stroke:var(--timer)}.arrow.timer polygon{fill:var(--timer)}
.aside{opacity:.3}
.arrow.taken path{stroke-width:3}
.visited rect{stroke:var(--ink);stroke-width:2}
.current rect{fill:var(--now);stroke-width:3}
";
