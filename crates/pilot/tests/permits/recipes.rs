//! The recipes of docs/guide/enforcing-at-the-target.md: their commands run, and their files are what the tools accept.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::permits::download::{permit, policy, started};
use crate::permits::scene::sha256;
use crate::support::harness::{Finished, Installation, Port, Server, finish};
use crate::support::team::{person, team, token};

const TOOL: &str = "#!/bin/sh\necho \"$*\" >> RAN\n";

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A service, an item that eli executes, and a target with the program of the recipes in a directory of its own.
struct Target {
    installation: Installation,
    server: Server,
    id: String,
    _port: Port,
}

impl Target {
    fn new() -> Target {
        let (installation, port) = (team(), Port::reserve());
        let address = port.address();
        let permits = format!(
            "[permits]\nissuer = \"http://{address}\"\naudiences = [\"vault.example\", \"k8s\", \"sts.amazonaws.com\"]\n"
        );
        installation.write("pilot.toml", &format!("listen = \"{address}\"\n{permits}"));
        let server = installation.serve();
        let ran = installation.path("ran").display().to_string();
        let tool = installation.write("rotate-key", &TOOL.replace("RAN", &ran)).canonicalize().unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        let listed = json!([{"path": tool, "sha256": sha256(&fs::read(&tool).unwrap())}]);
        let id = started(&server, &json!({"argv": [tool, "--slot", "2"], "files": listed}));
        Target { installation, server, id, _port: port }
    }

    /// Paths of the recipes, moved into this target's own directory.
    fn moved(&self, text: &str) -> String {
        let home = self.installation.path("pilot.toml").canonicalize().unwrap();
        let home = home.parent().unwrap().display().to_string();
        text.replace("/usr/bin/pilot", env!("CARGO_BIN_EXE_pilot"))
            .replace("/usr/local/sbin/rotate-key", &format!("{home}/rotate-key"))
            .replace("/etc/pilot/policy", &format!("{home}/policy"))
            .replace("/var/lib/pilot-gate", &format!("{home}/spent"))
            .replace("/var/spool/pilot/rotate-key.zip", &format!("{home}/permit.zip"))
    }

    /// A line as a shell runs it, with these bytes on standard input.
    fn sh(&self, line: &str, input: Option<&Path>) -> Finished {
        let mut command = self.installation.prepare(Command::new("/bin/sh"));
        let programs = Path::new(env!("CARGO_BIN_EXE_pilot")).parent().unwrap().display().to_string();
        command.args(["-e", "-c", &self.moved(line)]).env("PATH", format!("{programs}:/usr/bin:/bin"));
        command.env("ID", &self.id).env("PILOT_URL", self.server.url()).env("PILOT_TOKEN", token("eli"));
        command.stdin(input.map_or(Stdio::null(), |path| fs::File::open(path).unwrap().into()));
        finish(command, None)
    }

    fn ran(&self) -> String {
        fs::read_to_string(self.installation.path("ran")).unwrap_or_default()
    }

    /// What the recipes take for granted on the target.
    fn prepare(&self) -> PathBuf {
        self.installation.write("policy", &policy(&self.installation));
        self.installation.make_private_directory("spent");
        let path = self.installation.path("permit.zip");
        fs::write(&path, permit(&self.server, &self.id)).unwrap();
        path
    }
}

#[test]
fn the_commands_of_the_page_run_as_they_are_written() {
    let page = read("docs/guide/enforcing-at-the-target.md");
    let blocks = page.split("<!-- test: recipes -->\n```sh\n").skip(1);
    let blocks: Vec<_> = blocks.map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 5);
    let target = Target::new();
    for block in blocks {
        let done = target.sh(block, None);
        assert_eq!(done.code, 0, "{block}: {done:#?}");
    }
    assert_eq!(target.ran(), "--slot 2\n");
    assert_eq!(target.installation.read("token").split('.').count(), 3);
    target.server.stop().expect(0);
}

/// Each line is run as sudo, sshd or cron would, twice: the second time the permit was used.
#[test]
fn sudo_ssh_and_cron_run_what_was_approved_once() {
    let sudo = read("examples/enforce/sudo/pilot-gate");
    let sudo = sudo.lines().find_map(|line| line.split_once("NOPASSWD: ")).unwrap().1.to_owned();
    let ssh = read("examples/enforce/ssh/authorized_keys");
    let ssh = ssh.split('"').nth(1).unwrap().to_owned();
    let cron = read("examples/enforce/cron/rotate-key");
    let cron = cron.lines().last().unwrap().split_once(" root ").unwrap().1.to_owned();
    for line in [sudo, ssh, cron] {
        let target = Target::new();
        let permit = target.prepare();
        let done = target.sh(&line, Some(&permit));
        assert_eq!((done.code, target.ran().as_str()), (0, "--slot 2\n"), "{line}: {done:#?}");
        target.sh(&line, Some(&permit)).expect(1).says(&["was already used here"]);
        let other = target.sh(&line.replace("--slot 2", "--slot 3"), Some(&permit)).expect(1);
        other.says(&["word 2 of the command line is", "was approved"]);
        assert_eq!(target.ran(), "--slot 2\n");
        target.server.stop().expect(0);
    }
}

#[test]
fn sudo_and_ssh_accept_the_files() {
    let check = |program: &str, arguments: &[&str], file: &str| {
        let mut command = Command::new(program);
        command.args(arguments).arg(repository(file)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let done =
            command.output().unwrap_or_else(|error| panic!("{program}: {error}; `cargo xtask check` installs it"));
        assert!(done.status.success(), "{file}: {}", String::from_utf8_lossy(&done.stderr));
    };
    check("visudo", &["-c", "-f"], "examples/enforce/sudo/pilot-gate");
    check("ssh-keygen", &["-l", "-f"], "examples/enforce/ssh/authorized_keys");
}

/// The claims that the recipes compare, in a token that the service really issued.
#[test]
fn secret_managers_clusters_and_clouds_compare_claims_that_tokens_have() {
    let target = Target::new();
    let claims = |audience: &str| -> Value {
        let path = format!("/v1/items/{}/permit-token", target.id);
        let issued = person(&target.server, "eli").post(&path, &json!({"audience": audience})).json();
        let part = issued["token"].as_str().unwrap().split('.').nth(1).unwrap().to_owned();
        serde_json::from_slice(&data_encoding::BASE64URL_NOPAD.decode(part.as_bytes()).unwrap()).unwrap()
    };
    let role: Value = serde_json::from_str(&read("examples/enforce/openbao/role.json")).unwrap();
    let found = claims(role["bound_audiences"][0].as_str().unwrap());
    assert_eq!(found["sub"], role["bound_subject"]);
    for (name, bound) in role["bound_claims"].as_object().unwrap() {
        let fits = bound == &found[name] || bound.as_array().is_some_and(|bound| bound.contains(&found[name]));
        assert!(fits, "{name}: {bound} {found}");
    }
    for name in role["claim_mappings"].as_object().unwrap().keys().map(String::as_str).chain(["executor"]) {
        assert!(found[name].is_string(), "{name}: {found}");
    }
    let trust: Value = serde_json::from_str(&read("examples/enforce/aws/trust-policy.json")).unwrap();
    let condition = &trust["Statement"][0]["Condition"];
    let found = claims(condition["StringEquals"]["pilot.example.org:aud"].as_str().unwrap());
    let like = condition["StringLike"]["pilot.example.org:sub"].as_str().unwrap().strip_suffix('*').unwrap();
    assert!(found["sub"].as_str().unwrap().starts_with(like), "{found}");
    let cluster = read("examples/enforce/kubernetes/authentication-configuration.yaml");
    let found = claims("k8s");
    let named: Vec<_> = cluster.split("claims.").skip(1).collect();
    assert!(named.len() >= 6);
    for rest in named {
        let name: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
        assert!(!found[&name].is_null(), "{name}: {found}");
    }
    target.server.stop().expect(0);
}
