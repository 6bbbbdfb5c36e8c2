//! What a benchmark found, for a terminal.

use std::fmt::Write as _;

use super::page::{Measured, cells};
use super::report::{Figure, Table};

pub(super) fn print(measured: &Measured) {
    print!("{}", text(measured));
}

fn text(measured: &Measured) -> String {
    let Some(section) = &measured.section else {
        return format!("\n{}: could not be measured\n", measured.command);
    };
    let mut text = format!("\n{}\n", section.title);
    for table in &section.tables {
        text += &table_text(table);
        text += "\n";
    }
    text += &figures(&section.figures);
    let conditions = &measured.conditions;
    let _ = writeln!(
        text,
        "load before {}, after {}; others used {:.1} % of the processors, {:.1} % were stolen",
        conditions.load_before,
        conditions.load_after,
        conditions.others * 100.0,
        conditions.stolen * 100.0
    );
    text
}

fn figures(figures: &[Figure]) -> String {
    let row = |figure: &Figure| {
        let [value, target, verdict, spread] = cells(figure);
        vec![figure.what.clone(), value, target, verdict.replace("**", ""), spread]
    };
    let rows = figures.iter().map(row).collect();
    table_text(&Table { columns: vec!["figure", "value", "target", "verdict", "spread"], rows })
}

/// The first column to the left, the others to the right.
pub(super) fn table_text(table: &Table) -> String {
    let width = |column: usize, name: &str| {
        let cells = table.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([name.chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<_> = table.columns.iter().enumerate().map(|(column, name)| width(column, name)).collect();
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("   {cell:>width$}") }
        });
        format!("{}\n", padded.collect::<String>().trim_end())
    };
    let rows = table.rows.iter().map(|row| line(row.iter().map(String::as_str).collect()));
    line(table.columns.clone()) + &rows.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::super::quiet::Conditions;
    use super::super::report::{Section, Target};
    use super::*;

    #[test]
    fn tables_are_aligned() {
        let rows = vec![vec!["pilot".into(), "36,700".into()], vec!["Fastify + PostgreSQL".into(), "3,200".into()]];
        let figure = Figure { what: "p99".into(), value: 9.0, unit: "ms", target: Target::AtMost(8.0), spread: 0.1 };
        let section = Section {
            title: "Transitions",
            figures: vec![figure],
            tables: vec![Table { columns: vec!["what", "moves/s"], rows }],
            ..Section::default()
        };
        let conditions =
            Conditions { load_before: "0 0 0".into(), load_after: "2 1 1".into(), others: 0.014, stolen: 0.0 };
        let shown = text(&Measured { command: "transitions".into(), section: Some(section), conditions });
        let expected = "
Transitions
what                   moves/s
pilot                   36,700
Fastify + PostgreSQL     3,200

figure     value      target   verdict   spread
p99      9.00 ms   ≤ 8.00 ms    missed     10 %
load before 0 0 0, after 2 1 1; others used 1.4 % of the processors, 0.0 % were stolen
";
        assert_eq!(shown, expected);
    }
}
