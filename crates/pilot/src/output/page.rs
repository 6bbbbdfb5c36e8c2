//! A page for a person: our own words in the first columns, and what people wrote set apart from them.
//!
//! Everything is made visible before a colour is added, so that no colour on the page is anybody's but ours. What people
//! wrote is indented, and wrapped here: a terminal that wraps it would let it begin in the first column, where it could
//! pass for ours.

use pilot_core::visible::{visible, visible_line};
use unicode_width::UnicodeWidthChar as _;

use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::print_coloured;
use crate::terminal;

pub(crate) struct Page {
    text: String,
    has_colour: bool,
    columns: usize,
}

/// How far names of values are set off from the values.
const NAME_WIDTH: usize = 9;
const MARGIN: &str = "  │ ";

impl Page {
    pub(crate) fn new(environment: &Environment) -> Page {
        Page { text: String::new(), has_colour: terminal::has_colour(environment), columns: terminal::columns() }
    }

    pub(crate) fn heading(&mut self, text: &str) {
        let text = visible_line(text);
        let (bold, plain) = if self.has_colour { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
        self.text.extend([bold, &text, plain, "\n"]);
    }

    /// A line of our own.
    pub(crate) fn line(&mut self, text: &str) {
        self.text += visible_line(text).trim_end();
        self.text.push('\n');
    }

    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// `Digest   sha256:…`
    pub(crate) fn pair(&mut self, name: &str, value: &str) {
        self.line(&format!("{name:<NAME_WIDTH$}{value}"));
    }

    /// Text that people wrote, of any number of lines.
    pub(crate) fn quote(&mut self, text: &str) {
        let width = self.columns.saturating_sub(MARGIN.chars().count()).max(20);
        for line in visible(text).lines() {
            for piece in wrapped(&line.replace('\t', "    "), width) {
                self.text += format!("{MARGIN}{piece}").trim_end();
                self.text.push('\n');
            }
        }
    }

    pub(crate) fn print(self) -> Result<(), Failure> {
        print_coloured(&self.text)
    }
}

/// The columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(|character| character.width().unwrap_or(0)).sum()
}

/// As much as fits, with … for the rest.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut taken = 0;
    let fitting = text.chars().take_while(|character| {
        taken += character.width().unwrap_or(0);
        taken < columns
    });
    fitting.chain(['…']).collect()
}

/// Pieces of at most this width. Nothing is lost or added: this may be a command.
fn wrapped(line: &str, columns: usize) -> Vec<String> {
    let (mut pieces, mut piece, mut taken) = (Vec::new(), String::new(), 0);
    for character in line.chars() {
        let more = character.width().unwrap_or(0);
        if taken + more > columns {
            pieces.push(std::mem::take(&mut piece));
            taken = 0;
        }
        piece.push(character);
        taken += more;
    }
    pieces.push(piece);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(has_colour: bool) -> Page {
        Page { text: String::new(), has_colour, columns: 40 }
    }

    #[test]
    fn what_people_wrote_never_reaches_the_first_column_nor_brings_colours() {
        let mut page = page(true);
        page.heading("Content");
        page.quote(&format!("x\n{}Digest   sha256:0\u{1b}[8mhidden", " ".repeat(36)));
        let shown = super::super::visible_but_colours(&page.text);
        assert_eq!(shown, format!("\u{1b}[1mContent\u{1b}[0m\n  │ x\n  │\n  │ Digest   sha256:0⟨U+001B⟩[8mhidden\n"));
    }

    #[test]
    fn a_long_title_is_cut_to_its_columns_not_to_its_characters() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("a longer title", 8), "a longe…");
        assert_eq!(cut("日本語日本語", 7), "日本語…");
        assert!(width(&cut("日本語日本語", 6)) <= 6);
    }
}
