//! A page with commands: which of them run where, and what it shows of their output.
//!
//! A mark above a block of shell says how it is run; a block of text that follows shows the output:
//! - `<!-- run -->` in the person's shell, and `<!-- run, exit: 1 -->` if it must fail like this
//! - `<!-- run, terminal: NAME, until: WORDS -->` in a terminal of its own, where it goes on; without `until` at once
//! - `<!-- screen: NAME, until: WORDS -->` is a look at that terminal later
//! - `<!-- run, close terminals -->` after those were closed

use std::fs;
use std::path::{Path, PathBuf};

use super::recorded::Recorder;
use super::shell::Shell;

const TEXT: &str = "```text\n";
const END: &str = "```\n";

pub struct Page {
    path: PathBuf,
    text: String,
}

impl Page {
    pub fn open(path: &str) -> Page {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Page { path, text }
    }

    /// Runs every marked block in its order. The page must show what they print, or is rewritten if that is wanted.
    #[track_caller]
    pub fn run(&self, shell: &mut Shell, recorder: &mut Recorder) {
        let mut written = String::new();
        let mut rest = &*self.text;
        while let Some((before, mark, after)) = next_mark(rest) {
            let (lines, after_lines) = block(after, "```sh\n");
            let printed = recorder.recorded(&shell.obey(&mark, lines));
            written += before;
            written += &after[..after.len() - after_lines.len()];
            let (shown, after_shown) = block(after_lines, TEXT);
            if shown.is_some() {
                written.extend([TEXT, &printed, END]);
            }
            rest = after_shown;
        }
        written += rest;
        self.settle(&written);
    }

    #[track_caller]
    fn settle(&self, written: &str) {
        if written == self.text {
            return;
        }
        if pilot_testing::asked_for("UPDATE_EXPECT").is_some() {
            fs::write(&self.path, written).unwrap();
            return;
        }
        let lines = || self.text.lines().map(Some).chain([None]).zip(written.lines().map(Some).chain([None]));
        let (shown, printed) = lines().find(|(shown, printed)| shown != printed).unwrap();
        let path = self.path.display();
        panic!("{path} shows {shown:?}, and {printed:?} was printed; UPDATE_EXPECT=1 rewrites the page\n{written}");
    }
}

/// What a mark says: names and their values.
pub struct Mark(Vec<(String, String)>);

impl Mark {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }
}

/// The text up to and including a mark and its line, the mark, and what comes after.
fn next_mark(text: &str) -> Option<(&str, Mark, &str)> {
    let starts = ["<!-- run", "<!-- screen"];
    let at = starts.iter().filter_map(|start| text.find(start)).min()?;
    let end = at + text[at..].find("-->\n").expect("a mark ends with its line") + "-->\n".len();
    let words = text[at..end].trim_start_matches("<!-- ").trim_end_matches(" -->\n");
    let pairs = words.split(", ").map(|pair| pair.split_once(": ").unwrap_or((pair, "")));
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Some((&text[..end], Mark(pairs), &text[end..]))
}

/// A block that begins here, perhaps after an empty line, and what comes after it.
fn block<'t>(text: &'t str, fence: &str) -> (Option<&'t str>, &'t str) {
    let trimmed = text.strip_prefix('\n').unwrap_or(text);
    let Some(inside) = trimmed.strip_prefix(fence) else { return (None, text) };
    let (lines, after) = inside.split_once(END).expect("a block ends");
    (Some(lines), after)
}
