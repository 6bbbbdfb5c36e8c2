//! What is wrong with a definition, shown where it is.

use std::fmt::Write as _;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use pilot_core::workflow::source::Flaws;

/// Every finding with its line, a caret and how to fix it.
pub fn render(flaws: &Flaws, file: &str, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut shown = String::new();
    for finding in flaws.findings() {
        let span = flaws.span(finding);
        let snippet = Snippet::source(flaws.text()).path(file).annotation(AnnotationKind::Primary.span(span));
        let title = Level::ERROR.primary_title(&finding.message).id(finding.code);
        let mut group = title.element(snippet);
        if !finding.path.is_empty() {
            group = group.element(Level::NOTE.message(steps(&finding.path)));
        }
        let report = [group.element(Level::HELP.message(&finding.mend))];
        let _ = writeln!(shown, "{}\n", renderer.render(&report));
    }
    shown
}

fn steps(path: &[String]) -> String {
    let numbered = path.iter().enumerate().map(|(index, step)| format!("{}. {step}", index + 1));
    format!("the shortest path:\n{}", numbered.collect::<Vec<_>>().join("\n"))
}
