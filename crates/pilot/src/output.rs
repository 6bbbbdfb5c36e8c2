//! What commands print: tables for people, JSON for programs.

use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;

use crate::exit::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
pub enum Output {
    #[default]
    Table,
    Json,
}

#[derive(clap::Args, Clone, Copy)]
pub struct OutputArguments {
    /// How to print the result
    #[arg(long, value_enum, default_value_t, global = true)]
    pub output: Output,
}

pub fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        // The reader has seen enough (`pilot credential list | head -1`).
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Failure::environment("standard output", error)),
    }
}

pub fn print_json(view: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(view).map_err(|error| Failure::environment("JSON", error))?;
    print(&(text + "\n"))
}

/// Columns as wide as their widest cell, two spaces apart.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut lines = vec![header.iter().map(|name| name.to_uppercase()).collect::<Vec<_>>()];
    lines.extend(rows);
    let width = |column: usize| lines.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<_> = (0..header.len()).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<_> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    lines.iter().map(line).collect()
}
