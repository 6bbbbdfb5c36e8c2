//! `docs/reference/performance.md`: every figure next to its target, what was run, and on what.

use std::fmt::Write as _;

use super::machine::Description;
use super::quiet::Conditions;
use super::report::{Figure, Section, Table, Target};

const COLUMNS: usize = 120;

const INTRODUCTION: &str = "\
`cargo xtask bench` measures everything on this page and writes it. Do not edit it by hand. Machines differ, and one \
machine differs from minute to minute: what is compared is measured in turns on the same machine, and the ratio is what \
counts. Each figure is the median of its rounds; the spread is the largest round minus the smallest, divided by the \
median. A missed target is shown as missed.";

const CONDITIONS: &str = "\
The load is the kernel's average over 1, 5 and 15 minutes. Others are processes that the benchmark did not start, and \
the kernel's own work; like the time stolen by other virtual machines, they are shares of all processors. A round \
during which more than 2 % were stolen is measured again, up to three times, and the least disturbed one counts.";

/// A benchmark that was run. Without a section it could not be measured.
pub(super) struct Measured {
    pub command: String,
    pub section: Option<Section>,
    pub conditions: Conditions,
}

/// Plots are in `performance/`, beside the page.
pub(super) fn markdown(machine: &Description, all: &[Measured]) -> String {
    let Description { date, processor, cores, memory_gib, kernel, compiler } = machine;
    let mut page = format!("# Performance\n\n{}\n\n", wrapped(INTRODUCTION));
    let about = format!(
        "Measured on {date}: {cores} cores of {processor}, {memory_gib:.0} GiB of memory, Linux {kernel}, {compiler}."
    );
    let _ = writeln!(page, "{}\n\n## Targets\n", wrapped(&about));
    let found = || all.iter().filter_map(|measured| measured.section.as_ref());
    page += &figures(found().flat_map(|section| section.figures.iter().map(|figure| (section.title, figure))));
    for measured in all {
        match &measured.section {
            Some(section) => page += &part(&measured.command, section),
            None => {
                let _ = writeln!(page, "\n`cargo xtask bench {}` could not be measured.", measured.command);
            }
        }
    }
    let _ = writeln!(page, "\n## Conditions\n\n{}\n", wrapped(CONDITIONS));
    page + &conditions(all)
}

fn figures<'f>(figures: impl Iterator<Item = (&'static str, &'f Figure)>) -> String {
    let mut text = "| benchmark | figure | value | target | | spread |\n|---|---|--:|--:|---|--:|\n".to_owned();
    for (title, figure) in figures {
        let [value, target, verdict, spread] = cells(figure);
        let _ = writeln!(text, "| {title} | {} | {value} | {target} | {verdict} | {spread} |", figure.what);
    }
    text
}

fn part(command: &str, section: &Section) -> String {
    let Section { title, about, tables, plots, .. } = section;
    let mut text = format!("\n## {title}\n\n");
    for paragraph in about.split("\n\n") {
        let _ = writeln!(text, "{}\n", wrapped(paragraph));
    }
    let _ = writeln!(text, "To repeat it: `cargo xtask bench {command}`.");
    for table in tables {
        text += "\n";
        text += &table_text(table);
    }
    for plot in plots {
        let _ = writeln!(text, "\n![{}](performance/{}.svg)", plot.title, plot.file);
    }
    text
}

fn table_text(table: &Table) -> String {
    let mut text = format!("| {} |\n", table.columns.join(" | "));
    let numbers = table.columns.iter().skip(1).map(|_| "--:|").collect::<String>();
    let _ = writeln!(text, "|---|{numbers}");
    for row in &table.rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

fn conditions(all: &[Measured]) -> String {
    let mut text = "| benchmark | load before | load after | others | stolen |\n|---|--:|--:|--:|--:|\n".to_owned();
    for Measured { command, conditions, .. } in all {
        let Conditions { load_before, load_after, others, stolen } = conditions;
        let (others, stolen) = (percent(*others), percent(*stolen));
        let _ = writeln!(text, "| `{command}` | {load_before} | {load_after} | {others} | {stolen} |");
    }
    text
}

/// Value, target, verdict and spread.
pub(super) fn cells(figure: &Figure) -> [String; 4] {
    let with_unit = |value: f64| [number(value).as_str(), figure.unit].join(" ").trim_end().to_owned();
    let (relation, limit) = match figure.target {
        Target::AtLeast(limit) => ("≥", limit),
        Target::AtMost(limit) => ("≤", limit),
    };
    let verdict = if figure.target.is_met(figure.value) { "met" } else { "**missed**" };
    [with_unit(figure.value), format!("{relation} {}", with_unit(limit)), verdict.to_owned(), percent(figure.spread)]
}

fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.0} %", share * 100.0) } else { "–".to_owned() }
}

/// Three or four digits that mean something, with commas.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "–".to_owned();
    }
    if size < 99.95 {
        let digits = if size < 9.995 { 2 } else { 1 };
        return format!("{value:.digits$}");
    }
    let whole = format!("{size:.0}");
    let mut text = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let full = lines.last().is_some_and(|line| line.chars().count() + 1 + word.chars().count() > COLUMNS);
        if full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
