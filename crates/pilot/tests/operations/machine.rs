//! The program on a machine whose wall clock and disk do what a test wants: see `tests/shim/machine.c`.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::support::harness::{Installation, Server};

const AHEAD: &str = "ahead-seconds";
const SYNC: &str = "sync-millis";

pub struct Machine<'i>(&'i Installation);

impl<'i> Machine<'i> {
    pub fn of(installation: &'i Installation) -> Machine<'i> {
        Machine(installation)
    }

    /// Puts the wall clock ahead by so much, at once, for every program on this machine.
    pub fn clock_is_ahead(&self, seconds: u64) {
        // In one step: the program must not read half a number.
        let new = self.0.write("ahead-seconds.new", &seconds.to_string());
        std::fs::rename(new, self.0.path(AHEAD)).unwrap();
    }

    /// Lets each synchronous write take so long.
    pub fn syncs_take(&self, millis: u64) {
        let new = self.0.write("sync-millis.new", &millis.to_string());
        std::fs::rename(new, self.0.path(SYNC)).unwrap();
    }

    pub fn serve(&self) -> Server {
        self.0.start(self.command(&["serve", "--config", "pilot.toml"]))
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.0.command(arguments);
        command.env("LD_PRELOAD", shim()).env("TEST_CLOCK_AHEAD_SECONDS", self.0.path(AHEAD));
        command.env("TEST_SYNC_MILLIS", self.0.path(SYNC));
        command
    }
}

/// Compiled once for each run of these tests.
fn shim() -> &'static PathBuf {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shim/machine.c");
        let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("machine-{}.so", std::process::id()));
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&library).arg(source);
        let made = compiler.output().expect("cc must be installed");
        assert!(made.status.success(), "{compiler:?}: {}", String::from_utf8_lossy(&made.stderr));
        library
    })
}
