//! What was approved, and whether a command line is that.

use std::ffi::{OsStr, OsString};

use pilot_evidence::permit::Permit;
use serde::Deserialize;
use serde_json::Value;

/// An approved operation. A member that the gate does not know could be one that people rely on, or a misspelt one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Operation {
    #[serde(default)]
    argv: Option<Vec<String>>,
    #[serde(default)]
    files: Vec<ApprovedFile>,
    /// Where the command runs; `/` if nothing is said.
    #[serde(default)]
    pub cwd: Option<String>,
    /// For people.
    #[serde(default, rename = "description")]
    _description: Option<String>,
    /// For `pilot permit verify --artifact`.
    #[serde(default, rename = "artifacts")]
    _artifacts: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovedFile {
    pub path: String,
    pub sha256: String,
}

/// A word of the command line to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word<'o> {
    /// As it was approved.
    Plain(&'o OsStr),
    /// A file whose bytes were approved.
    File(&'o ApprovedFile),
}

impl Operation {
    /// Reads what a permit approves, or says why the gate cannot enforce it.
    pub(crate) fn of(permit: &Permit) -> Result<Operation, String> {
        let (member, approved) = permit.operation();
        let remedy = format!(
            "propose an item whose payload has {member}.argv (the whole command line, first the absolute path of the \
             program) or {member}.files (a path and a sha256 each)"
        );
        let value = match approved {
            None if member == "operation" => return Err(format!("the approved payload has no operation; {remedy}")),
            None => {
                return Err(format!(
                    "{} undoes the operation, and the approved payload has no {member} for that; {remedy}",
                    permit.begun.action
                ));
            }
            Some(Value::String(_)) => {
                return Err(format!("the approved {member} is a text, which only people can compare; {remedy}"));
            }
            Some(value) => value,
        };
        let operation: Operation = serde_json::from_value(value)
            .map_err(|error| format!("the approved {member} cannot be enforced ({error}); {remedy}"))?;
        if operation.argv.is_none() && operation.files.is_empty() {
            return Err(format!("the approved {member} has neither argv nor files; {remedy}"));
        }
        operation.check().map_err(|what| format!("the approved {member} cannot be enforced: {what}; {remedy}"))?;
        Ok(operation)
    }

    fn check(&self) -> Result<(), String> {
        for word in self.argv.iter().flatten() {
            if word.contains('\0') {
                return Err("argv contains a NUL character".to_owned());
            }
        }
        match self.argv.as_deref() {
            Some([]) => return Err("argv is empty".to_owned()),
            // Otherwise PATH, which is not approved, would choose the program.
            Some([program, ..]) => is_plain(program).map_err(|what| format!("the program {program:?} {what}"))?,
            None => {}
        }
        for (number, file) in self.files.iter().enumerate() {
            let ApprovedFile { path, sha256 } = file;
            is_plain(path).map_err(|what| format!("the file {path:?} {what}"))?;
            if sha256.len() != 64 || !sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
                return Err(format!("the sha256 of {path:?} is not 64 lowercase hexadecimal characters"));
            }
            if self.files.iter().take(number).any(|earlier| earlier.path == *path) {
                return Err(format!("{path:?} is listed twice"));
            }
        }
        if let Some(cwd) = &self.cwd {
            is_plain(cwd).map_err(|what| format!("cwd {cwd:?} {what}"))?;
        }
        Ok(())
    }

    /// Compares a command line with what was approved, word for word.
    pub(crate) fn words<'o>(&'o self, given: &'o [OsString]) -> Result<Vec<Word<'o>>, String> {
        if let Some(argv) = &self.argv {
            same(argv, given)?;
        }
        let words: Vec<_> = given.iter().map(|word| self.word(word)).collect::<Result<_, _>>()?;
        let used = |file: &&ApprovedFile| words.contains(&Word::File(file));
        if let Some(unused) = self.files.iter().find(|file| !used(file)) {
            return Err(format!(
                "the approved file {} is not a word of the command line, so its checked bytes could not be handed on; \
                 have a command line approved that names it, or leave it out of files",
                unused.path
            ));
        }
        Ok(words)
    }

    fn word<'o>(&'o self, given: &'o OsStr) -> Result<Word<'o>, String> {
        if let Some(file) = self.files.iter().find(|file| given == OsStr::new(&file.path)) {
            return Ok(Word::File(file));
        }
        let shown = given.to_string_lossy();
        if self.argv.is_none() {
            return Err(format!(
                "{shown:?} is not an approved file, and without operation.argv nothing else may be on the command \
                 line; have the whole command line approved in argv"
            ));
        }
        // A command would open such a path itself, and could find other bytes there than were checked.
        match self.files.iter().find(|file| mentions(&shown, &file.path)) {
            None => Ok(Word::Plain(given)),
            Some(file) => Err(format!(
                "the word {shown:?} contains the approved file {}, but only a word that is the path itself can be \
                 replaced by the checked bytes; have the path approved as a word of its own",
                file.path
            )),
        }
    }
}

fn same(approved: &[String], given: &[OsString]) -> Result<(), String> {
    if approved.len() != given.len() {
        let (have, need) = (given.len(), approved.len());
        return Err(format!("the command line has {have} words, and {need} were approved; run what was approved"));
    }
    let differs = approved.iter().zip(given).position(|(approved, given)| OsStr::new(approved) != given);
    match differs {
        None => Ok(()),
        Some(at) => Err(format!(
            "word {at} of the command line is {:?}, and {:?} was approved; run what was approved, or propose a new item",
            given.get(at).map(|word| word.to_string_lossy()).unwrap_or_default(),
            approved.get(at).map(String::as_str).unwrap_or_default()
        )),
    }
}

/// An absolute path that means the same to everyone who reads it.
fn is_plain(path: &str) -> Result<(), &'static str> {
    let Some(rest) = path.strip_prefix('/') else { return Err("is not an absolute path") };
    let odd = |part: &str| part.is_empty() || part == "." || part == "..";
    if path.contains('\0') || (path != "/" && rest.split('/').any(odd)) {
        return Err("has a part that is empty, . or ..");
    }
    Ok(())
}

/// Whether a word has this path in it, and not a longer one: `-f/etc/key` and `/etc/key:ro` have `/etc/key`, while
/// `/etc/keys` and `/srv/etc/key` are other files.
fn mentions(word: &str, path: &str) -> bool {
    word.match_indices(path).any(|(at, _)| {
        let (before, after) = (word.get(..at).unwrap_or_default(), word.get(at + path.len()..).unwrap_or_default());
        let goes_on = after.starts_with(|sign: char| sign.is_alphanumeric() || "._-/".contains(sign));
        let is_elsewhere = before.starts_with('/') && !before.contains([':', '=', ',', ' ']);
        !goes_on && !is_elsewhere
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compared(operation: Value, given: &[&str]) -> String {
        let operation: Operation = serde_json::from_value(operation).unwrap();
        let given: Vec<OsString> = given.iter().map(OsString::from).collect();
        let words = operation.check().and_then(|()| operation.words(&given).map(|words| words.len()));
        words.map_or_else(|why| why, |count| format!("{count} words"))
    }

    #[test]
    fn a_command_line_is_what_was_approved_or_it_is_refused_with_a_reason() {
        let sum = "0".repeat(64);
        let file = |path: &str| json!({"path": path, "sha256": sum});
        for (operation, given, said) in [
            (json!({"argv": ["/bin/a", "b"]}), &["/bin/a", "b"][..], "2 words"),
            (json!({"argv": ["/bin/a", "b"]}), &["/bin/a"], "has 1 words, and 2 were approved"),
            (json!({"argv": ["/bin/a", "b"]}), &["/bin/a", "B"], r#"word 1 of the command line is "B""#),
            (json!({"argv": ["a"]}), &["a"], "is not an absolute path"),
            (json!({"argv": ["/bin/../a"]}), &["/bin/../a"], "has a part that is empty, . or .."),
            (json!({"argv": ["/bin//a"]}), &["/bin//a"], "has a part that is empty, . or .."),
            (json!({"argv": []}), &["/bin/a"], "argv is empty"),
            (json!({"argv": ["/bin/a", "x\u{0}y"]}), &["/bin/a", "x"], "NUL"),
            (json!({"files": [file("/a")]}), &["/a"], "1 words"),
            (json!({"files": [file("/a")]}), &["/a", "--all"], "is not an approved file"),
            (json!({"files": [file("/a"), file("/b")]}), &["/a"], "/b is not a word of the command line"),
            (json!({"files": [file("/a"), file("/a")]}), &["/a"], "listed twice"),
            (
                json!({"argv": ["/bin/a", "-f/b"], "files": [file("/b")]}),
                &["/bin/a", "-f/b"],
                "contains the approved file",
            ),
            (json!({"argv": ["/bin/a", "/b"], "files": [file("/b")]}), &["/bin/a", "/b"], "2 words"),
            (json!({"files": [{"path": "/a", "sha256": "F".repeat(64)}]}), &["/a"], "64 lowercase"),
            (json!({"argv": ["/bin/a"], "cwd": "x"}), &["/bin/a"], r#"cwd "x" is not an absolute path"#),
        ] {
            let found = compared(operation.clone(), given);
            assert!(found.contains(said), "{operation} {given:?}: {found}");
        }
    }

    #[test]
    fn a_path_inside_a_word_is_told_from_a_longer_path() {
        for word in ["-f/etc/key", "--file=/etc/key", "/etc/key:ro", "/srv/a:/etc/key", "@/etc/key,x"] {
            assert!(mentions(word, "/etc/key"), "{word}");
        }
        for word in ["/etc/keys", "/etc/key.pub", "/etc/key/x", "/srv/etc/key", "etc/key"] {
            assert!(!mentions(word, "/etc/key"), "{word}");
        }
    }
}
