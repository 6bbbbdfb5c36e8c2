//! The directory of a server, and the process that removes it.

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::statvfs;

use super::installation::give_to_server;

/// Waits until its standard input is closed, then until no process works in the data directory, and removes what the
/// server had: a shared memory segment, if it was killed, and its files.
///
/// The test program cannot do this itself when it is killed, and never drops what is static. By then the server
/// has got a signal; if it is paused, it has to go on to act on it. After a second, it is killed.
const JANITOR: &str = r#"
trap '' HUP INT QUIT TERM
read -r _
data=$1/data
running() { find -L /proc/[0-9]*/cwd -maxdepth 0 -samefile "$data" -printf '%h\n'; }
signal=CONT
turns=0
while processes=$(running); [ -n "$processes" ]; do
    for process in $processes; do kill -s "$signal" "${process#/proc/}"; done
    sleep 0.02
    turns=$((turns + 1))
    [ "$turns" -lt 50 ] || signal=KILL
done
segment=$(sed -n '7s/.* //p' "$data/postmaster.pid")
[ -z "$segment" ] || ipcrm -m "$segment"
rm -rf "$1"
"#;

const FREE_BYTES_MIN: u64 = 1 << 30;

const LOG_LINES_SHOWN: usize = 60;

/// Removed when it is dropped, and when the test program ends in any other way.
pub(super) struct Home {
    path: PathBuf,
    janitor: Child,
}

impl Home {
    pub(super) fn new() -> Home {
        let mut builder = tempfile::Builder::new();
        builder.prefix("pilot-postgres-").permissions(Permissions::from_mode(0o700));
        let made = if has_room(Path::new("/dev/shm")) { builder.tempdir_in("/dev/shm") } else { builder.tempdir() };
        let path = fs::canonicalize(made.unwrap().keep()).unwrap();
        let mut janitor = Command::new("sh");
        janitor.args(["-c", JANITOR, "sh"]).arg(&path).current_dir("/");
        janitor.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Not in the group that a terminal interrupts or a test runner kills.
        let janitor = janitor.process_group(0).spawn().unwrap();
        give_to_server(&path);
        Home { path, janitor }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the server keeps its data, and the working directory of each of its processes.
    pub(super) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    /// Opened to write at its end.
    pub(super) fn log(&self) -> File {
        File::options().create(true).append(true).open(self.path.join("log")).unwrap()
    }

    pub(super) fn end_of_log(&self) -> String {
        let log = fs::read(self.path.join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n")
    }

    /// Appends lines to `postgresql.conf`: of several with the same name, the last is in effect.
    pub(super) fn configure<'a>(&self, options: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let mut file = File::options().append(true).open(self.data().join("postgresql.conf")).unwrap();
        for (name, value) in options {
            writeln!(file, "{name} = '{}'", value.replace('\'', "''")).unwrap();
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        drop(self.janitor.stdin.take());
        let _ = self.janitor.wait();
    }
}

/// Memory is preferred, but containers often have only 64 MB of it as files.
fn has_room(directory: &Path) -> bool {
    statvfs(directory).is_ok_and(|found| found.f_bavail * found.f_frsize >= FREE_BYTES_MIN)
}
