//! `examples/ssh-gate`, with a stand-in for ssh that does what sshd does with `authorized_keys`: it runs the forced command.

use super::stage::{Stage, change_a_byte, repository, sha256_of};

const PROGRAM: &str = "sbin/rotate-key";

fn stage() -> Stage {
    let stage = Stage::new("ssh-gate", &["propose", "carry-out"]);
    stage.stand_in(PROGRAM, "");
    std::fs::copy(stage.path(PROGRAM), stage.path("work/rotate-key")).unwrap();
    forced(&stage, |line| line);
    stage
}

/// What the key may do at the target: what `authorized_keys` says, or something else.
fn forced(stage: &Stage, change: fn(String) -> String) {
    let line = repository("examples/enforce/ssh/authorized_keys");
    let line = change(stage.moved(line.split('"').nth(1).unwrap()));
    stage.program(
        "bin/ssh",
        &format!("#!/bin/sh\n[ \"$*\" = '-o BatchMode=yes root@target.example' ] || exit 255\n{line}\n"),
    );
}

#[test]
fn the_target_runs_what_was_approved() {
    let stage = stage();
    let [propose, work] = &stage.page()[..] else { panic!("the page has other blocks") };
    let id = stage.propose(propose);
    let approved = &stage.item(&id)["payload"]["operation"];
    assert_eq!(approved["files"][0]["sha256"], sha256_of(&stage.path(PROGRAM)));
    assert_eq!(approved["argv"][2], "2");
    stage.run("eli", work).expect(0);
    // The program is called by the name under which the gate holds its bytes.
    let record = stage.record();
    assert_eq!(record.split_once(' ').unwrap().1, "--slot 2\n");
    stage.succeeded(&id);
    stage.has_no_token();
}

#[test]
fn a_program_with_one_byte_changed_does_not_run() {
    let stage = stage();
    let [propose, work] = &stage.page()[..] else { panic!("the page has other blocks") };
    let id = stage.propose(propose);
    change_a_byte(&stage.path(PROGRAM));
    stage.run("eli", work).expect(1);
    stage.refused(&id, &["rotate-key: its bytes are not those that were approved"]);
}

#[test]
fn other_arguments_than_the_approved_ones_do_not_run() {
    let stage = stage();
    let [propose, work] = &stage.page()[..] else { panic!("the page has other blocks") };
    let id = stage.propose(propose);
    forced(&stage, |line| line.replace("--slot 2", "--slot 3"));
    stage.run("eli", work).expect(1);
    stage.refused(&id, &["word 2 of the command line is", "was approved"]);
}

#[test]
fn a_broken_connection_is_not_called_a_failure() {
    let stage = stage();
    let [propose, work] = &stage.page()[..] else { panic!("the page has other blocks") };
    let id = stage.propose(propose);
    forced(&stage, |line| format!("({line})\nexit 255"));
    stage.run("eli", work).expect(255);
    assert_eq!(stage.item(&id)["state"], "indeterminate", "{}", stage.report(&id));
    assert_eq!(stage.record().lines().count(), 1);
}
