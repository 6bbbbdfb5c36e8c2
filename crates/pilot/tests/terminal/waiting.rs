//! `pilot item wait`: exit 0, 1 and 8, whatever happens to the connection meanwhile.

use std::io::{BufRead, BufReader, Read};
use std::process::Child;

use serde_json::json;

use super::desk::Desk;
use crate::support::harness::Port;
use crate::support::team::{payload, person, team};

fn wait<'a>(id: &'a str, target: &'a str) -> [&'a str; 5] {
    ["item", "wait", id, "--for", target]
}

#[track_caller]
fn ends(mut child: Child) -> (i32, String) {
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    (child.wait().unwrap().code().unwrap(), text)
}

#[test]
fn a_wait_ends_with_0_when_reached_1_when_it_cannot_be_and_8_when_not_yet() {
    let desk = Desk::new();
    let id = desk.item("Rotate", &["--submit"]);
    let now = |target: &str| desk.run("ana", &[&wait(&id, target)[..], &["--timeout", "0s"]].concat());
    let code = |target: &str| now(target).code;
    assert_eq!(["decided", "cleared", "started", "closed"].map(code), [8; 4]);
    now("cleared").says(&["not yet: the item is submitted and waits for approver"]);
    desk.approve(&id);
    assert_eq!(["decided", "cleared", "started", "closed"].map(code), [0, 8, 8, 8]);
    desk.clear(&id);
    assert_eq!(["decided", "cleared", "started", "closed"].map(code), [0, 0, 8, 8]);
    desk.run("sol", &["item", "act", &id, "hold", "--comment", "wait"]).expect(0);
    assert_eq!(["decided", "cleared"].map(code), [8, 8], "held");
    desk.run("sol", &["item", "act", &id, "release", "--comment", "go"]).expect(0);
    desk.run("sol", &["item", "act", &id, "revoke", "--comment", "no"]).expect(0);
    assert_eq!(["decided", "cleared", "started", "closed"].map(code), [1; 4]);
    now("cleared").says(&["the item is revoked, so this can no longer be reached"]);
    let json = desk.run("ana", &[&wait(&id, "cleared")[..], &["--output", "json"]].concat()).expect(1).json();
    assert_eq!(json, json!({"id": id, "state": "revoked", "standing": "never"}));
}

#[test]
fn a_wait_is_woken_by_what_happens() {
    let desk = Desk::new();
    let id = desk.item("Rotate", &["--submit"]);
    let waiting = [("decided", 0), ("cleared", 0), ("started", 0), ("closed", 0)]
        .map(|(target, code)| (desk.start("ana", &wait(&id, target)), code));
    desk.approve(&id);
    desk.clear(&id);
    let digest = desk.digest(&id);
    desk.run("eli", &["item", "act", &id, "start", "--digest", &digest]).expect(0);
    desk.run("eli", &["item", "act", &id, "fail"]).expect(0);
    desk.run("eli", &["item", "act", &id, "roll_back"]).expect(0);
    desk.run("eli", &["item", "act", &id, "succeed"]).expect(0);
    desk.run("bob", &["item", "act", &id, "accept"]).expect(0);
    for (child, code) in waiting {
        let (ended, said) = ends(child);
        assert_eq!(ended, code, "{said}");
    }
}

#[test]
fn a_wait_goes_on_across_a_restart_of_the_service() {
    let installation = team();
    let port = Port::reserve();
    installation.write("pilot.toml", &format!("listen = \"{}\"\n", port.address()));
    let desk = Desk { server: installation.serve(), installation };
    let id = desk.item("Rotate", &["--submit"]);
    let mut waiting = desk.command("ana", &wait(&id, "decided")).spawn().unwrap();
    let mut complaints = BufReader::new(waiting.stderr.take().unwrap());
    let Desk { installation, server } = desk;
    server.wait_for_log("list_events");
    server.stop().expect(0);
    let mut line = String::new();
    complaints.read_line(&mut line).unwrap();
    assert!(line.contains("trying again"), "{line}");
    let desk = Desk { server: installation.serve(), installation };
    desk.approve(&id);
    assert_eq!(ends(waiting).0, 0);
}

#[test]
fn a_new_item_is_named_before_it_is_waited_for() {
    let desk = Desk::new();
    desk.installation.write("payload.json", &payload("low").to_string());
    let new = ["item", "new", "--title", "Rotate", "--payload", "payload.json", "--submit", "--wait", "cleared"];
    let mut child = desk.start("ana", &new);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let id = lines.next().unwrap();
    assert_eq!(lines.next().unwrap(), format!("{}/console/items/{id}", desk.server.url()));
    desk.run("ana", &wait(&id, "decided")[..4]).expect(2);
    let submitted = person(&desk.server, "ben").item(&id);
    assert_eq!(submitted["title"], "Rotate");
    desk.server.wait_for_log("list_events");
    desk.approve(&id);
    desk.clear(&id);
    assert_eq!(lines.next().unwrap(), format!("{id}  cleared"));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_state_that_did_not_last_does_not_count() {
    let desk = Desk::new();
    let id = desk.item("Rotate", &["--submit"]);
    desk.approve(&id);
    desk.run("ben", &["item", "act", &id, "revoke_approval", "--comment", "I was wrong"]).expect(0);
    let waited = desk.run("ana", &[&wait(&id, "decided")[..], &["--timeout", "0s"]].concat());
    assert_eq!(waited.code, 8, "{waited:?}");
}

#[test]
fn a_wait_says_so_when_its_credential_is_refused() {
    let desk = Desk::new();
    let id = desk.item("Rotate", &[]);
    let mut command = desk.command("ana", &wait(&id, "decided"));
    command.env("PILOT_TOKEN", "not-a-token-of-anybody-in-this-team");
    crate::support::harness::finish(command, None).expect(1).says(&["401 credential_required"]);
}
