//! Cleaning up after a command that failed, or that was ended from outside.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use crate::step::{Failure, cannot_start, target_dir};

/// A shell in a process group of its own, which Ctrl-C does not reach. It waits for a line; if this process ends
/// without one, however that happens, the shell takes everything down.
pub(crate) struct Guard {
    shell: Child,
}

impl Guard {
    pub(crate) fn watch() -> Result<Guard, Failure> {
        // Not the file that runs: a build may have put another one in its place.
        let this = target_dir().join("debug/xtask");
        let mut command = Command::new("sh");
        command.args(["-c", "read -r line || exec \"$0\" ha down"]).arg(this).process_group(0).stdin(Stdio::piped());
        let shell = command.spawn().map_err(|error| cannot_start("sh", &error))?;
        Ok(Guard { shell })
    }

    /// What was started stays.
    pub(crate) fn keep(mut self) -> Result<(), Failure> {
        let written = self.shell.stdin.as_mut().map_or(Ok(()), |input| input.write_all(b"keep\n"));
        written.map_err(|error| Failure::environment(format!("the guard: {error}")))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
