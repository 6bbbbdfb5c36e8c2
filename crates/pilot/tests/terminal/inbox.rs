//! The inbox, at a terminal and elsewhere.

use serde_json::json;

use super::desk::Desk;
use crate::support::pty::Terminal;
use crate::support::team::{JSON, payload, person};

fn eight(digest: &str) -> &str {
    &digest["sha256:".len()..][..8]
}

#[test]
fn off_a_terminal_the_inbox_is_a_list_of_what_waits_for_the_caller() {
    let desk = Desk::new();
    let id = desk.item("Rotate", &["--submit"]);
    desk.item("A draft", &[]);
    let list = desk.run("ben", &["inbox"]).expect(0).stdout;
    assert!(list.starts_with("ID ") && list.contains(&id) && list.lines().count() == 2, "{list}");
    assert_eq!(desk.run("ben", &["inbox", "--fields", "id,state"]).expect(0).stdout, format!("{id}\tsubmitted\n"));
    assert_eq!(desk.json("sol", &["inbox"])["items"], json!([]));
}

#[test]
fn at_a_terminal_a_person_sees_the_content_types_its_digest_and_decides() {
    let desk = Desk::new();
    let id = desk.item("Rotate the signing key", &["--submit"]);
    let digest = desk.digest(&id);
    let mut ben = Terminal::run(desk.command("ben", &["inbox"]));
    let list = ben.shows("Number of an item, or q to leave: ");
    assert!(list.contains(&format!(" 1  {id}  submitted  ana  Rotate the signing key\n")), "{list}");
    ben.types("7");
    ben.shows("type the number at the beginning of a line");
    ben.shows("or q to leave: ");
    ben.types("1");
    let page = ben.shows("or nothing to go back: ");
    assert!(page.contains("purpose: the key is a year old") && page.contains(&digest), "{page}");
    assert!(page.contains("\u{1b}[1mContent\u{1b}[0m"), "headings are bold at a terminal: {page}");
    ben.types("approve");
    ben.shows("first 8 characters of its digest: ");
    ben.types("00000000");
    ben.shows("that is not how this content's digest begins");
    ben.shows("first 8 characters of its digest: ");
    ben.types(eight(&digest));
    ben.shows("approve: submitted to approved (entry ");
    ben.shows("Nothing waits for you.");
    assert_eq!(ben.ends().0, 0);
    // Security sets a window.
    let mut sol = Terminal::run(desk.command("sol", &["inbox"]));
    sol.shows("or q to leave: ");
    sol.types("1");
    sol.shows("or nothing to go back: ");
    sol.types("clear");
    sol.shows("digest: ");
    sol.types(eight(&digest));
    sol.shows("End of the window (2h, or a time; at most 30d): ");
    sol.types("soon");
    sol.shows("write a time such as");
    sol.shows("at most 30d): ");
    sol.types("90m");
    sol.shows("clear: approved to cleared");
    assert_eq!(sol.ends().0, 0);
    assert_eq!(desk.json("ada", &["item", "show", &id])["state"], "cleared");
}

#[test]
fn what_changed_since_it_was_returned_is_shown() {
    let desk = Desk::new();
    let id = desk.item("Rotate", &["--submit"]);
    desk.run("ben", &["item", "act", &id, "return", "--comment", "Which key?"]).expect(0);
    let mut better = payload("medium");
    better["operation"] = "rotate the signing key\u{1b}[2J".into();
    desk.installation.write("better.json", &better.to_string());
    desk.run("ana", &["item", "edit", &id, "--payload", "better.json"]).expect(0);
    desk.run("ana", &["item", "act", &id, "submit"]).expect(0);
    let mut ben = Terminal::run(desk.command("ben", &["inbox"]));
    ben.shows("or q to leave: ");
    ben.types("1");
    ben.shows("What has changed since it was returned");
    let changes = ben.shows("or nothing to go back: ");
    for line in [
        "- /payload/operation: \"rotate\"",
        "+ /payload/operation: \"rotate the signing key\\u001b[2J\"",
        "- /payload/risk: \"low\"",
        "+ /payload/risk: \"medium\"",
    ] {
        assert!(changes.contains(line), "{line}: {changes}");
    }
    ben.types("");
    ben.shows("or q to leave: ");
    ben.types("q");
    let (code, screen) = ben.ends();
    assert_eq!(code, 0);
    assert!(!screen.contains("\u{1b}[2J"), "{screen:?}");
}

#[test]
fn a_content_that_changed_while_it_was_looked_at_is_not_decided_on() {
    let desk = Desk::new();
    let id = desk.item("Rotate", &["--submit"]);
    let digest = desk.digest(&id);
    let mut ben = Terminal::run(desk.command("ben", &["item", "act", &id, "approve"]));
    ben.shows("digest: ");
    person(&desk.server, "bob").must(&id, &json!({"action": "return", "comment": "no"}));
    let edit = person(&desk.server, "ana").call(&format!("PATCH /v1/items/{id}"), &[JSON], br#"{"title":"Other"}"#);
    assert_eq!(edit.status, 200);
    person(&desk.server, "ana").must(&id, &json!({"action": "submit"}));
    ben.types(eight(&digest));
    ben.shows("409 content_changed");
    assert_eq!(ben.ends().0, 1);
}

#[test]
fn who_leaves_or_mistypes_at_a_terminal_has_sent_nothing() {
    let desk = Desk::new();
    let id = desk.item("Rotate", &["--submit"]);
    let mut ben = Terminal::run(desk.command("ben", &["item", "act", &id, "approve"]));
    for _ in 0..3 {
        ben.shows("digest: ");
        ben.types("nonsense");
    }
    ben.shows("not confirmed; nothing was sent");
    assert_eq!(ben.ends().0, 1);
    let mut ben = Terminal::run(desk.command("ben", &["item", "act", &id, "reject"]));
    ben.shows("Comment: ");
    ben.types_the_end();
    ben.shows("nothing was sent");
    assert_eq!(ben.ends().0, 1);
    assert_eq!(desk.json("ben", &["item", "show", &id])["version"], 2);
    let mut plain = desk.command("ben", &["item", "act", &id, "approve"]);
    plain.env("NO_COLOR", "1");
    let mut ben = Terminal::run(plain);
    let page = ben.shows("digest: ");
    assert!(!page.contains('\u{1b}'), "{page:?}");
    ben.types_the_end();
    assert_eq!(ben.ends().0, 1);
}
