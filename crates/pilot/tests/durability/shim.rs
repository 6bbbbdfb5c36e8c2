//! A library between the service and its files (`fault.c`): faults at any call, hangs, a clock that is wrong, and what a
//! disk would hold after a power cut.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::support::harness::{Installation, Server};

pub const READ: i64 = 1;
pub const WRITE: i64 = 2;
pub const OPEN: i64 = 4;
pub const CLOSE: i64 = 8;
pub const SYNC: i64 = 16;
pub const RENAME: i64 = 32;
pub const UNLINK: i64 = 64;
pub const TRUNCATE: i64 = 128;
pub const EVERYTHING: i64 = 255;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Fails = 1,
    Full = 2,
    Short = 3,
    Hangs = 4,
    Kills = 5,
}

/// In the order of the fields in `fault.c`.
#[derive(Clone, Copy)]
enum Field {
    Armed,
    Ops,
    At,
    Sticky,
    Kind,
    Calls,
    Fired,
    Hanging,
    Release,
    Seconds,
    LogGone,
    FiredOp,
}

const FIELDS: usize = 12;

/// What is to go wrong.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub kind: Kind,
    pub ops: i64,
    /// The number of the call, from 1; 0 to count only.
    pub at: i64,
    /// From then on every such call.
    pub is_lasting: bool,
}

pub struct Shim {
    control: fs::File,
    control_path: PathBuf,
    data: PathBuf,
    shadow: PathBuf,
}

fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("pilot-fault-{}.so", std::process::id()));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/durability/fault.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&path).arg(source).arg("-lpthread");
        let status = compiler.stderr(Stdio::inherit()).status().expect("a C compiler must be installed");
        assert!(status.success(), "{compiler:?}");
        path
    })
}

impl Shim {
    /// For the data directory of an installation, which may not be there yet.
    pub fn new(installation: &Installation) -> Shim {
        let (control_path, shadow) = (installation.path("control"), installation.path("shadow"));
        fs::write(&control_path, [0; FIELDS * 8]).unwrap();
        fs::create_dir(&shadow).unwrap();
        let control = fs::File::options().read(true).write(true).open(&control_path).unwrap();
        Shim { control, control_path, data: installation.path("data"), shadow }
    }

    pub fn serve(&self, installation: &Installation) -> Server {
        installation.start(self.command(installation, &["serve", "--config", "pilot.toml"]))
    }

    pub fn command(&self, installation: &Installation, arguments: &[&str]) -> Command {
        let mut command = installation.command(arguments);
        command.env("LD_PRELOAD", library()).env("FAULT_CONTROL", &self.control_path);
        command.env("FAULT_DIRECTORY", &self.data).env("FAULT_SHADOW", &self.shadow);
        command
    }

    fn set(&self, field: Field, value: i64) {
        self.control.write_all_at(&value.to_ne_bytes(), field as u64 * 8).unwrap();
    }

    fn get(&self, field: Field) -> i64 {
        let mut bytes = [0; 8];
        self.control.read_exact_at(&mut bytes, field as u64 * 8).unwrap();
        i64::from_ne_bytes(bytes)
    }

    pub fn arm(&self, fault: Fault) {
        self.disarm();
        self.set(Field::Ops, fault.ops);
        self.set(Field::At, fault.at);
        self.set(Field::Sticky, i64::from(fault.is_lasting));
        self.set(Field::Kind, fault.kind as i64);
        self.set(Field::Armed, 1);
    }

    pub fn disarm(&self) {
        for field in [Field::Armed, Field::Calls, Field::Fired, Field::Release, Field::LogGone, Field::FiredOp] {
            self.set(field, 0);
        }
    }

    pub fn calls(&self) -> i64 {
        self.get(Field::Calls)
    }

    pub fn fired(&self) -> i64 {
        self.get(Field::Fired)
    }

    /// What kind of call it was.
    pub fn fired_op(&self) -> i64 {
        self.get(Field::FiredOp)
    }

    /// How many calls are waiting for the disk.
    pub fn hanging(&self) -> i64 {
        self.get(Field::Hanging)
    }

    pub fn release(&self) {
        self.set(Field::Release, 1);
    }

    /// Whether the write-ahead log was deleted after something had failed.
    pub fn has_lost_the_log(&self) -> bool {
        self.get(Field::LogGone) > 0
    }

    pub fn shift_clock(&self, seconds: i64) {
        self.set(Field::Seconds, seconds);
    }

    /// The power fails: only what was synced is left.
    pub fn cut_power(&self) {
        for entry in fs::read_dir(&self.data).unwrap().map(Result::unwrap) {
            if !entry.file_name().to_string_lossy().ends_with(".lock") {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        for entry in fs::read_dir(&self.shadow).unwrap().map(Result::unwrap) {
            let to = self.data.join(entry.file_name());
            fs::copy(entry.path(), &to).unwrap();
            crate::support::harness::set_mode(&to, 0o600);
        }
    }
}
