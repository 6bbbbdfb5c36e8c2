//! The diagram itself. Colours and fonts are in one style sheet inside the SVG, with a dark variant, so that the same
//! file serves the console, a report and a terminal user's browser, under a policy that allows nothing from outside.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use dagre::graph::{Graph, GraphOptions};
use dagre::layout::types::LabelPos;
use dagre::{EdgeLabel, LayoutOptions, NodeLabel, Point, layout};
use data_encoding::BASE64;
use sha2::{Digest as _, Sha256};

use super::{Edge, Label, Trail, edges, inner, kind_class};
use pilot_core::role::Role;
use pilot_core::role_set::RoleSet;
use pilot_core::workflow::{Definition, Kind, Name, State};

const LINE: f64 = 15.0;
const LETTER: f64 = 6.7;
const MARGIN: f64 = 16.0;
const LEGEND: f64 = 44.0;

/// Where the boxes and arrows of a definition are.
struct Layout {
    states: HashMap<Name, NodeLabel>,
    edges: HashMap<(Name, Name), EdgeLabel>,
}

impl Layout {
    fn of(definition: &Definition) -> Layout {
        let edges = edges(definition.rules());
        let graph = laid_out(definition, &edges);
        let states = definition.rules().states.iter();
        let state = |state: &State| Some((state.name.clone(), graph.node(&state.name)?.clone()));
        let edge = |edge: &Edge<'_>| Some((key(edge.from, edge.to), graph.edge(edge.from, edge.to, None)?.clone()));
        Layout { states: states.filter_map(state).collect(), edges: edges.iter().filter_map(edge).collect() }
    }

    fn state(&self, name: &Name) -> Option<&NodeLabel> {
        self.states.get(name)
    }

    fn edge(&self, edge: &Edge<'_>) -> Option<&EdgeLabel> {
        self.edges.get(&key(edge.from, edge.to))
    }
}

fn key(from: &str, to: &str) -> (Name, Name) {
    (from.into(), to.into())
}

/// Layouts made so far, by the digest of their definition. Making one takes tens of milliseconds, drawing with it less
/// than one. There are as many as definitions.
#[derive(Default)]
pub struct Layouts(Mutex<HashMap<Name, Arc<Layout>>>);

impl Layouts {
    /// The definition as an SVG document; with a trail, the path one item took is highlighted.
    pub fn svg(&self, definition: &Definition, trail: Option<&Trail>) -> String {
        draw(definition, &self.of(definition), trail)
    }

    fn of(&self, definition: &Definition) -> Arc<Layout> {
        let made = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = made().get(definition.digest()).cloned();
        // Made without the lock: two threads that make the same one come to the same result.
        known.unwrap_or_else(|| {
            let layout = Arc::new(Layout::of(definition));
            made().insert(definition.digest().clone(), Arc::clone(&layout));
            layout
        })
    }
}

/// The definition as an SVG document, if it is drawn only once.
pub fn svg(definition: &Definition, trail: Option<&Trail>) -> String {
    draw(definition, &Layout::of(definition), trail)
}

fn draw(definition: &Definition, layout: &Layout, trail: Option<&Trail>) -> String {
    let rules = definition.rules();
    let edges = edges(rules);
    let (width, height) = size(layout, definition, &edges);
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
        draw_arrow(&mut svg, layout, edge, trail);
    }
    for state in &rules.states {
        draw_state(&mut svg, layout, definition, state, trail);
    }
    // Text last, so that no line is drawn over it.
    for edge in &edges {
        draw_words(&mut svg, layout, edge, trail);
    }
    draw_legend(&mut svg, height + 8.0);
    svg.push_str("</svg>\n");
    svg
}

/// What a content security policy must list as a style source for the diagram to keep its colours when opened on its
/// own: `'sha256-…'`.
pub fn style_source() -> String {
    format!("'sha256-{}'", BASE64.encode(&Sha256::digest(STYLE)))
}

fn laid_out(definition: &Definition, edges: &[Edge<'_>]) -> Graph<NodeLabel, EdgeLabel> {
    let mut graph = Graph::with_options(GraphOptions { directed: true, multigraph: true, compound: false });
    for state in &definition.rules().states {
        let (width, height) = state_size(definition, state);
        graph.set_node(state.name.to_string(), Some(NodeLabel { width, height, ..NodeLabel::default() }));
    }
    for edge in edges {
        let (width, height) = words_size(&edge.labels);
        // The main path is short and straight; ends and deadlines may take a detour.
        let weight = match edge {
            _ if edge.timer || definition.rules().is_terminal(edge.to) => 1,
            _ if is_main(definition, edge) => 24,
            _ => 4,
        };
        graph.set_edge(
            edge.from,
            edge.to,
            Some(EdgeLabel { width, height, weight, labelpos: LabelPos::Center, ..EdgeLabel::default() }),
            None,
        );
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

/// Taken by a role that the state waits for, towards a state declared later: the main path.
fn is_main(definition: &Definition, edge: &Edge<'_>) -> bool {
    let states = &definition.rules().states;
    let place = |name: &str| states.iter().position(|state| *state.name == *name);
    let turn = definition.rules().state(edge.from).map_or(RoleSet::EMPTY, |state| state.waits_for);
    place(edge.from) < place(edge.to) && !edge.roles().shared(turn).is_empty()
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

/// The drawing's extent: boxes, bends and text.
fn size(layout: &Layout, definition: &Definition, edges: &[Edge<'_>]) -> (f64, f64) {
    let mut extent = (0.0_f64, 0.0_f64);
    let mut reach = |x: f64, y: f64| extent = (extent.0.max(x), extent.1.max(y));
    for state in &definition.rules().states {
        if let Some(node) = layout.state(&state.name) {
            reach(node.x.unwrap_or(0.0) + node.width / 2.0, node.y.unwrap_or(0.0) + node.height / 2.0);
        }
    }
    for edge in edges {
        let Some(label) = layout.edge(edge) else { continue };
        label.points.iter().for_each(|point| reach(point.x, point.y));
        reach(label.x.unwrap_or(0.0) + label.width / 2.0, label.y.unwrap_or(0.0) + label.height / 2.0);
    }
    (extent.0 + MARGIN, extent.1 + MARGIN)
}

fn draw_state(svg: &mut String, layout: &Layout, definition: &Definition, state: &State, trail: Option<&Trail>) {
    let Some(node) = layout.state(&state.name) else { return };
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
    let _ = writeln!(svg, "<text class=\"name\" x=\"{x:.1}\" y=\"{line:.1}\">{}</text>", escape(&state.name));
    if let Some(first) = inner.first() {
        let class = role_class(first.roles);
        let words = escape(&inner_words(&inner));
        let _ = writeln!(svg, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\">{words}</text>", y + 14.0);
    }
    svg.push_str("</g>\n");
}

fn draw_arrow(svg: &mut String, layout: &Layout, edge: &Edge<'_>, trail: Option<&Trail>) {
    let Some(label) = layout.edge(edge) else { return };
    let class = arrow_class(edge, trail);
    let _ = writeln!(svg, "<g class=\"arrow {class}\"><path d=\"{}\"/>", curve(&label.points));
    let _ = writeln!(svg, "<polygon points=\"{}\"/>", head(&label.points));
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

fn draw_words(svg: &mut String, layout: &Layout, edge: &Edge<'_>, trail: Option<&Trail>) {
    let Some(place) = layout.edge(edge) else { return };
    let (Some(x), Some(y)) = (place.x, place.y) else { return };
    let aside = trail.is_some_and(|trail| !trail.takes(edge.from, edge.to));
    let mut line = y - place.height / 2.0 + 12.0;
    for label in &edge.labels {
        let class = if label.roles.is_empty() { "timer" } else { role_class(label.roles) };
        let aside = if aside { " aside" } else { "" };
        let _ = writeln!(
            svg,
            "<text class=\"{class}{aside}\" x=\"{x:.1}\" y=\"{line:.1}\">{}</text>",
            escape(&label.words)
        );
        line += LINE;
    }
}

/// A smooth line through every bend that never overshoots one: cubic curves whose slope at a bend is the harmonic mean
/// of the slopes on both sides, along the direction of the layout.
fn curve(points: &[Point]) -> String {
    let Some(first) = points.first() else { return String::new() };
    let mut path = format!("M{:.1},{:.1}", first.x, first.y);
    let slopes = slopes(points);
    for (pair, slope) in points.windows(2).zip(slopes.windows(2)) {
        let ([from, to], [out, into]) = (pair, slope) else { continue };
        let third = (to.y - from.y) / 3.0;
        let _ = write!(
            path,
            "C{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}",
            out.mul_add(third, from.x),
            from.y + third,
            into.mul_add(-third, to.x),
            to.y - third,
            to.x,
            to.y
        );
    }
    path
}

/// How far the line moves sideways per step down, at every point.
fn slopes(points: &[Point]) -> Vec<f64> {
    let between = |pair: &[Point]| match pair {
        [from, to] if (to.y - from.y).abs() > 0.01 => (to.x - from.x) / (to.y - from.y),
        _ => 0.0,
    };
    let legs: Vec<f64> = points.windows(2).map(between).collect();
    let at_bend = |pair: &[f64]| match pair {
        [before, after] if before * after > 0.0 => 2.0 * before * after / (before + after),
        _ => 0.0,
    };
    let bends: Vec<f64> = legs.windows(2).map(at_bend).collect();
    let end = |leg: Option<&f64>, bend: Option<&f64>| match (leg, bend) {
        (Some(leg), Some(bend)) => leg.mul_add(1.5, -bend / 2.0),
        (leg, _) => leg.copied().unwrap_or(0.0),
    };
    let first = end(legs.first(), bends.first());
    let last = end(legs.last(), bends.last());
    std::iter::once(first).chain(bends).chain(std::iter::once(last)).collect()
}

/// The arrowhead points the way the line arrives.
fn head(points: &[Point]) -> String {
    let [.., before, tip] = points else { return String::new() };
    let slope = slopes(points).last().copied().unwrap_or(0.0);
    let down = if tip.y >= before.y { 1.0 } else { -1.0 };
    let length = slope.hypot(1.0);
    let (ux, uy) = (slope * down / length * 8.0, down / length * 8.0);
    let corner = |side: f64| format!("{:.1},{:.1}", uy.mul_add(-side, tip.x - ux), ux.mul_add(side, tip.y - uy));
    format!("{:.1},{:.1} {} {}", tip.x, tip.y, corner(0.45), corner(-0.45))
}

/// A single role has its own colour; several share a neutral one.
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
    let others = [("several", "several roles"), ("timer", "timer, dashed")];
    svg.push_str("<g class=\"legend\">\n");
    for (class, words) in roles.into_iter().chain(others) {
        let _ = writeln!(svg, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>");
        x += text_width(words) + 22.0;
    }
    for (kind, words) in [("effect", "effect"), ("end", "end")] {
        let corner = if kind == "end" { 7.0 } else { 3.0 };
        let _ = writeln!(
            svg,
            "<g class=\"state {kind}\"><rect x=\"{x:.1}\" y=\"{:.1}\" width=\"24\" height=\"14\" rx=\"{corner}\"/></g>\n\
             <text class=\"name\" x=\"{:.1}\" y=\"{y:.1}\">{words}</text>",
            y - 11.0,
            x + 30.0
        );
        x += text_width(words) + 60.0;
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
