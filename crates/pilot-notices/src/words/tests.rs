use expect_test::{Expect, expect};

use super::*;
use crate::samples::{about, digest, end, line, person, waiting};

/// The sentence about one action, for any workflow: the action, the role, how many are needed, who can, and how many others.
fn check(action: &str, role: Role, needed: u32, who: &[&str], others: usize, expected: &Expect) {
    let who = who.iter().map(|name| person(name, None)).collect();
    let task = Task { action: action.to_owned(), role, needed, who, others };
    let words = |part: &Part<'_>| match part {
        Part::Words(words) => words.clone(),
        Part::Person(person) => name(person),
    };
    expected.assert_eq(&sentence(&task).iter().map(words).collect::<String>());
}

#[test]
fn a_sentence_names_who_must_do_what() {
    check(
        "approve",
        Role::Approver,
        2,
        &["ben", "cara"],
        4,
        &expect!["2 approvers must approve: ben, cara or 4 others"],
    );
    check("approve", Role::Approver, 2, &["ben", "cara"], 0, &expect!["2 approvers must approve: ben and cara"]);
    check("approve", Role::Approver, 1, &["ben", "cara"], 0, &expect!["An approver must approve: ben or cara"]);
    check("clear", Role::SecurityAdmin, 1, &["dora"], 0, &expect!["A security admin must clear: dora"]);
    check("clear", Role::SecurityAdmin, 3, &["dora"], 1, &expect!["3 security admins must clear: dora or 1 other"]);
    check("mark_failed", Role::Executor, 1, &[], 0, &expect!["An executor must mark failed"]);
    check("ratify", Role::Auditor, 1, &[], 1, &expect!["An auditor must ratify: 1 person can"]);
    check("submit", Role::Initiator, 2, &[], 9, &expect!["2 initiators must submit: 9 people can"]);
    check(
        "approve",
        Role::Approver,
        1,
        &["a", "b", "c", "d", "e", "f", "g"],
        2,
        &expect!["An approver must approve: a, b, c, d, e or 4 others"],
    );
}

#[test]
fn a_headline_counts_what_waits_and_what_has_ended() {
    let head = |message: &Message| headline(message, Reader::Person);
    let both = about(vec![line("a", Why::Waits), end().lines.remove(0)]);
    let ends = about(vec![end().lines.remove(0), end().lines.remove(0)]);
    let one = Message { occasion: Occasion::Summary, ..waiting() };
    expect!["17 operations wait for you"].assert_eq(&head(&digest()));
    expect!["News about 2 operations"].assert_eq(&head(&both));
    expect!["2 operations have ended"].assert_eq(&head(&ends));
    expect!["Daily summary: 1 operation waits for you"].assert_eq(&head(&one));
    expect!["Daily summary: 1 operation waits"].assert_eq(&headline(&one, Reader::Room));
}

#[test]
fn a_question_works_for_any_workflow() {
    let asked_with = |why: Why, actions: &[&str]| {
        let mut line = line("a", why);
        let task = line.tasks.remove(0);
        line.tasks = actions.iter().map(|action| Task { action: (*action).to_owned(), ..task.clone() }).collect();
        asked(&line)
    };
    let left = || Why::Reminder { left: "36 hours".to_owned() };
    expect!["Action needed: sign off"].assert_eq(&asked_with(Why::Waits, &["sign_off"]));
    expect!["Action needed: approve, reject or clear"]
        .assert_eq(&asked_with(Why::Waits, &["approve", "reject", "clear"]));
    expect!["Action needed: a, b, c or something else"].assert_eq(&asked_with(Why::Waits, &["a", "b", "c", "d", "e"]));
    expect!["Action needed"].assert_eq(&asked_with(Why::Waits, &[]));
    expect!["Reminder: 36 hours left to start"].assert_eq(&asked_with(left(), &["start"]));
    expect!["Reminder: 36 hours left"].assert_eq(&asked_with(left(), &[]));
    expect!["Nobody has acted yet. Action needed: start"]
        .assert_eq(&asked_with(Why::Escalated { left: None }, &["start"]));
}

#[test]
fn a_long_text_is_cut_at_a_number_of_characters_and_hides_nothing() {
    assert_eq!(shown("  ab cd  ", 5), "ab cd");
    assert_eq!(shown("ab cdef", 4), "ab…");
    assert_eq!(shown("äöüßé", 4), "äöü…");
    assert_eq!(shown("a\u{202e}b\n", 20), "a⟨U+202E⟩b");
    assert_eq!(shown(&"\u{202e}".repeat(9_999), 10), "⟨U+202E⟩⟨…");
}

#[test]
fn only_an_address_that_ends_nowhere_else_is_a_link() {
    let long = format!("https://pilot.example/{}", "a".repeat(1_000));
    for text in ["https://pilot.example/items/1?a=b&c=d#e", "http://127.0.0.1:8080/"] {
        assert_eq!(link(Some(text)), Some(text));
    }
    for text in
        ["javascript:alert(1)", "https://a|b", "https://a>b", "https://a)b", "https://a b", "https://a\"b", &long]
    {
        assert_eq!(link(Some(text)), None, "{text}");
    }
}
