//! Clients that read, and what their reading costs the service.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::load::Server;
use super::moves::{self, Installation};
use crate::step::{Failure, cannot_start, shown};

/// Of a benchmark that reads and has no options.
pub(super) fn prepare(arguments: &[&str]) -> Result<(), Failure> {
    super::options::none(arguments)?;
    moves::build()
}

/// Creates credentials for that many actors of a role; returns their tokens. Only before the service starts.
pub(super) fn tokens(installation: &Installation, role: &str, count: usize) -> Result<Vec<String>, Failure> {
    let config = installation.path().join("pilot.toml");
    let new = |number| moves::new_token(&moves::built(), &config, &format!("{role}-{number}"), role);
    (1..=count).map(new).collect()
}

/// Those who read from one service. Each client has a token of its own, if there are enough.
pub(super) struct Readers<'s> {
    pub server: &'s Server,
    pub tokens: &'s [String],
}

impl Readers<'_> {
    /// Asks for the paths in turn, `count` times in all.
    pub(super) fn ask(&self, clients: usize, count: usize, paths: &[String]) -> Result<Answers, Failure> {
        let before = self.server.cpu_seconds()?;
        let report = self.run(&["ask", &clients.to_string(), &count.to_string()], paths)?;
        Answers::read(&report, self.server.cpu_seconds()? - before)
    }

    /// The body of one answer.
    pub(super) fn show(&self, path: &str) -> Result<String, Failure> {
        self.run(&["show", path], &[])
    }

    /// The cursor of a list after so many pages.
    pub(super) fn follow(&self, path: &str, pages: usize) -> Result<String, Failure> {
        Ok(self.run(&["follow", path, &pages.to_string()], &[])?.trim().to_owned())
    }

    fn run(&self, arguments: &[&str], paths: &[String]) -> Result<String, Failure> {
        let mut command = moves::example("readers_load");
        command.arg(self.server.address()).args(arguments);
        piped(&mut command, &format!("{}\n{}\n", self.tokens.join(" "), paths.join("\n")))
    }
}

/// Standard output of a program that is given its input.
fn piped(command: &mut Command, input: &str) -> Result<String, Failure> {
    let line = shown(command);
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|error| cannot_start(&line, &error))?;
    if let Some(mut stdin) = child.stdin.take() {
        // If it has ended already, it says why.
        let _ = stdin.write_all(input.trim_end().as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| cannot_start(&line, &error))?;
    if !output.status.success() {
        return Err(Failure::environment(format!("`{line}` failed ({})", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What one round of requests took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Answers {
    pub p50_micros: f64,
    pub p99_micros: f64,
    /// Of the service, for each answer.
    pub cpu_micros: f64,
    /// Of one answer.
    pub bytes: f64,
}

impl Answers {
    fn read(report: &str, cpu_seconds: f64) -> Result<Answers, Failure> {
        let count = figure(report, "answers ")?;
        Ok(Answers {
            p50_micros: figure(report, "p50_micros ")?,
            p99_micros: figure(report, "p99_micros ")?,
            cpu_micros: cpu_seconds * 1e6 / count,
            bytes: figure(report, "bytes ")? / count,
        })
    }
}

/// A number in a report of lines that each begin with a name.
pub(super) fn figure(report: &str, name: &str) -> Result<f64, Failure> {
    let found = report.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    found.ok_or_else(|| Failure::environment(format!("no `{name}` in the report:\n{report}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_a_report_are_those_of_one_answer() {
        let report = "answers 200\nseconds 0.5\nbytes 4000\np50_micros 900\np99_micros 1400\n";
        let expected = Answers { p50_micros: 900.0, p99_micros: 1400.0, cpu_micros: 500.0, bytes: 20.0 };
        assert_eq!(Answers::read(report, 0.1).unwrap(), expected);
        assert!(Answers::read("answers 1\n", 0.1).is_err());
    }
}
