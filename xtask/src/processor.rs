//! Processor time, as the kernel counts it: of one process with all its children, and of the whole machine.

use std::fs;
use std::ops::Range;

use crate::step::Failure;

/// In everything it reports to programs, the kernel counts processor time in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// Used so far by a process and everything it has started, user and system together.
pub(crate) fn seconds_of_tree(id: u32) -> Result<f64, Failure> {
    let processes: Vec<Process> = all_processes();
    if processes.iter().all(|process| process.id != id) {
        return Err(Failure::environment(format!("process {id} has ended")));
    }
    Ok(ticks_of_tree(&processes, id) / TICKS_PER_SECOND)
}

/// The same for this process.
pub(crate) fn own_seconds() -> f64 {
    seconds_of_tree(std::process::id()).unwrap_or(0.0)
}

/// Used by what this process has started and waited for.
pub(crate) fn seconds_of_ended() -> f64 {
    let own = fs::read_to_string("/proc/self/stat").ok().and_then(|text| Some(ticks(&text, 13..15)?.sum::<f64>()));
    own.unwrap_or(0.0) / TICKS_PER_SECOND
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Process {
    id: u32,
    parent: u32,
    /// Its own, and that of its children that have ended.
    ticks: f64,
}

fn all_processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_process));
    let texts = processes.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    texts.filter_map(|text| read_process(&text)).collect()
}

/// Not `self` or `thread-self`, which would count this process again.
fn is_process(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit())
}

/// `/proc/ID/stat`
fn read_process(text: &str) -> Option<Process> {
    let parent = fields(text).nth(1)?.parse().ok()?;
    Some(Process { id: text.split(' ').next()?.parse().ok()?, parent, ticks: ticks(text, 11..15)?.sum() })
}

fn ticks(text: &str, places: Range<usize>) -> Option<impl Iterator<Item = f64>> {
    let found = fields(text).skip(places.start).take(places.len()).map(|field| field.parse().ok());
    found.collect::<Option<Vec<f64>>>().filter(|found| found.len() == places.len()).map(Vec::into_iter)
}

/// The program's name may contain anything, so fields are counted from its closing parenthesis.
fn fields(text: &str) -> impl Iterator<Item = &str> {
    text.rsplit(") ").next().unwrap_or_default().split_whitespace()
}

fn ticks_of_tree(processes: &[Process], id: u32) -> f64 {
    let own: f64 = processes.iter().filter(|process| process.id == id).map(|process| process.ticks).sum();
    let children = processes.iter().filter(|process| process.parent == id && process.id != id);
    own + children.map(|child| ticks_of_tree(processes, child.id)).sum::<f64>()
}

/// What all processors have done since the machine started, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Machine {
    pub busy: f64,
    pub idle: f64,
    /// Given to other machines by the hypervisor.
    pub stolen: f64,
}

impl Machine {
    pub(crate) fn now() -> Machine {
        fs::read_to_string("/proc/stat").ok().and_then(|text| Machine::read(&text)).unwrap_or_default()
    }

    /// `cpu  USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL …`, the first line of `/proc/stat`
    pub(crate) fn read(text: &str) -> Option<Machine> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<f64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
        let [user, nice, system, idle, waiting, hard, soft, stolen, ..] = ticks.as_slice() else { return None };
        let seconds = |ticks: f64| ticks / TICKS_PER_SECOND;
        Some(Machine {
            busy: seconds(user + nice + system + hard + soft),
            idle: seconds(idle + waiting),
            stolen: seconds(*stolen),
        })
    }

    pub(crate) fn since(self, before: Machine) -> Machine {
        Machine { busy: self.busy - before.busy, idle: self.idle - before.idle, stolen: self.stolen - before.stolen }
    }

    pub(crate) fn all(self) -> f64 {
        self.busy + self.idle + self.stolen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_process_includes_its_children_that_run_and_those_that_have_ended() {
        let line = |id: u32, parent: u32, ticks: &str| {
            format!("{id} (a (strange) name) S {parent} 1 1 0 -1 4194304 100 0 0 0 {ticks} 20 0 1 0 12345 1000 10\n")
        };
        let all =
            [line(10, 1, "100 20 3 4"), line(11, 10, "1000 0 0 0"), line(12, 11, "0 500 0 0"), line(13, 1, "9 9 9 9")];
        let all: Vec<_> = all.iter().filter_map(|text| read_process(text)).collect();
        let ticks = [10, 13].map(|id| ticks_of_tree(&all, id).to_string());
        assert_eq!(ticks, ["1627", "36"]);
        assert_eq!(read_process("nonsense"), None);
    }

    #[test]
    fn what_a_program_has_used_is_known_when_it_has_ended() {
        let before = seconds_of_ended();
        let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", busy]).status().unwrap().success());
        assert!(seconds_of_ended() > before);
    }

    #[test]
    fn a_process_is_counted_once() {
        let found = ["1", "4242", "self", "thread-self", "stat"].map(is_process);
        assert_eq!(found, [true, true, false, false, false]);
        let own = std::process::id();
        assert_eq!(all_processes().iter().filter(|process| process.id == own).count(), 1);
    }

    #[test]
    fn the_time_of_the_machine_is_read() {
        let text = "cpu  100 200 300 4000 500 60 70 800 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        let read = Machine::read(text).unwrap();
        assert_eq!(read, Machine { busy: 7.3, idle: 45.0, stolen: 8.0 });
        assert_eq!(read.since(read), Machine::default());
        assert_eq!(Machine::read("intr 1 2 3\n"), None);
    }
}
