//! Items from their creation to their end, each step a command.

use serde_json::{Value, json};

use super::desk::Desk;
use crate::support::team::{payload, person, token};

#[test]
fn an_item_goes_from_a_file_to_its_end_by_commands_only() {
    let desk = Desk::new();
    let id = desk.item("Rotate the signing key", &["--submit"]);
    desk.approve(&id);
    desk.clear(&id);
    let digest = desk.digest(&id);
    let act = |who, arguments: &[&str]| desk.run(who, &[&["item", "act", &id], arguments].concat()).expect(0);
    let started = act("eli", &["start", "--digest", &digest]);
    assert!(started.stdout.starts_with("start: cleared to executing (entry "), "{started:?}");
    act("eli", &["heartbeat", "--input", "progress=half of it"]);
    let artifacts = json!([{"name": "log", "sha256": "0".repeat(64), "bytes": 3, "uri": "https://logs.example/1"}]);
    act("eli", &["succeed", "--result", "rotated", "--input", &format!("artifacts:={artifacts}")]);
    let shown = desk.run("ben", &["item", "show", &id]).expect(0).stdout;
    for words in [
        "Rotate the signing key\n",
        "State    succeeded: carried out, waiting for review\n",
        "  │ purpose: the key is a year old\n",
        "Votes    1 of 1 for approve: ben\n",
        "  │ result: rotated\n",
        "  │ artifact log, 3 bytes https://logs.example/1\n",
        "  accept: becomes closed, and is finished\n",
        "  dispute: becomes indeterminate; needs a comment\n",
        &digest,
    ] {
        assert!(shown.contains(words), "{words:?} is missing in\n{shown}");
    }
    act("ben", &["accept"]);
    let closed = desk.json("ada", &["item", "show", &id]);
    assert_eq!(closed["state"], "closed");
    let actions: Vec<_> = closed["history"].as_array().unwrap().iter().map(|entry| entry["action"].clone()).collect();
    assert_eq!(
        Value::from(actions),
        json!(["create", "submit", "approve", "clear", "start", "heartbeat", "succeed", "accept"])
    );
}

#[test]
fn off_a_terminal_a_decision_needs_its_digest_and_nothing_is_sent_without_it() {
    let desk = Desk::new();
    let id = desk.item("Rotate", &["--submit"]);
    let refused = desk.run("ben", &["item", "act", &id, "approve"]).expect(2);
    refused.says(&["--digest", &format!("pilot item show {id}")]);
    assert_eq!(desk.json("ben", &["item", "show", &id])["history"].as_array().unwrap().len(), 2);
    let wrong = format!("sha256:{}", "0".repeat(64));
    desk.run("ben", &["item", "act", &id, "approve", "--digest", &wrong]).expect(1).says(&["409 content_changed"]);
    desk.run("ben", &["item", "act", &id, "approve", "--digest", "sha256:123"]).expect(2).says(&["64 lowercase"]);
}

#[test]
fn a_list_fits_eighty_columns_and_has_every_filter_of_the_service() {
    let desk = Desk::new();
    let long = "Replace the certificates of every machine in the second data centre before the end of the year";
    let first = desk.item(long, &["--submit"]);
    let second = desk.item("日本語の長い題名は端末の幅に合わせて切られなければならない、そうでなければ困る", &[]);
    person(&desk.server, "amy").creates("controlled-operation", &payload("low"));
    let list = desk.run("ben", &["item", "list"]).expect(0).stdout;
    assert_eq!(list.lines().count(), 4, "{list}");
    for line in list.lines() {
        assert!(columns(line) <= 80, "{line}");
    }
    assert!(list.contains('…'), "{list}");
    let ids = |arguments: &[&str]| -> Vec<String> {
        let listed = desk.run("ben", &[&["item", "list", "--fields", "id"], arguments].concat()).expect(0);
        listed.stdout.lines().map(str::to_owned).collect()
    };
    assert_eq!(ids(&["--state", "submitted"]), [&*first]);
    assert_eq!(ids(&["--waiting-for-me"]), [&*first]);
    assert_eq!(ids(&["--created-by", "ana"]), [second.clone(), first.clone()]);
    assert_eq!(ids(&["--search", "second data"]), [&*first]);
    assert_eq!(ids(&["--workflow", "emergency-operation"]).len(), 0);
    assert_eq!(ids(&["--limit", "1", "--created-by", "ana"]), [second]);
    let fields =
        ["item", "list", "--search", "second data", "--fields", "title,created_by.actor_id,payload.risk,window"];
    assert_eq!(desk.run("ben", &fields).expect(0).stdout, format!("{long}\tana\tlow\t\n"));
    desk.run("ben", &["item", "list", "--fields", "colour"]).expect(2).says(&["there is no colour", "created_at"]);
}

/// As a terminal counts them, for the scripts of this test.
fn columns(line: &str) -> usize {
    line.chars().map(|letter| if letter > '\u{2e80}' { 2 } else { 1 }).sum()
}

#[test]
fn all_items_are_listed_page_by_page() {
    let desk = Desk::new();
    let mut amy = person(&desk.server, "amy");
    for _ in 0..203 {
        amy.creates("controlled-operation", &payload("low"));
    }
    let all = desk.run("ben", &["item", "list", "--all", "--fields", "id"]).expect(0);
    assert_eq!(all.stdout.lines().count(), 203);
    let some = desk.run("ben", &["item", "list"]).expect(0);
    assert_eq!(some.stdout.lines().count(), 51);
    some.says(&["there are more than 50; --all lists them all"]);
}

#[test]
fn an_edit_replaces_the_payload_and_is_for_the_version_that_was_read() {
    let desk = Desk::new();
    let id = desk.item("Rotate", &[]);
    let payload = json!({"purpose": "another", "targets": ["a", "b"]});
    desk.installation.write("new.json", &payload.to_string());
    let edited = desk.json("ana", &["item", "edit", &id, "--title", "Rotate twice", "--payload", "new.json"]);
    assert_eq!(
        (&edited["title"], &edited["payload"], &edited["version"]),
        (&json!("Rotate twice"), &payload, &json!(2))
    );
    desk.run("amy", &["item", "edit", &id, "--title", "Mine"]).expect(1).says(&["403 not_owner"]);
    desk.run("ana", &["item", "edit", &id]).expect(2).says(&["--title"]);
    desk.installation.write("twice.json", r#"{"purpose": "a", "purpose": "b"}"#);
    desk.run("ana", &["item", "edit", &id, "--payload", "twice.json"]).expect(2).says(&["twice.json", "purpose"]);
    desk.installation.write("null.json", r#"{"purpose": null}"#);
    desk.run("ana", &["item", "edit", &id, "--payload", "null.json"]).expect(2).says(&["null"]);
}

#[test]
fn a_comment_comes_from_standard_input_too_and_a_missing_one_is_refused() {
    let desk = Desk::new();
    let id = desk.item("Rotate", &["--submit"]);
    desk.run("ben", &["item", "act", &id, "return"]).expect(1).says(&["422 invalid_request", "/comment"]);
    let mut command = desk.command("ben", &["item", "act", &id, "return", "--comment", "-"]);
    command.stdin(std::process::Stdio::piped());
    crate::support::harness::finish(command, Some("First line.\nSecond line.\n")).expect(0);
    let shown = desk.run("ana", &["item", "show", &id]).expect(0).stdout;
    assert!(shown.contains("ben: return, submitted to returned\n  │ First line.\n  │ Second line.\n"), "{shown}");
}

#[test]
fn what_others_wrote_cannot_control_the_terminal_nor_pass_for_our_words() {
    let desk = Desk::new();
    let evil = "ok\u{202e}\u{200b}";
    let text = "fine\nDigest   sha256:0000\n\u{1b}[2J\u{1b}]0;x\u{7}\u{1b}[8mhidden\u{9b}31m";
    let payload = json!({"purpose": text, "operation": {"a\u{1b}[31m": text}, "risk": "low", "rollback_plan": "x"});
    desk.installation.write("evil.json", &payload.to_string());
    let new = ["item", "new", "--title", evil, "--payload", "evil.json", "--submit", "--fields", "id"];
    let id = desk.run("ana", &new).expect(0).stdout.trim().to_owned();
    desk.run("ben", &["item", "act", &id, "return", "--comment", text]).expect(0);
    for arguments in [
        &["item", "show", &id][..],
        &["item", "show", &id, "--output", "json"],
        &["item", "show", &id, "--fields", "title,payload"],
        &["item", "list"],
        &["item", "list", "--output", "json"],
    ] {
        let printed = desk.run("ana", arguments).expect(0).stdout;
        let raw = |letter: char| matches!(letter, '\u{1b}' | '\u{7}' | '\u{9b}' | '\u{202e}' | '\u{200b}');
        assert!(!printed.contains(raw), "{arguments:?} {printed:?}");
        let posing = printed.lines().filter(|line| line.starts_with("Digest ")).count();
        assert!(posing <= 1, "{printed}");
    }
    let shown = desk.run("ana", &["item", "show", &id]).expect(0).stdout;
    assert!(shown.contains("ok⟨U+202E⟩⟨U+200B⟩\n") && shown.contains("⟨U+001B⟩[2J"), "{shown}");
}

#[test]
fn json_is_what_the_service_sent() {
    let desk = Desk::new();
    let id = desk.item("Rotate", &[]);
    let mut shown = desk.json("ana", &["item", "show", &id]);
    shown.as_object_mut().unwrap().remove("history");
    assert_eq!(shown, person(&desk.server, "ana").item(&id));
    let listed = person(&desk.server, "ana").get("/v1/items").json();
    assert_eq!(desk.json("ana", &["item", "list"])["items"], listed["items"]);
}

#[test]
fn a_token_that_somebody_types_as_an_argument_is_not_repeated() {
    let desk = Desk::new();
    let id = desk.item("Rotate", &["--submit"]);
    let secret = token("sol");
    for arguments in [
        &["item", "show", &secret][..],
        &["item", "act", &id, &secret],
        &["item", "act", &id, "reject", "--comment", &secret],
        &["item", "list", "--token", &secret],
        &["item", "list", "--limit", &secret],
        &["watch", "--item", &secret],
        &["inbox", &secret],
        &["profile", "check", &secret],
        &["login", "--profile", &secret],
    ] {
        let finished = desk.run("ben", arguments);
        assert!(finished.code == 1 || finished.code == 2, "{arguments:?}");
        finished.never_says(&secret);
    }
}

#[test]
fn wrong_arguments_end_with_2_before_anything_is_sent() {
    let desk = Desk::new();
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    for arguments in [
        &["item"][..],
        &["item", "show", "not-an-id"],
        &["item", "new"],
        &["item", "new", "--title", "x", "--payload", "missing.json", "--timeout", "2h"],
        &["item", "act", id],
        &["item", "act", id, "clear", "--not-after", "tomorrow"],
        &["item", "act", id, "clear", "--input", "x"],
        &["item", "act", id, "clear", "--input", "x:=["],
        &["item", "wait", id],
        &["item", "wait", id, "--for", "lunch"],
        &["item", "wait", id, "--for", "cleared", "--timeout", "2"],
        &["item", "list", "--limit", "0"],
        &["item", "list", "--all", "--limit", "3"],
    ] {
        let finished = desk.run("ana", arguments).expect(2);
        assert_eq!(finished.stdout, "", "{arguments:?}");
    }
    desk.run("ana", &["item", "show", id]).expect(1).says(&["404 not_found"]);
}
