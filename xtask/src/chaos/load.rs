//! The program that writes, reads and judges, and what it answers.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::ha::network::{self, NODES, node_address};
use crate::ha::place::Place;
use crate::ha::service::PORT;
use crate::step::{Failure, cannot_start, target_dir};

/// Figures by name.
pub(crate) type Figures = BTreeMap<String, u64>;

pub(crate) struct Load {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// What must never be, and was found.
    pub(crate) violations: Vec<String>,
}

impl Load {
    pub(crate) fn start(place: &Place, writers: usize, guests: usize) -> Result<Load, Failure> {
        let program = target_dir().join("debug/examples/chaos_load").display().to_string();
        let tokens = place.text("tokens", "");
        let mut arguments = vec![tokens, writers.to_string(), guests.to_string()];
        arguments.extend(NODES.map(|node| format!("{}:{PORT}", node_address(node))));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let log = File::create(place.of("", "load.log")).map_err(|error| cannot_start("load.log", &error))?;
        let mut command = network::on(None, &program, &arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().map_err(|error| cannot_start(&program, &error))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::environment("the load has no input or output"));
        };
        Ok(Load { child, input, output: BufReader::new(output), violations: Vec::new() })
    }

    /// Gives a command, and reads the figures that answer it.
    pub(crate) fn ask(&mut self, command: &str) -> Result<Figures, Failure> {
        let gone = |error: &dyn std::fmt::Display| Failure::environment(format!("the load has ended: {error}"));
        writeln!(self.input, "{command}").map_err(|error| gone(&error))?;
        self.violations.clear();
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).map_err(|error| gone(&error))? == 0 {
                return Err(gone(&"see load.log"));
            }
            match line.trim_end().split_once(' ') {
                Some(("violation", what)) => self.violations.push(what.to_owned()),
                Some(("ok", figures)) => return Ok(read_figures(figures)),
                _ if line.trim_end() == "ok" => return Ok(Figures::new()),
                _ => return Err(Failure::environment(format!("the load says: {line}"))),
            }
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `name=1 other=2`
fn read_figures(text: &str) -> Figures {
    let pairs = text.split_whitespace().filter_map(|word| word.split_once('='));
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_by_name() {
        let figures = read_figures("acknowledged=12 pause1=3400 odd=x");
        assert_eq!(figures, Figures::from([("acknowledged".to_owned(), 12), ("pause1".to_owned(), 3400)]));
    }
}
