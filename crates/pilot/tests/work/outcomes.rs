//! What a command does, and what the service is told about it.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::support::harness::{Finished, Installation, Server};
use crate::support::team::{person, token};
use crate::work::stage::{Agent, cleared, history, installation, once, processes_with, state, until, work};

/// One item, executed by this script; what the agent left, the item's state and the transition that said so.
fn executed(arguments: &[&str], script: &str) -> (Installation, Server, Finished, String, Value) {
    let installation = installation("15m");
    let server = installation.serve();
    let id = cleared(&server);
    let finished = once(&installation, &server, arguments, script);
    let last = history(&server, &id).pop().unwrap();
    let state = state(&server, &id);
    (installation, server, finished, state, last)
}

#[test]
fn only_an_exit_that_the_command_chose_is_reported_as_success_or_failure() {
    for (script, code, expected, words) in [
        ("echo done", 0, "succeeded", "exited with code 0"),
        ("exit 7", 1, "failed", "exited with code 7"),
        ("kill -9 $$", 1, "indeterminate", "killed by signal 9"),
        (
            r#"echo '{"outcome":"failed","result":"no room"}' > $PILOT_RESULT_FILE"#,
            1,
            "failed",
            "reported the outcome failed",
        ),
        (r#"echo '{"outcome":"succeeded"}' > $PILOT_RESULT_FILE; exit 3"#, 0, "succeeded", "exited with code 3"),
        (r"echo nonsense > $PILOT_RESULT_FILE", 1, "indeterminate", "cannot be read"),
        ("(setsid sleep 1000 &) ; exit 0", 0, "succeeded", "left 1 processes running"),
    ] {
        let (_installation, _server, finished, state, last) = executed(&[], script);
        assert_eq!(state, expected, "{script}: {last} {finished:?}");
        assert!(last["comment"].as_str().unwrap().contains(words), "{script}: {last}");
        finished.expect(code);
    }
}

#[test]
fn a_command_that_does_not_exist_was_not_run() {
    let installation = installation("15m");
    let server = installation.serve();
    let id = cleared(&server);
    let mut command = installation.command(&["work", "--url", &server.url(), "--journal", "journal"]);
    command.args(["--workflow", "quick-operation", "--once", "--exec", "/no/such/command"]);
    command.env("PILOT_TOKEN", token("eli"));
    crate::support::harness::finish(command, None).expect(1);
    let last = history(&server, &id).pop().unwrap();
    assert_eq!(last["action"], "fail");
    assert!(last["comment"].as_str().unwrap().starts_with("The command was not run: /no/such/command"), "{last}");
}

#[test]
fn the_command_reads_the_item_and_sees_no_more_of_the_environment_than_allowed() {
    let installation = installation("15m");
    let server = installation.serve();
    let id = cleared(&server);
    let script = "cat > $PILOT_ARTIFACT_DIR/item.json; env | sort > $PILOT_ARTIFACT_DIR/env";
    let arguments =
        ["--workflow", "quick-operation", "--once", "--env-allow", "DB_PASSWORD", "--env-allow", "PILOT_TOKEN"];
    let mut command = work(&installation, &server.url(), &arguments, script);
    command.env("DB_PASSWORD", "hunter2hunter2").env("OTHER", "not passed on");
    crate::support::harness::finish(command, None).expect(0);
    let item: Value = serde_json::from_str(&installation.read(&format!("journal/{id}.1/artifacts/item.json"))).unwrap();
    assert_eq!((&item["id"], &item["state"]), (&id.clone().into(), &"executing".into()));
    let environment = installation.read(&format!("journal/{id}.1/artifacts/env"));
    let names: Vec<_> = environment.lines().filter_map(|line| line.split('=').next()).collect();
    let expected = [
        "DB_PASSWORD",
        "PATH",
        "PILOT_ARTIFACT_DIR",
        "PILOT_ATTEMPT",
        "PILOT_CONTENT_DIGEST",
        "PILOT_ITEM_ID",
        "PILOT_PERMIT_FILE",
        "PILOT_RESULT_FILE",
        "PILOT_URL",
        "PILOT_VERSION",
        "PILOT_WINDOW_END",
        "PILOT_WORKFLOW",
        "PWD",
        "TMPDIR",
    ];
    assert_eq!(names, expected);
}

#[test]
fn output_and_artifacts_are_reported_with_the_digests_of_what_is_kept_and_without_secrets() {
    let installation = installation("15m");
    let server = installation.serve();
    let id = cleared(&server);
    let script = "echo password $DB_PASSWORD; printf $DB_PASSWORD | base64; echo plan > $PILOT_ARTIFACT_DIR/plan; echo last line >&2";
    let arguments = ["--workflow", "quick-operation", "--once", "--env-allow", "DB_PASSWORD"];
    let mut command = work(&installation, &server.url(), &arguments, script);
    command.env("DB_PASSWORD", "hunter2hunter2");
    crate::support::harness::finish(command, None).expect(0).never_says("hunter2");
    let last = history(&server, &id).pop().unwrap();
    assert!(last["inputs"]["result"].as_str().unwrap().ends_with("last line"), "{last}");
    assert!(!last.to_string().contains("hunter2") && !last.to_string().contains("aHVudGVyMmh1bnRlcj"), "{last}");
    let artifacts = last["inputs"]["artifacts"].as_array().unwrap();
    let names: Vec<_> = artifacts.iter().map(|artifact| artifact["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["plan", "output"]);
    for (artifact, file) in artifacts.iter().zip(["artifacts/plan", "output.txt"]) {
        let bytes = fs::read(installation.path(&format!("journal/{id}.1/{file}"))).unwrap();
        assert_eq!(artifact["sha256"], data_encoding::HEXLOWER.encode(&Sha256::digest(&bytes)), "{file}");
        assert_eq!(artifact["bytes"], bytes.len());
    }
}

#[test]
fn a_command_that_prints_a_token_does_not_put_it_into_the_ledger() {
    let (_installation, _server, finished, state, last) =
        executed(&[], &format!("echo {}; echo {}", token("eli"), token("ana")));
    finished.expect(0);
    assert_eq!(state, "succeeded");
    assert!(!last.to_string().contains("hand-made-token"), "{last}");
}

#[test]
fn a_command_that_takes_too_long_is_stopped_and_its_item_is_indeterminate() {
    let (_installation, _server, finished, state, last) =
        executed(&["--time-limit", "1s"], "trap '' TERM; while :; do sleep 0.1; done");
    finished.expect(1);
    assert_eq!(state, "indeterminate");
    assert!(last["comment"].as_str().unwrap().contains("time limit"), "{last}");
}

#[test]
fn heartbeats_carry_the_last_line_of_the_output() {
    let installation = installation("8s");
    let server = installation.serve();
    let id = cleared(&server);
    let script = "echo copying 3 of 7; while [ ! -e go ]; do sleep 0.1; done";
    let agent =
        Agent::start(&installation, work(&installation, &server.url(), &["--workflow", "quick-operation"], script));
    let is_beat = |entry: &Value| entry["action"] == "heartbeat" && entry["inputs"]["progress"] == "copying 3 of 7";
    until("a heartbeat with progress", || history(&server, &id).iter().filter(|entry| is_beat(entry)).count() >= 2);
    installation.write("go", "");
    until("the end", || state(&server, &id) == "succeeded");
    agent.signal(Signal::TERM);
    assert_eq!(agent.ends().code(), Some(0));
}

#[test]
fn the_first_sigterm_finishes_and_the_second_stops() {
    let installation = installation("15m");
    let server = installation.serve();
    let id = cleared(&server);
    let script = "touch began; while :; do sleep 0.1; done";
    let agent =
        Agent::start(&installation, work(&installation, &server.url(), &["--workflow", "quick-operation"], script));
    until("the command", || installation.path("began").exists());
    agent.signal(Signal::TERM);
    let other = cleared(&server);
    until("the drain", || agent.log().contains("draining"));
    assert_eq!(state(&server, &id), "executing");
    agent.signal(Signal::TERM);
    assert_eq!(agent.ends().code(), Some(0));
    assert_eq!(state(&server, &id), "indeterminate");
    assert_eq!(state(&server, &other), "cleared");
    assert_eq!(processes_with(&format!("PILOT_ITEM_ID={id}")), [0; 0]);
}

#[test]
fn a_pipeline_gets_the_commands_own_exit_code() {
    let installation = installation("15m");
    let server = installation.serve();
    let id = cleared(&server);
    let run = |script| {
        crate::support::harness::finish(
            work(&installation, &server.url(), &["--item", &id, "--reflect-exit"], script),
            None,
        )
    };
    run("exit 42").expect(42);
    run("exit 0").expect(0);
    run("exit 0").expect(1).says(&["is succeeded: it cannot be executed now"]);
    let attempts: Vec<_> = history(&server, &id).into_iter().map(|entry| entry["action"].clone()).collect();
    assert_eq!(attempts[3..], ["start", "fail", "retry", "succeed"]);
}

#[test]
fn an_agent_serves_its_own_targets_only_and_a_dry_run_starts_nothing() {
    let installation = installation("15m");
    let server = installation.serve();
    let id = cleared(&server);
    let dry = once_dry(&installation, &server, &[]);
    assert!(dry.stdout.contains(&id), "{dry:?}");
    let dry = once_dry(&installation, &server, &["--target", "db1"]);
    assert!(!dry.stdout.contains(&id), "{dry:?}");
    assert_eq!(state(&server, &id), "cleared");
}

fn once_dry(installation: &Installation, server: &Server, arguments: &[&str]) -> Finished {
    let arguments = [&["--workflow", "quick-operation", "--dry-run"], arguments].concat();
    crate::support::harness::finish(work(installation, &server.url(), &arguments, "true"), None).expect(0)
}

#[test]
fn only_an_executor_can_work() {
    let installation = installation("15m");
    let server = installation.serve();
    let mut command = work(&installation, &server.url(), &["--workflow", "quick-operation", "--once"], "true");
    command.env("PILOT_TOKEN", token("ana"));
    crate::support::harness::finish(command, None).expect(2).says(&["only an executor can work; ana is initiator"]);
    person(&server, "ada").get("/v1/items");
}

#[test]
fn with_a_policy_nothing_runs_unless_the_log_itself_proves_that_it_may() {
    let [installation, other] = [installation("15m"), installation("15m")];
    let [server, _other_server] = [installation.serve(), other.serve()];
    let key_of = |log: &Installation| log.pilot(&["log", "key", "--config", "pilot.toml"]).expect(0).stdout;
    let run = |name: &str, log: &str| {
        let id = cleared(&server);
        installation.write(name, &format!("log {}\nquorum none\n", log.trim()));
        let finished =
            once(&installation, &server, &["--policy", name], "test -s $PILOT_PERMIT_FILE && echo ran >> runs");
        (finished, history(&server, &id).pop().unwrap())
    };
    let (finished, last) = run("policy", &key_of(&installation));
    finished.expect(0);
    assert_eq!((&last["action"], &*installation.read("runs")), (&"succeed".into(), "ran\n"));
    let (_, last) = run("other-policy", &key_of(&other));
    assert_eq!(last["action"], "fail", "{last}");
    assert!(last["comment"].as_str().unwrap().contains("The command was not run: the permit is refused"), "{last}");
    assert_eq!(installation.read("runs"), "ran\n");
}
