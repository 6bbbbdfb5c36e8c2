//! What commands print: tables for people, JSON for programs.
//!
//! Much of it was written by people, or comes from a service or a file that may be malicious. None of it may control
//! the terminal or hide from the reader, so everything is made visible here, when it is printed, and nowhere else.

use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;

use clap::ValueEnum;
use pilot_core::leak::LeakGuard;
use pilot_core::visible::{visible, visible_json, visible_line};
use serde::Serialize;

use crate::exit::Failure;

pub(crate) mod fields;
pub(crate) mod page;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
pub(crate) enum Output {
    #[default]
    Table,
    Json,
}

#[derive(clap::Args, Clone, Copy)]
pub(crate) struct OutputArguments {
    /// How to print the result
    #[arg(long, value_enum, default_value_t, global = true)]
    pub output: Output,
}

pub(crate) fn print(text: &str) -> Result<(), Failure> {
    write_out(&visible(text))
}

/// For text that we have coloured ourselves: only colours are passed through.
pub(crate) fn print_coloured(text: &str) -> Result<(), Failure> {
    write_out(&visible_but_colours(text))
}

fn visible_but_colours(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut pieces = text.split("\u{1b}[");
    shown += &visible(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (codes, rest) = piece.split_once('m').unwrap_or(("?", piece));
        let is_colour = codes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';');
        if is_colour {
            shown.extend(["\u{1b}[", codes, "m", &visible(rest)]);
        } else {
            shown += &visible(&["\u{1b}[", piece].concat());
        }
    }
    shown
}

/// Writes one or more lines to standard error.
pub(crate) fn complain(text: &str) -> io::Result<()> {
    writeln!(io::stderr(), "{}", visible(text))
}

/// A remark for the person, kept out of what programs read.
pub(crate) fn note(text: &str) -> Result<(), Failure> {
    complain(text).map_err(|error| Failure::environment("standard error", error))
}

/// Why a command failed, and the code it ends with.
pub(crate) fn report(failure: &Failure) -> ExitCode {
    // Errors often quote a file, and a file may contain anything.
    let text = LeakGuard::for_generated_tokens().redact(failure.text()).into_owned();
    let _ = complain(&format!("pilot: {text}"));
    ExitCode::from(failure.code())
}

/// A progress line on a terminal, which replaces the previous one. Nobody watches a pipe.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    is_watched: bool,
}

impl Default for ProgressLine {
    fn default() -> Self {
        ProgressLine { is_watched: io::stderr().is_terminal() }
    }
}

impl ProgressLine {
    pub(crate) fn show(&self, text: &str) {
        if self.is_watched {
            let _ = write!(io::stderr(), "\r\x1b[K{text}");
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.show("");
    }
}

fn write_out(text: &str) -> Result<(), Failure> {
    offer_out(text).map(drop)
}

/// False if the reader has read enough (`pilot credential list | head -1`).
fn offer_out(text: &str) -> Result<bool, Failure> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true).map_err(|error| Failure::environment("standard output", error)),
    }
}

/// One of many lines; false if nobody reads them any more.
pub(crate) fn offer_line(text: &str) -> Result<bool, Failure> {
    offer_out(&(visible_line(text).into_owned() + "\n"))
}

/// Words for a shell, each with what it stands for; one on a line.
pub(crate) fn offer_words(words: impl Iterator<Item = (String, String)>) -> Result<(), Failure> {
    let line = |(word, meaning): (String, String)| format!("{}\t{}\n", visible_line(&word), visible_line(&meaning));
    write_out(&words.map(line).collect::<String>())
}

/// The same for a line of JSON.
pub(crate) fn offer_json_line(json: &str) -> Result<bool, Failure> {
    offer_out(&(visible_json(json).into_owned() + "\n"))
}

pub(crate) fn print_json(view: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(view).map_err(|error| Failure::environment("JSON", error))?;
    // JSON escapes: a program reads exactly the same values.
    write_out(&(visible_json(&text).into_owned() + "\n"))
}

/// Columns as wide as their widest cell, two spaces apart.
pub(crate) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut lines = vec![header.iter().map(|name| name.to_uppercase()).collect::<Vec<_>>()];
    // A line break inside a cell could make its text look like a row.
    lines.extend(rows.into_iter().map(|row| row.iter().map(|cell| visible_line(cell).into_owned()).collect()));
    let width = |column: usize| lines.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<_> = (0..header.len()).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<_> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    lines.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_cannot_pose_as_a_row() {
        let text =
            table(&["actor", "what"], [vec!["ana\nben".into(), "a\u{202e}b".into()], vec!["x".into(), "y".into()]]);
        assert_eq!(text, "ACTOR           WHAT\nana⟨U+000A⟩ben  a⟨U+202E⟩b\nx               y\n");
    }

    #[test]
    fn our_colours_reach_the_terminal_and_no_other_sequence_does() {
        let text = "\u{1b}[1m\u{1b}[38;5;9merror\u{1b}[0m: \u{1b}[2Jm \u{1b}]0;t\u{7} \u{202e}x \u{1b}[";
        assert_eq!(
            visible_but_colours(text),
            "\u{1b}[1m\u{1b}[38;5;9merror\u{1b}[0m: ⟨U+001B⟩[2Jm ⟨U+001B⟩]0;t⟨U+0007⟩ ⟨U+202E⟩x ⟨U+001B⟩["
        );
    }
}
