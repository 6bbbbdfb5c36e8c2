//! A person's shell, in which one block runs after the other, and the other terminals that the person has open.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use super::page::Mark;
use crate::support::harness::PATIENCE;
use crate::support::pty::Terminal;

/// Begins the line that ends a block's output. No program prints it.
const SIGN: char = '\u{1e}';

pub struct Shell {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    directory: PathBuf,
    variables: Vec<(String, String)>,
    terminals: BTreeMap<String, (Terminal, String)>,
}

/// The program of a terminal, in this directory.
fn sh(directory: &Path, variables: &[(String, String)]) -> Command {
    let mut command = Command::new("/bin/sh");
    let programs = Path::new(env!("CARGO_BIN_EXE_pilot")).parent().unwrap().display();
    command.current_dir(directory).env_clear().env("HOME", directory).env("NO_COLOR", "1");
    command.env("PATH", format!("{programs}:/usr/bin:/bin")).envs(variables.iter().cloned());
    command
}

impl Shell {
    pub fn start(directory: &Path, variables: &[(&str, String)]) -> Shell {
        let variables: Vec<_> = variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let mut command = sh(directory, &variables);
        let mut child = command.arg("-s").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"exec 2>&1\n").unwrap();
        Shell { child, stdin, lines, directory: directory.to_owned(), variables, terminals: BTreeMap::new() }
    }

    /// Does what a mark says with the lines of its block; gives what was printed.
    #[track_caller]
    pub fn obey(&mut self, mark: &Mark, lines: Option<&str>) -> String {
        let until = mark.get("until");
        if let Some(name) = mark.get("screen") {
            return self.look(name, until.expect("a look has words to wait for"));
        }
        let lines = lines.expect("a block of commands follows");
        if mark.get("close terminals").is_some() {
            self.terminals.clear();
        }
        if let Some(name) = mark.get("terminal") {
            let mut command = sh(&self.directory, &self.variables);
            // Replaced by its command, so that the end of the terminal is the end of the command.
            command.args(["-c", &format!("exec {lines}")]);
            self.terminals.insert(name.to_owned(), (Terminal::run(command), String::new()));
            return until.map_or(String::new(), |words| self.look(name, words));
        }
        let (code, printed) = self.run(lines);
        let expected = mark.get("exit").map_or(0, |code| code.parse().unwrap());
        assert_eq!(code, expected, "{lines}{printed}{}", self.screens());
        printed
    }

    /// Everything on a terminal, once these words are there and their line is whole.
    #[track_caller]
    fn look(&mut self, name: &str, words: &str) -> String {
        let (terminal, seen) = self.terminals.get_mut(name).expect("the terminal was opened");
        if !seen.contains(words) {
            *seen += &terminal.shows(words);
            *seen += &terminal.shows("\n");
        }
        seen.clone()
    }

    fn screens(&self) -> String {
        self.terminals.iter().map(|(name, (_, seen))| format!("\n{name}:\n{seen}")).collect()
    }

    fn run(&mut self, lines: &str) -> (i32, String) {
        // Commands do not read what comes next; a terminal would not let them either.
        let sent = format!("{{\n{lines}\n}} < /dev/null\nprintf '\\n{SIGN}%s %s\\n' \"$?\" \"$PWD\"\n");
        self.stdin.write_all(sent.as_bytes()).unwrap();
        let mut printed = String::new();
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("never ended: {lines}{printed}"));
            if let Some(end) = line.strip_prefix(SIGN) {
                let (code, directory) = end.split_once(' ').unwrap();
                self.directory = directory.into();
                // The line break that goes before the sign is ours.
                let printed = printed.strip_suffix('\n').unwrap_or(&printed);
                return (code.parse().unwrap(), printed.to_owned());
            }
            printed += &line;
            printed.push('\n');
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
