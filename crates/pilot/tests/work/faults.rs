//! Faults that other agents are known for: a second run after a restart, and work beyond the end of a lease.

use std::fs;
use std::process::Command;

use rustix::process::Signal;
use serde_json::json;

use crate::durability::SmallDisk;
use crate::support::harness::finish;
use crate::support::team::person;
use crate::work::stage::{
    Agent, Cable, WORKFLOW, cleared, comments, history, installation, once, processes_with, state, until, work,
};

const FOREVER: &str =
    "echo $PILOT_ATTEMPT >> runs; setsid sh -c 'while :; do sleep 0.05; done' & while :; do sleep 0.05; done";

/// What some queues do: they give the job to the next worker when the first is told to stop.
#[test]
fn a_command_that_was_stopped_is_not_delivered_again() {
    let installation = installation("15m");
    let server = installation.serve();
    let id = cleared(&server);
    let arguments = ["--workflow", WORKFLOW, "--drain-timeout", "1s"];
    let agent = Agent::start(&installation, work(&installation, &server.url(), &arguments, FOREVER));
    until("the command", || installation.path("runs").exists());
    agent.signal(Signal::TERM);
    agent.ends();
    assert_eq!(state(&server, &id), "indeterminate");
    once(&installation, &server, &[], "echo again >> runs").expect(0).says(&["nothing is cleared"]);
    assert_eq!(installation.read("runs"), "1\n");
}

/// What some runners do: they go on for minutes after the lock has gone to someone else.
#[test]
fn a_command_whose_lease_cannot_be_renewed_has_ended_before_the_lease() {
    let installation = installation("8s");
    let server = installation.serve();
    let cable = Cable::to(&server);
    let id = cleared(&server);
    let agent = Agent::start(&installation, work(&installation, &cable.url(), &["--workflow", WORKFLOW], FOREVER));
    until("the command", || installation.path("runs").exists());
    cable.cut();
    until("the end of the lease", || state(&server, &id) == "indeterminate");
    assert_eq!(processes_with(&format!("PILOT_ITEM_ID={id}")), [0; 0], "{}", agent.log());
    cable.mend(&server);
    until("a comment", || comments(&server, &id).contains("could not be reported as `unknown`"));
    agent.signal(Signal::TERM);
    agent.ends();
    assert_eq!(installation.read("runs"), "1\n");
}

/// The keeper watches the lease too: an agent that is stopped can do nothing.
#[test]
fn a_stopped_agent_does_not_keep_its_command_running_beyond_the_lease() {
    for group in ["auto", "off"] {
        let installation = installation("8s");
        let server = installation.serve();
        let id = cleared(&server);
        let arguments = ["--workflow", WORKFLOW, "--cgroup", group];
        let agent = Agent::start(&installation, work(&installation, &server.url(), &arguments, FOREVER));
        until("the command", || installation.path("runs").exists());
        agent.signal(Signal::STOP);
        until("the end of the lease", || state(&server, &id) == "indeterminate");
        assert_eq!(
            processes_with(&format!(
                "PILOT_RESULT_FILE={}",
                installation.path(&format!("journal/{id}.1/result.json")).display()
            ))
            .len(),
            0,
            "{group}"
        );
        agent.signal(Signal::CONT);
        until("a comment", || comments(&server, &id).contains("could not be reported as `unknown`"));
        agent.signal(Signal::TERM);
        agent.ends();
    }
}

#[test]
fn a_lease_that_someone_took_away_stops_the_command() {
    let installation = installation("6s");
    let server = installation.serve();
    let id = cleared(&server);
    let agent = Agent::start(&installation, work(&installation, &server.url(), &["--workflow", WORKFLOW], FOREVER));
    until("the command", || installation.path("runs").exists());
    // The same actor, at another keyboard.
    person(&server, "eli").must(&id, &json!({"action": "unknown", "comment": "I pulled the plug"}));
    until("a comment", || comments(&server, &id).contains("The agent stopped the command: the lease was lost"));
    assert_eq!(processes_with(&format!("PILOT_ITEM_ID={id}")), [0; 0], "{}", agent.log());
    assert_eq!(state(&server, &id), "indeterminate");
}

#[test]
fn with_a_full_disk_under_the_journal_nothing_is_started() {
    let installation = installation("15m");
    let server = installation.serve();
    let id = cleared(&server);
    let disk = SmallDisk::mount_at(installation.path("journal"), "256k");
    let filler = disk.fill();
    once(&installation, &server, &[], "echo ran >> runs").expect(3).says(&["journal"]);
    assert_eq!(state(&server, &id), "cleared");
    fs::remove_file(filler).unwrap();
    once(&installation, &server, &[], "echo ran >> runs").expect(0);
    assert_eq!(installation.read("runs"), "ran\n");
    assert_eq!(state(&server, &id), "succeeded");
}

/// Each step of the journal may be the one that does not fit any more.
#[test]
fn a_disk_that_fills_up_in_between_is_never_reported_as_success_without_one() {
    for room in [1_024, 2_048, 4_096, 8_192, 12_288, 16_384, 24_576] {
        let installation = installation("15m");
        let server = installation.serve();
        let id = cleared(&server);
        let disk = SmallDisk::mount_at(installation.path("journal"), "256k");
        fs::write(installation.path("journal/lock"), "").unwrap();
        disk.fill_up_to(room);
        let finished = once(&installation, &server, &[], "echo ran >> runs");
        let ran = fs::read_to_string(installation.path("runs")).unwrap_or_default().lines().count();
        let state = state(&server, &id);
        let last = history(&server, &id).pop().unwrap();
        let is_honest = match (&*state, ran) {
            ("cleared", 0) | ("succeeded", 1) => true,
            ("failed", 0) => last["comment"].as_str().unwrap().starts_with("The command was not run"),
            _ => false,
        };
        assert!(is_honest, "{room} bytes: ran {ran} times and is {state}: {last} {finished:?}");
        drop(disk);
    }
}

#[test]
fn two_agents_do_not_share_a_journal_and_one_does_not_finish_anothers_work() {
    let installation = installation("15m");
    let server = installation.serve();
    let id = cleared(&server);
    let agent = Agent::start(&installation, work(&installation, &server.url(), &["--workflow", WORKFLOW], FOREVER));
    until("the command", || installation.path("runs").exists());
    once(&installation, &server, &[], "true").expect(2).says(&["another agent is using this journal"]);
    agent.kill();
    let mut other: Command = work(&installation, &server.url(), &["--workflow", WORKFLOW, "--once"], "true");
    other.env("PILOT_TOKEN", crate::support::team::token("eva"));
    finish(other, None).expect(2).says(&["unfinished attempt of eli"]);
    assert_eq!(state(&server, &id), "executing");
}

/// The same actor at another agent: what one agent saw says nothing about the attempt of the other.
#[test]
fn a_late_report_is_not_taken_for_the_outcome_of_a_later_attempt() {
    let installation = installation("3s");
    let server = installation.serve();
    let id = cleared(&server);
    let agent = Agent::start(&installation, work(&installation, &server.url(), &["--workflow", WORKFLOW], FOREVER));
    until("the command", || installation.path("runs").exists());
    agent.kill();
    until("the end of the lease", || state(&server, &id) == "indeterminate");
    let outcome = json!({"action": "reconcile", "comment": "looked", "inputs": {"outcome": "failed"}});
    person(&server, "ben").must(&id, &outcome);
    person(&server, "eli").decides(&id, "retry");
    // The second attempt is someone's at another machine, who renews its lease.
    let agent = Agent::start(&installation, work(&installation, &server.url(), &["--workflow", WORKFLOW], FOREVER));
    until("a comment", || {
        person(&server, "eli").must(&id, &json!({"action": "heartbeat"}));
        comments(&server, &id).contains("Attempt 1 could not be reported as `unknown`")
    });
    assert_eq!(state(&server, &id), "executing", "{}", agent.log());
}

/// A service that was restored from an old backup offers again what was done already.
#[test]
fn what_the_journal_says_was_run_is_not_run_again_whatever_the_service_says() {
    let installation = installation("15m");
    let server = installation.serve();
    let id = cleared(&server);
    let first = format!("{id}.1");
    fs::create_dir_all(installation.path(&format!("journal/{first}"))).unwrap();
    let claim = json!({"step": "claiming", "v": 1, "service": server.url(), "actor_id": "eli", "item": id, "attempt": 1, "action": "start", "content_digest": "", "version": 4, "key": "k"});
    let steps = [
        claim,
        json!({"step": "claimed", "state": "executing"}),
        json!({"step": "spawned", "boot_id": "b", "group": null}),
        json!({"step": "reported"}),
    ];
    let steps: String = steps.iter().map(|step| format!("{step}\n")).collect();
    // Half a line is what a crash leaves.
    installation.write(&format!("journal/{first}/journal.jsonl"), &format!("{steps}{{\"step\":\"exi"));
    once(&installation, &server, &[], "echo ran >> runs").expect(1).says(&["has this attempt already"]);
    assert_eq!((installation.path("runs").exists(), state(&server, &id)), (false, "cleared".into()));
    assert_eq!(installation.read(&format!("journal/{first}/journal.jsonl")), steps);
}

/// A command can stop the process that watches it; the agent still ends both in time.
#[test]
fn a_command_that_stops_its_keeper_is_still_ended_by_the_time_limit() {
    for group in ["auto", "off"] {
        let installation = installation("15m");
        let server = installation.serve();
        let id = cleared(&server);
        let script = "kill -STOP $PPID; while :; do sleep 0.1; done";
        once(&installation, &server, &["--time-limit", "1s", "--cgroup", group], script).expect(1);
        assert_eq!(state(&server, &id), "indeterminate");
        assert_eq!(processes_with(&format!("PILOT_ITEM_ID={id}")), [0; 0], "{group}");
    }
}

#[test]
fn a_command_that_leaves_its_control_group_is_killed_all_the_same() {
    let installation = installation("15m");
    let server = installation.serve();
    let id = cleared(&server);
    let script = "home=$(ls -d /sys/fs/cgroup/unified /sys/fs/cgroup 2>/dev/null | head -1); \
                  (echo 0 > $home/cgroup.procs; exec setsid sleep 1000) & sleep 0.2; exit 0";
    once(&installation, &server, &[], script).expect(0);
    assert_eq!((state(&server, &id), processes_with(&format!("PILOT_ITEM_ID={id}"))), ("succeeded".into(), vec![]));
}

#[test]
fn a_secret_does_not_reach_the_ledger_by_the_result_or_by_the_name_of_a_file() {
    let installation = installation("15m");
    let server = installation.serve();
    let id = cleared(&server);
    let script = r#"touch $PILOT_ARTIFACT_DIR/dump-$DB_PASSWORD; ln -s x $PILOT_ARTIFACT_DIR/link-$DB_PASSWORD
        echo "{\"outcome\":\"failed\",\"result\":\"no login with $DB_PASSWORD\"}" > $PILOT_RESULT_FILE"#;
    let arguments = ["--workflow", WORKFLOW, "--once", "--env-allow", "DB_PASSWORD"];
    let mut command: Command = work(&installation, &server.url(), &arguments, script);
    command.env("DB_PASSWORD", "hunter2hunter2");
    finish(command, None).expect(1).never_says("hunter2");
    let last = history(&server, &id).pop().unwrap();
    assert_eq!(last["inputs"]["result"], "no login with ***");
    assert!(!last.to_string().contains("hunter2"), "{last}");
}

/// Only the process that could not become the command may say that nothing was run.
#[test]
fn a_command_that_was_killed_cannot_have_it_said_that_it_was_not_run() {
    let installation = installation("15m");
    let server = installation.serve();
    let id = cleared(&server);
    let script = "echo nothing happened > $(dirname $PILOT_RESULT_FILE)/fault; while :; do sleep 0.1; done";
    once(&installation, &server, &["--time-limit", "1s"], script).expect(1);
    assert_eq!(state(&server, &id), "indeterminate");
}
