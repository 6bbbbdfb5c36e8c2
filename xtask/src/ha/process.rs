//! Processes that outlive this command, and signals to them.

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::step::{Failure, Stopwatch, cannot_start, program, shown};

/// The user that everything runs as: PostgreSQL refuses root.
pub(crate) const USER: &str = "postgres";

/// Starts a program that goes on when this one ends, and gives its process id.
pub(crate) fn start(command: &mut Command, log: &Path) -> Result<u32, Failure> {
    let line = shown(command);
    let log = OpenOptions::new().create(true).append(true).open(log).map_err(|error| cannot_start(&line, &error))?;
    let again = log.try_clone().map_err(|error| cannot_start(&line, &error))?;
    command.stdin(Stdio::null()).stdout(log).stderr(again).process_group(0);
    let mut child = command.spawn().map_err(|error| cannot_start(&line, &error))?;
    let id = child.id();
    // A dead child would stay in the list of processes, as if it were still there.
    std::thread::spawn(move || child.wait());
    Ok(id)
}

/// What a program printed, if it succeeded; its complaints are dropped.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a program printed, even if it failed.
pub(crate) fn output_anyway(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// All at once, as far as that is possible. Processes that have ended by now are fine.
pub(crate) fn signal(name: &str, processes: &[u32]) {
    if processes.is_empty() {
        return;
    }
    let mut kill = program("kill", &[&format!("-{name}")]);
    kill.args(processes.iter().map(ToString::to_string));
    let _ = kill.stderr(Stdio::null()).status();
}

pub(crate) fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// Asks four times a second whether something has become true.
pub(crate) fn wait_until(what: &str, seconds: u64, mut is_true: impl FnMut() -> bool) -> Result<Duration, Failure> {
    let watch = Stopwatch::start();
    while !is_true() {
        if watch.elapsed() > Duration::from_secs(seconds) {
            return Err(Failure::environment(format!("{what}: not within {seconds} seconds")));
        }
        pause(250);
    }
    Ok(watch.elapsed())
}
