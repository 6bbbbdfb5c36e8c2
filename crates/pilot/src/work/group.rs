//! Every process of one command, however they were started: a control group (version 2), or as much of one as can be
//! had without.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

/// Where control groups of version 2 may be mounted.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// The control group of this process, if groups can be made below it.
pub(crate) fn home() -> io::Result<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup")?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let mount = MOUNTS.iter().map(Path::new).find(|mount| mount.join("cgroup.controllers").exists());
    let home = mount.ok_or_else(|| io::Error::other("control groups of version 2 are not mounted"))?.join(path);
    let trial = Group(home.join(format!("pilot-trial-{}", std::process::id())));
    trial.make()?;
    let can_kill = trial.0.join("cgroup.kill").exists();
    trial.remove()?;
    if can_kill { Ok(home) } else { Err(io::Error::other("the kernel has no cgroup.kill (Linux 5.14 has)")) }
}

#[derive(Debug, Clone)]
pub(crate) struct Group(PathBuf);

impl Group {
    pub(crate) fn at(path: PathBuf) -> Group {
        Group(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn make(&self) -> io::Result<()> {
        fs::create_dir(&self.0)
    }

    /// This process, and what it starts from now on.
    pub(crate) fn enter(&self) -> io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), "0")
    }

    pub(crate) fn kill(&self) -> io::Result<()> {
        match fs::write(self.0.join("cgroup.kill"), "1") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            written => written,
        }
    }

    /// A group that does not exist has no processes.
    pub(crate) fn is_empty(&self) -> io::Result<bool> {
        match fs::read_to_string(self.0.join("cgroup.events")) {
            Ok(events) => Ok(events.lines().any(|line| line == "populated 0")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        match fs::remove_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// Kills the processes whose environment has this variable, and says how many there were. A process that has changed
/// its environment is not found: this is for machines without control groups.
pub(crate) fn kill_marked(name: &str, value: &str) -> usize {
    let wanted = format!("{name}={value}");
    let is_marked = |pid: &Pid| {
        let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
        environment.is_ok_and(|found| found.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()))
    };
    let own = rustix::process::getpid();
    processes()
        .filter(|pid| *pid != own)
        .filter(is_marked)
        .filter(|pid| kill_process(*pid, Signal::KILL).is_ok())
        .count()
}

/// The children of this process, as `/proc` shows them.
pub(crate) fn children() -> impl Iterator<Item = Pid> {
    let own = rustix::process::getpid().as_raw_nonzero().to_string();
    processes().filter(move |pid| parent_of(*pid).is_some_and(|parent| parent == own))
}

fn processes() -> impl Iterator<Item = Pid> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| Pid::from_raw(name.to_str()?.parse().ok()?))
}

/// The fourth field of `stat`; the second is a name in parentheses, which may contain anything.
fn parent_of(pid: Pid) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1).map(str::to_owned)
}
