//! The programs of the installed PostgreSQL, and the system user that may run them.

use std::ffi::OsStr;
use std::fs;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{LazyLock, OnceLock};

use rustix::process::geteuid;

const MAJOR_VERSION_MIN: u32 = 15;

/// Debian's packages create it.
const SYSTEM_USER: &str = "postgres";

/// The directory of PostgreSQL's programs.
fn programs() -> &'static Path {
    // Not a `LazyLock`, which would give the reason of a failure to the first test only.
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        find_programs().unwrap_or_else(|| {
            panic!("PostgreSQL is not installed: run `cargo xtask check`, or `apt-get install postgresql`")
        })
    })
}

fn find_programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(version, programs)| *version >= MAJOR_VERSION_MIN && programs.join("postgres").is_file())
        .collect();
    found.sort();
    found.pop().map(|(_, programs)| programs).or_else(find_in_path)
}

fn find_in_path() -> Option<PathBuf> {
    let found = Command::new("sh").args(["-c", "command -v postgres"]).output().ok()?;
    let program = fs::canonicalize(String::from_utf8(found.stdout).ok()?.trim()).ok()?;
    let version = Command::new(&program).arg("--version").output().ok()?;
    // `postgres (PostgreSQL) 15.18`, `postgres (PostgreSQL) 18beta1`
    let version = String::from_utf8(version.stdout).ok()?;
    let number = version.split_once("(PostgreSQL) ")?.1;
    let major = number.split(|sign: char| !sign.is_ascii_digit()).next()?.parse::<u32>().ok()?;
    (major >= MAJOR_VERSION_MIN).then(|| program.parent().map(Path::to_owned))?
}

/// A program of PostgreSQL that is run as the caller. Nothing in the environment changes what it does.
pub(super) fn client(name: &str) -> Command {
    let mut command = Command::new(programs().join(name));
    without_environment(&mut command);
    command
}

/// A program of PostgreSQL that works on the server's files. The server refuses to run as root; its files belong to
/// [`SYSTEM_USER`] then.
pub(super) fn as_server(name: &str, privileges: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    without_environment(&mut command);
    if geteuid().is_root() {
        let user = [format!("--reuid={SYSTEM_USER}"), format!("--regid={SYSTEM_USER}"), "--clear-groups".to_owned()];
        command.args(user);
    }
    command.args(privileges).arg("--").arg(programs().join(name));
    command
}

fn without_environment(command: &mut Command) {
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LC_ALL", "C.UTF-8").current_dir("/");
}

/// Gives a file or a directory to the user that the server runs as.
pub(super) fn give_to_server(path: &Path) {
    static OWNER: LazyLock<Option<u32>> = LazyLock::new(|| {
        let id = || output(Command::new("id").args(["-u", SYSTEM_USER])).trim().parse().unwrap();
        geteuid().is_root().then(id)
    });
    if OWNER.is_some() {
        std::os::unix::fs::chown(path, *OWNER, None).unwrap();
    }
}

/// Standard output of a command that has to succeed.
pub(super) fn output(command: &mut Command) -> String {
    attempt(command).unwrap_or_else(|message| panic!("{message}"))
}

/// Standard output, or the command with what it wrote to standard error.
fn attempt(command: &mut Command) -> Result<String, String> {
    let found = command.output().map_err(|error| format!("`{}` cannot be started: {error}", shown(command)))?;
    let Output { status, stdout, stderr } = found;
    if status.success() {
        return Ok(String::from_utf8(stdout).unwrap());
    }
    Err(format!("`{}` failed ({status}): {}", shown(command), String::from_utf8_lossy(&stderr).trim()))
}

fn shown(command: &Command) -> String {
    let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
    words.join(OsStr::new(" ")).to_string_lossy().into_owned()
}

/// Runs statements with psql: what they print, one row per line with `|` between columns, or the error. Each statement
/// is a transaction of its own, unless `sql` begins one.
pub fn psql(url: &str, sql: &str) -> Result<String, String> {
    let mut script = tempfile::tempfile().unwrap();
    script.write_all(sql.as_bytes()).unwrap();
    script.rewind().unwrap();
    let mut command = client("psql");
    command.args(["-XAtqw", "-v", "ON_ERROR_STOP=1", "-f", "-", url]).stdin(script);
    attempt(&mut command).map(|text| text.trim_end().to_owned())
}
