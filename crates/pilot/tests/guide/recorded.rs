//! Output as a page shows it: ids, digests, times and places that differ each time become ones that never do.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

/// The place at which the pages were recorded.
const PLACE: &str = "/srv";
const ADDRESS: &str = "127.0.0.1:7450";
/// How the program sets apart what people wrote, and where it wraps that.
const MARGIN: &str = "  │ ";
const COLUMNS: usize = 80;

/// Remembers what became of each value, so that two that were equal stay equal.
pub struct Recorder {
    home: String,
    known: BTreeMap<String, String>,
    files: Option<&'static str>,
}

impl Recorder {
    pub fn new(home: &str) -> Recorder {
        Recorder { home: home.to_owned(), known: BTreeMap::new(), files: None }
    }

    /// Each cosigned checkpoint is a file, so on a slow machine a bundle has more of them.
    pub fn with_files(self, files: &'static str) -> Recorder {
        Recorder { files: Some(files), ..self }
    }

    pub fn recorded(&mut self, printed: &str) -> String {
        let text = joined(printed.trim_end()).replace(&self.home, PLACE);
        let lines = text.lines().filter(|line| !line.contains("not held in a control group"));
        lines.map(|line| wrapped(&self.line(line))).collect()
    }

    fn line(&mut self, line: &str) -> String {
        // A hash in base64 has signs that part words elsewhere.
        if let Some((hash, size)) = line.strip_prefix("root ").and_then(|rest| rest.split_once(" of ")) {
            let new = self.same(hash, |seed| data_encoding::BASE64.encode(&Sha256::digest(seed)));
            return format!("root {new} of {size}");
        }
        let is_part = |sign: char| sign.is_ascii_alphanumeric() || "-:.".contains(sign);
        let (mut text, mut rest) = (String::new(), line);
        while let Some(at) = rest.find(is_part) {
            let (before, from) = rest.split_at(at);
            let end = from.find(|sign| !is_part(sign)).unwrap_or(from.len());
            text += before;
            let (word, after) = from.split_at(end);
            let new = self.word(word, &text, after);
            text += &new;
            rest = after;
        }
        text + rest
    }

    fn word(&mut self, word: &str, before: &str, after: &str) -> String {
        let is_hex = |length| word.len() == length && word.bytes().all(|byte| b"0123456789abcdef".contains(&byte));
        let shape: String = word.chars().map(|sign| if sign.is_ascii_digit() { '0' } else { sign }).collect();
        if before.ends_with("file://") {
            return "host".to_owned();
        }
        if let Some((id, more)) = word.split_at_checked(36).filter(|(id, _)| id.matches('-').count() == 4) {
            return self.same(id, |seed| format!("01980f6e-2a00-7000-8{}-{}", &seed[..3], &seed[3..15])) + more;
        }
        if let Some(digest) = word.strip_prefix("sha256:") {
            return format!("sha256:{}", self.word(digest, "", ""));
        }
        if is_hex(64) || is_hex(16) || is_hex(8) && before.ends_with("pilot.local/") {
            return self.same(word, |seed| seed[..word.len()].to_owned());
        }
        if word.starts_with("127.0.0.1:") {
            return ADDRESS.to_owned();
        }
        match &*shape {
            "0000-00-00" => "2026-11-17".to_owned(),
            "00:00:00" => "09:30:00".to_owned(),
            _ if shape.starts_with("0000-00-00T") => "2026-11-17T09:30:00.000000Z".to_owned(),
            _ if !shape.contains(|sign| sign != '0') && after.starts_with(" bytes") => "1234".to_owned(),
            // One a minute is kept, so a slow machine has more of them.
            _ if !shape.contains(|sign| sign != '0') && after.starts_with(" cosigned checkpoints") => "2".to_owned(),
            _ if !shape.contains(|sign| sign != '0') && after.starts_with(" files as listed") => {
                self.files.unwrap_or(word).to_owned()
            }
            _ => word.to_owned(),
        }
    }

    /// What stands for this value: made from its number, so that it is the same each time.
    fn same(&mut self, value: &str, make: impl Fn(&str) -> String) -> String {
        let number = self.known.len();
        let new = || {
            let seed: String = Sha256::digest(number.to_string()).iter().map(|byte| format!("{byte:02x}")).collect();
            make(&seed)
        };
        self.known.entry(value.to_owned()).or_insert_with(new).clone()
    }
}

/// Lines that were wrapped because a path on this machine is longer than one on another are whole again.
fn joined(text: &str) -> String {
    let mut whole = String::new();
    let mut was_full = false;
    for line in text.lines() {
        match line.strip_prefix(MARGIN).filter(|_| was_full) {
            Some(more) => {
                whole.pop();
                whole += more;
            }
            None => whole += line,
        }
        whole.push('\n');
        was_full = line.starts_with(MARGIN) && line.chars().count() == COLUMNS;
    }
    whole
}

fn wrapped(line: &str) -> String {
    let Some(words) = line.strip_prefix(MARGIN) else { return format!("{line}\n") };
    let signs: Vec<char> = words.chars().collect();
    let pieces = signs.chunks(COLUMNS - MARGIN.chars().count());
    let pieces = pieces.map(|piece| format!("{MARGIN}{}\n", piece.iter().collect::<String>()));
    if signs.is_empty() { format!("{}\n", MARGIN.trim_end()) } else { pieces.collect() }
}
