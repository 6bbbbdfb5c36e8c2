//! A target with a program that was approved, a permit for it, and a gate in front. A test changes one thing about it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use pilot_core::time::Time;
use pilot_evidence::bundle::assemble;
use pilot_evidence::cosignature::CosignerKey;
use pilot_evidence::note::Note;
use pilot_evidence::sample::{Ledger, actor, key, payload};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::support::harness::{Finished, finish};

/// Writes its arguments into the file that the first one names, and so shows that it ran.
const TOOL: &str = "#!/bin/sh\necho \"ran: $*\" >> \"$1\"\n";

/// How far the item has come when its permit is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    Cleared,
    Started,
    Held,
    Failed,
    Retried,
    RolledBack,
    Succeeded,
    /// Started although nobody approved it.
    Forged,
}

pub struct Scene {
    directory: TempDir,
    /// The approved payload's operation.
    pub operation: Value,
    pub rollback_operation: Option<Value>,
    pub until: Until,
    /// What the gate is asked to run.
    pub command: Vec<OsString>,
    /// How long ago the permit was made, in seconds; negative for the future.
    pub age: i64,
    /// How long the window is, in seconds.
    pub window: u64,
    /// The witness that cosigned, by its seed, and whether its signature is right.
    pub cosigned_by: Option<u8>,
    pub policy: String,
    pub flags: Vec<String>,
    /// Changes the permit's bytes, after everything else.
    pub change: fn(Vec<u8>) -> Vec<u8>,
    /// Instead of a permit made from all this.
    pub permit: Option<Vec<u8>>,
    pub environment: Vec<(&'static str, String)>,
}

pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn now() -> Time {
    let micros = pilot_wire::clock::since_1970().unwrap().as_micros();
    Time::from_unix_micros(i64::try_from(micros).unwrap())
}

/// The policy line of a witness with this seed, and its key.
pub fn witness(seed: u8) -> CosignerKey {
    CosignerKey::generate("w.example", &[seed; 32]).unwrap()
}

impl Scene {
    /// The program and its one argument are approved, and the item was started a moment ago.
    pub fn new() -> Scene {
        let directory = tempfile::tempdir().unwrap();
        let mut scene = Scene {
            directory,
            operation: Value::Null,
            rollback_operation: None,
            until: Until::Started,
            command: Vec::new(),
            age: 0,
            window: 3_600,
            cosigned_by: None,
            policy: format!("log {}\nquorum none\n", key().verifier()),
            flags: Vec::new(),
            change: |permit| permit,
            permit: None,
            environment: Vec::new(),
        };
        scene.write("tool", TOOL.as_bytes());
        fs::set_permissions(scene.path("tool"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(scene.path("spent")).unwrap();
        fs::set_permissions(scene.path("spent"), fs::Permissions::from_mode(0o700)).unwrap();
        scene.operation = json!({"argv": scene.argv(), "files": [scene.file("tool")]});
        scene.command = scene.argv().into_iter().map(OsString::from).collect();
        scene
    }

    /// The real path of a file here: the gate follows no symbolic link, and the directory may be behind one.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub fn argv(&self) -> Vec<String> {
        vec![self.text("tool"), self.text("ran")]
    }

    /// A file as an operation lists it, with the bytes it has now.
    pub fn file(&self, name: &str) -> Value {
        json!({"path": self.text(name), "sha256": sha256(&fs::read(self.path(name)).unwrap())})
    }

    pub fn has_run(&self) -> bool {
        self.path("ran").exists()
    }

    fn made_at(&self) -> Time {
        Time::from_unix_micros(now().unix_micros() - self.age * 1_000_000)
    }

    /// The ledger in which the item came as far as the test wants.
    fn ledger(&self) -> (Ledger, pilot_core::item::ItemId) {
        let begin = Time::from_unix_micros(self.made_at().unix_micros() - 20_000_000);
        let mut ledger = Ledger::at(begin);
        let mut proposed = payload("low");
        proposed["operation"] = self.operation.clone();
        if let Some(undo) = &self.rollback_operation {
            proposed["rollback_operation"] = undo.clone();
        }
        let id = ledger.create("controlled-operation", &actor("ana"), "Run the tool", proposed).unwrap();
        let mut act = |who: &str, action: &str, comment: &str, inputs: Value| {
            ledger.act(&id, &actor(who), action, comment, inputs).unwrap();
        };
        act("ana", "submit", "", Value::Null);
        if self.until != Until::Forged {
            act("ben", "approve", "", Value::Null);
            let not_after = begin.plus(Duration::from_secs(self.window));
            act("sam", "clear", "", json!({"not_after": not_after}));
        }
        let steps: &[(&str, &str, &str)] = match self.until {
            Until::Cleared | Until::Forged => &[],
            Until::Started => &[("eve", "start", "")],
            Until::Held => &[("eve", "start", ""), ("sam", "hold", "wait")],
            Until::Failed => &[("eve", "start", ""), ("eve", "fail", "")],
            Until::Retried => &[("eve", "start", ""), ("eve", "fail", ""), ("eve", "retry", "")],
            Until::RolledBack => &[("eve", "start", ""), ("eve", "fail", ""), ("eve", "roll_back", "")],
            Until::Succeeded => &[("eve", "start", ""), ("eve", "succeed", "")],
        };
        for (who, action, comment) in steps {
            act(who, action, comment, Value::Null);
        }
        if self.until == Until::Forged {
            ledger.force(&id, Some(&actor("eve")), |entry| {
                entry.action = Some("start".into());
                entry.to = Some("executing".into());
            });
        }
        (ledger, id)
    }

    /// The permit as the service would make it.
    pub fn permit(&self) -> Vec<u8> {
        let (ledger, id) = self.ledger();
        let mut parts = ledger.item_parts(&id);
        parts.made = self.made_at();
        if let Some(seed) = self.cosigned_by {
            let text = Note::parse(&parts.checkpoint).unwrap().text.to_owned();
            let time = u64::try_from(self.made_at().unix_micros() / 1_000_000).unwrap();
            parts.checkpoint += &(witness(seed).cosign(&text, time) + "\n");
        }
        assemble(&parts, &key()).unwrap()
    }

    pub fn period_bundle(&self) -> Vec<u8> {
        let (ledger, _) = self.ledger();
        ledger.period_bundle(0, ledger.size())
    }

    /// A gate with everything in place, not yet started.
    pub fn gate(&self) -> Command {
        let permit = self.permit.clone().unwrap_or_else(|| self.permit());
        if !self.path("permit").exists() {
            self.write("permit", &(self.change)(permit));
        }
        if !self.path("policy").exists() {
            self.write("policy", self.policy.as_bytes());
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_pilot"));
        command.env_clear().current_dir(self.directory.path()).envs(self.environment.iter().cloned());
        command.args(["gate", "--policy", "policy", "--permit", "permit"]).args(&self.flags);
        command.arg("--").args(&self.command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self) -> Finished {
        finish(self.gate(), None)
    }

    pub fn spent(&mut self) {
        let directory = self.text("spent");
        self.flags.extend(["--spent".to_owned(), directory]);
    }

    /// The policy asks for a cosignature of the witness with this seed.
    pub fn ask_witness(&mut self, seed: u8) {
        self.policy = format!("log {}\nwitness w {}\nquorum w\n", key().verifier(), witness(seed).verifier());
    }
}
