//! The processes of the machines that are played: finding, stopping and killing them, and whether that worked.

use std::fs;

use crate::ha::network;
use crate::ha::process::{signal, wait_until};
use crate::step::Failure;

/// How long a signal may take to show.
const SIGNAL_SECONDS: u64 = 5;

/// The processes on a machine whose program has this name.
pub(crate) fn running(machine: &str, program: &str) -> Vec<u32> {
    let is_it = |process: &u32| {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        name.trim() == program && state(*process) != Some('Z')
    };
    network::processes(machine).into_iter().filter(is_it).collect()
}

/// The letter by which the kernel names a process's state.
fn state(process: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // After the name, which is in parentheses and may contain anything.
    stat.rsplit_once(") ")?.1.chars().next()
}

pub(crate) fn is_stopped(process: u32) -> bool {
    state(process) == Some('T')
}

/// The process in which a standby receives the primary's log.
pub(crate) fn log_receiver(machine: &str) -> Option<u32> {
    let is_it = |process: &u32| {
        let line = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
        line.contains("walreceiver")
    };
    running(machine, "postgres").into_iter().find(is_it)
}

/// Until nothing of these programs is left. PostgreSQL may be starting new processes meanwhile.
pub(crate) fn kill(machine: &str, programs: &[&str]) -> Result<usize, Failure> {
    let mut killed = 0;
    wait_until(&format!("{} on {machine} killed", programs.join(", ")), SIGNAL_SECONDS, || {
        let left: Vec<u32> = programs.iter().flat_map(|program| running(machine, program)).collect();
        signal("KILL", &left);
        killed += left.len();
        left.is_empty()
    })?;
    Ok(killed)
}

/// Until all of them stand still.
pub(crate) fn stop(machine: &str, program: &str) -> Result<usize, Failure> {
    let mut stopped = Vec::new();
    wait_until(&format!("{program} on {machine} stopped"), SIGNAL_SECONDS, || {
        stopped = running(machine, program);
        signal("STOP", &stopped);
        !stopped.is_empty() && stopped.iter().all(|process| is_stopped(*process))
    })?;
    Ok(stopped.len())
}

/// Whatever stands still goes on.
pub(crate) fn resume(machine: &str) {
    let stopped: Vec<u32> = network::processes(machine).into_iter().filter(|process| is_stopped(*process)).collect();
    signal("CONT", &stopped);
}
