//! A step as a process: its output goes to a file, and it ends with everything it started.

use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::process::{CommandExt as _, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use crate::step::{Failure, program, root, target_dir};

/// Tells a process that it is a step of a check.
pub(crate) const PART: &str = "--part";

pub(super) struct Process(Child);

impl Process {
    pub(super) fn start(xtask: &Path, name: &str, output: &Output) -> Result<Process, Failure> {
        let failed = |error: io::Error| Failure::environment(format!("step {name} cannot be started: {error}"));
        let file = output.create().map_err(failed)?;
        let again = file.try_clone().map_err(failed)?;
        let mut command = Command::new(xtask);
        command.args(["check", name, PART]).current_dir(root()).process_group(0);
        let child = command.stdin(Stdio::null()).stdout(file).stderr(again).spawn().map_err(failed)?;
        Ok(Process(child))
    }

    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        self.0.try_wait().map_err(|error| Failure::environment(error.to_string()))
    }
}

impl Drop for Process {
    /// Stops it, if it still runs, with everything it started.
    fn drop(&mut self) {
        if !self.0.try_wait().is_ok_and(|ended| ended.is_some_and(|status| status.success())) {
            let end = end_group(self.0.id());
            let _ = self.0.wait();
            let _ = end.and_then(|mut end| end.wait());
        }
    }
}

/// In the process of a step. A signal from the terminal reaches only the check: its steps end when they see that it has.
pub(super) fn end_with_check() {
    let check = parent_id();
    thread::spawn(move || {
        while parent_id() == check {
            thread::sleep(Duration::from_secs(1));
        }
        let _ = end_group(std::process::id());
    });
}

/// The first signal lets programs clean up; npm and the like take no notice of it.
const END: &str = "trap '' TERM; kill -TERM -$0; for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 -$0 || exit; sleep 0.3; done; \
    kill -KILL -$0";

fn end_group(leader: u32) -> io::Result<Child> {
    let mut end = program("sh", &["-c", END, &leader.to_string()]);
    end.stderr(Stdio::null()).spawn()
}

/// What a step prints.
pub(super) struct Output {
    path: PathBuf,
    shown: u64,
}

impl Output {
    pub(super) fn of(name: &str) -> Output {
        Output { path: target_dir().join("check").join(format!("{name}.log")), shown: 0 }
    }

    /// Every writer appends: two of them share the file.
    fn create(&self) -> io::Result<File> {
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        let file = File::options().create(true).append(true).open(&self.path)?;
        file.set_len(0)?;
        Ok(file)
    }

    /// Passes on what has been added since the last time.
    pub(super) fn show(&mut self) {
        let Ok(mut file) = File::open(&self.path) else { return };
        let copied = file.seek(SeekFrom::Start(self.shown)).and_then(|_| {
            let mut screen = io::stdout().lock();
            let copied = io::copy(&mut file, &mut screen)?;
            screen.flush().map(|()| copied)
        });
        self.shown += copied.unwrap_or(0);
    }

    pub(super) fn text(&self) -> String {
        fs::read(&self.path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
}
