//! Other people's clients: the official SDK for Python, the inspector, and the conformance suite.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::{Value, json};

use crate::support::harness::{Finished, Installation, Server, finish};
use crate::support::team::{payload, team, token};

/// Scenarios of the suite that are about every server. The others call tools, resources and prompts that only the suite's
/// own example server has, or test what HTTP adds.
const SCENARIOS: [&str; 3] = ["server-initialize", "ping", "tools-list"];

const PROGRAM: &str = env!("CARGO_BIN_EXE_pilot");

fn python() -> PathBuf {
    let python = Path::new(PROGRAM).parent().unwrap().parent().unwrap().join("tools/mcp-1/bin/python3");
    assert!(python.exists(), "{} is missing: run `cargo xtask mcp`, which installs it", python.display());
    python
}

fn scripts() -> PathBuf {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/clients");
    let installed = scripts.join("node_modules/@modelcontextprotocol/inspector");
    assert!(installed.exists(), "{} is missing: run `cargo xtask mcp`, which installs it", installed.display());
    scripts
}

/// A command with this person's token, whose children have it too.
fn command(installation: &Installation, server: &Server, who: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = installation.prepare(Command::new(program));
    command.env("PILOT_URL", server.url()).env("PILOT_TOKEN", token(who));
    command.env("PATH", std::env::join_paths(["/usr/local/bin", "/usr/bin", "/bin"]).unwrap());
    command.env("HOME", installation.path(""));
    command
}

#[test]
fn the_sdk_for_python_proposes_reads_and_is_refused() {
    let installation = team();
    let server = installation.serve();
    let proposal = json!({"workflow": "controlled-operation", "title": "Deploy", "payload": payload("low")});
    let calls = [
        ("propose", proposal.clone()),
        ("propose", proposal),
        ("approve", json!({})),
        ("wait", json!({"item": "not an id"})),
        ("workflows", json!({})),
    ];
    let lines = calls.map(|(tool, arguments)| format!("{}\n", json!({"tool": tool, "arguments": arguments}))).concat();
    let mut python = command(&installation, &server, "ana", python());
    python.arg(scripts().join("session.py")).arg(PROGRAM).stdin(Stdio::piped());
    let finished = finish(python, Some(&lines)).expect(0);
    let said: Vec<Value> = finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [listed, first, second, decision, wrong, workflows] = &said[..] else { panic!("{finished:#?}") };
    assert_eq!(listed["tools"].as_array().unwrap().len(), 9);
    assert_eq!((&first["error"], &first["data"]["already_proposed"]), (&json!(false), &json!(false)));
    assert_eq!(second["data"]["already_proposed"], true);
    assert!(decision["protocol_error"].as_str().unwrap().contains("unknown tool"), "{decision}");
    assert!(wrong["text"].as_str().unwrap().contains("an item id is a UUID"), "{wrong}");
    assert_eq!(workflows["data"]["workflows"].as_array().unwrap().len(), 2);
}

fn inspect(installation: &Installation, server: &Server, who: &str, arguments: &[&str]) -> Finished {
    let mut node = command(installation, server, who, "node");
    node.arg(scripts().join("node_modules/.bin/mcp-inspector")).args(["--cli", PROGRAM, "mcp"]);
    node.args(["-e", &format!("PILOT_URL={}", server.url()), "-e", &format!("PILOT_TOKEN={}", token(who))]);
    finish(
        {
            node.args(arguments);
            node
        },
        None,
    )
}

#[test]
fn the_inspector_finds_nothing_wrong_with_the_schemas_and_calls_a_tool() {
    let installation = team();
    let server = installation.serve();
    for (who, count) in [("ana", 9), ("ben", 4), ("sol", 4), ("eli", 8), ("ada", 4)] {
        let listed = inspect(&installation, &server, who, &["--method", "tools/list", "--strict"]).expect(0);
        assert_eq!(listed.json()["tools"].as_array().unwrap().len(), count, "{who}");
    }
    let called = inspect(&installation, &server, "eli", &["--method", "tools/call", "--tool-name", "whoami"]).expect(0);
    assert_eq!(called.json()["structuredContent"], json!({"actor_id": "eli", "role": "executor"}));
}

#[test]
fn the_conformance_suite_passes_where_it_is_about_every_server() {
    let installation = team();
    let server = installation.serve();
    let scripts = scripts();
    let mut bridge = command(&installation, &server, "ana", "node");
    bridge.arg(scripts.join("bridge.mjs")).args([PROGRAM, "mcp"]).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut bridge = bridge.spawn().unwrap();
    let mut url = String::new();
    BufReader::new(bridge.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let suites = SCENARIOS.map(|scenario| {
        let mut suite = command(&installation, &server, "ana", "node");
        suite.env_remove("PILOT_TOKEN").arg("--import").arg(scripts.join("node20.mjs"));
        suite.arg(scripts.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"));
        suite.args(["server", "--url", url.trim(), "--scenario", scenario]);
        thread::spawn(move || finish(suite, None))
    });
    for (suite, scenario) in suites.into_iter().zip(SCENARIOS) {
        let finished = suite.join().unwrap().expect(0);
        assert!(finished.stdout.contains("0 failed"), "{scenario}: {finished:#?}");
    }
    drop(bridge.stdin.take());
    assert!(bridge.wait().unwrap().success());
}
