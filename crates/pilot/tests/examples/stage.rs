//! A service, and a machine on which an example is installed: its scripts, a policy, and stand-ins for the tools they call.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::harness::{Finished, Installation, PATIENCE, Server, finish, now};
use crate::support::team::{person, team, token, with_times};

/// Writes down what it was called with: each word, or the hash of the file that a word names.
const RECORD: &str = r#"{ printf '%s' "${0##*/}"
for word; do
    if [ -f "$word" ]; then printf ' %s' "$(sha256sum < "$word" | cut -d ' ' -f 1)"; else printf ' %s' "$word"; fi
done
echo; } >> HOME/record
"#;

pub struct Stage {
    installation: Installation,
    server: Server,
    home: PathBuf,
    example: &'static str,
}

impl Stage {
    /// The directory `examples/NAME`, with these scripts of it installed.
    pub fn new(example: &'static str, scripts: &[&str]) -> Stage {
        let installation = team();
        let server = installation.serve();
        let home = installation.path("pilot.toml").canonicalize().unwrap().parent().unwrap().to_owned();
        let stage = Stage { installation, server, home, example };
        for directory in ["bin", "sbin", "spent", "srv", "work"] {
            stage.installation.make_private_directory(directory);
        }
        let key = stage.installation.pilot(&["log", "key", "--config", "pilot.toml"]).expect(0).stdout;
        stage.installation.write("policy", &format!("log {}\nquorum none\n", key.trim()));
        for script in scripts {
            stage.program(&format!("bin/{script}"), &stage.moved(&stage.text(script)));
        }
        stage
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    /// A file of the example.
    pub fn text(&self, name: &str) -> String {
        repository(&format!("examples/{}/{name}", self.example))
    }

    /// Commands of the example's page, a block each.
    pub fn page(&self) -> Vec<String> {
        let page = self.text("README.md");
        page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
    }

    /// A text whose paths are those of this machine.
    pub fn moved(&self, text: &str) -> String {
        let home = self.home.display();
        text.replace("/usr/bin/pilot", env!("CARGO_BIN_EXE_pilot"))
            .replace("/usr/local/bin/", &format!("{home}/bin/"))
            .replace("/usr/local/sbin/", &format!("{home}/sbin/"))
            .replace("/etc/pilot/policy", &format!("{home}/policy"))
            .replace("/var/lib/pilot-gate", &format!("{home}/spent"))
            .replace("/srv/deploy", &format!("{home}/srv"))
    }

    pub fn program(&self, name: &str, text: &str) {
        let path = self.installation.write(name, text);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A program that does this and then writes down what it was called with.
    pub fn stand_in(&self, name: &str, does: &str) {
        let record = RECORD.replace("HOME", &self.home.display().to_string());
        self.program(name, &format!("#!/bin/sh\nset -eu\n{does}\n{record}"));
    }

    /// What the stand-ins were called with.
    pub fn record(&self) -> String {
        fs::read_to_string(self.path("record")).unwrap_or_default()
    }

    /// These lines as this person's shell runs them.
    fn shell(&self, who: &str, lines: &str) -> Command {
        let mut command = self.installation.prepare(Command::new("/bin/sh"));
        let pilot = Path::new(env!("CARGO_BIN_EXE_pilot")).parent().unwrap().display();
        let home = self.home.display();
        command.current_dir(self.path("work")).args(["-e", "-c", &self.moved(lines)]);
        command.env("PATH", format!("{home}/bin:{pilot}:/usr/bin:/bin")).env("HOME", &self.home);
        command.env("PILOT_URL", self.server.url()).env("PILOT_TOKEN", token(who));
        command.env("RELEASE", self.path("srv/release.tar"));
        command.env("GITHUB_SHA", "0fc2a1").env("CI_COMMIT_SHA", "0fc2a1");
        command
    }

    pub fn run(&self, who: &str, lines: &str) -> Finished {
        finish(self.shell(who, lines), None)
    }

    /// Ana's lines propose something and wait until it is cleared. Others approve and clear it.
    #[track_caller]
    pub fn propose(&self, lines: &str) -> String {
        let proposing = self.shell("ana", lines);
        let proposing = thread::spawn(move || finish(proposing, None));
        let began = now();
        let id = loop {
            if let Some(item) = self.items().into_iter().find(|item| item["state"] == "submitted") {
                break item["id"].as_str().unwrap().to_owned();
            }
            let has_ended = proposing.is_finished() || began.elapsed() > PATIENCE;
            assert!(!has_ended, "nothing was proposed: {:#?}", proposing.join().unwrap());
            thread::sleep(Duration::from_millis(20));
        };
        person(&self.server, "ben").decides(&id, "approve");
        let digest = self.item(&id)["content_digest"].clone();
        let inputs = with_times(&json!({"not_after": "in an hour"}), &id);
        let clear = json!({"action": "clear", "content_digest": digest, "inputs": inputs});
        person(&self.server, "sol").must(&id, &clear);
        proposing.join().unwrap().expect(0);
        id
    }

    fn items(&self) -> Vec<Value> {
        person(&self.server, "ada").get("/v1/items").json()["items"].as_array().unwrap().clone()
    }

    pub fn item(&self, id: &str) -> Value {
        person(&self.server, "ada").item(id)
    }

    #[track_caller]
    pub fn succeeded(&self, id: &str) {
        assert_eq!(self.item(id)["state"], "succeeded", "{}", self.report(id));
    }

    /// The item failed, its report has these words, and no stand-in was called.
    #[track_caller]
    pub fn refused(&self, id: &str, words: &[&str]) {
        let report = self.report(id);
        assert_eq!(self.item(id)["state"], "failed", "{report}");
        for word in words {
            assert!(report.contains(word), "{word:?} is missing in {report}");
        }
        assert_eq!(self.record(), "");
    }

    /// What the service was told about the execution.
    pub fn report(&self, id: &str) -> String {
        person(&self.server, "ada").get(&format!("/v1/items/{id}/transitions")).text()
    }

    /// No file on this machine has a token in it.
    pub fn has_no_token(&self) {
        let tokens = ["ana", "eli"].map(token);
        for path in self.installation.files() {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert!(!tokens.iter().any(|token| text.contains(token)), "{} contains a token", path.display());
        }
    }
}

/// One byte of a file becomes another.
pub fn change_a_byte(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes[0] ^= 1;
    fs::write(path, bytes).unwrap();
}

pub fn sha256_of(path: &Path) -> String {
    Sha256::digest(fs::read(path).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn repository(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
