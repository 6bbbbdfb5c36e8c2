use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::process::Command;

use expect_test::{Expect, expect, expect_file};

use super::*;
use crate::samples;

fn card(message: &Message) -> Value {
    body(message)["attachments"][0]["content"].clone()
}

/// What each element shows; what is in a container is indented.
fn seen(message: &Message) -> String {
    let mut seen = Vec::new();
    for element in card(message)["body"].as_array().unwrap() {
        if let Some(items) = element["items"].as_array() {
            seen.push(format!("[{}]", element["style"].as_str().unwrap_or("default")));
            seen.extend(items.iter().map(|item| format!("    {}", words_of(item))));
        } else {
            seen.push(words_of(element));
        }
    }
    seen.join("\n") + "\n"
}

fn check(message: &Message, expected: &Expect) {
    expected.assert_eq(&seen(message));
}

fn words_of(element: &Value) -> String {
    match element["inlines"].as_array() {
        Some(runs) => runs.iter().map(|run| run["text"].as_str().unwrap()).collect(),
        None => element["text"].as_str().unwrap().to_owned(),
    }
}

#[test]
fn a_waiting_item_is_a_card_with_the_question_first() {
    let body = serde_json::to_string_pretty(&body(&samples::mentioning())).unwrap() + "\n";
    expect_file!["waiting.json"].assert_eq(&body);
}

#[test]
fn a_digest_shows_ten_items_and_how_many_more_there_are() {
    expect_file!["digest.txt"].assert_eq(&seen(&samples::digest()));
}

#[test]
fn a_reminder_says_how_much_time_is_left() {
    check(
        &samples::reminder(),
        &expect![[r#"
        Reminder: 36 hours left to approve
        [default]
            Rotate the payment keys
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            [Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)
        You decide in Pilot, not by replying to this message.
    "#]],
    );
}

#[test]
fn an_escalation_says_that_nobody_has_acted() {
    check(
        &samples::escalation(),
        &expect![[r#"
        URGENT · Nobody has acted yet: 12 hours left to approve or clear
        [attention]
            Rotate the payment keys
            An approver must approve: ben, cara or dan
            A security admin must clear: dora
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            [Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)
        You decide in Pilot, not by replying to this message.
    "#]],
    );
}

#[test]
fn an_end_says_how_it_ended() {
    check(
        &samples::end(),
        &expect![[r#"
        Ended: rejected
        [default]
            Rotate the payment keys
            Controlled operation · risk high · created by ana
            [Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)
        You decide in Pilot, not by replying to this message.
    "#]],
    );
}

#[test]
fn a_summary_counts_what_waits_and_gives_an_id_where_there_is_no_link() {
    check(
        &samples::summary(),
        &expect![[r#"
            Daily summary: 2 operations wait, 1 urgent
            [attention]
                Controlled operation
                URGENT · Reminder: 5 hours left to approve
                2 approvers must approve: ben, cara, dan or 4 others
                Until 20 Nov 2026, 10:00 CET
                Controlled operation · risk high · created by ana · 01890a5d-ac96-774b-bcce-b302099a8057
            [default]
                Close the old account
                2 approvers must approve: ben, cara, dan or 4 others
                Until 20 Nov 2026, 10:00 CET
                Controlled operation · risk high · created by ana
                [Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)
            [default]
                Everything that waits
                [Open in Pilot](https://pilot.example/waiting)
            You decide in Pilot, not by replying to this message.
        "#]],
    );
}

#[test]
fn only_an_address_is_mentioned() {
    for address in ["ben@example.com", "o'neil+x_y@a-b.example"] {
        assert!(is_address(address), "{address}");
    }
    for address in
        ["", "ben", "@example.com", "ben@", "ben@localhost", "a@b@c.example", "a b@c.example", "<a@b.example>"]
    {
        assert!(!is_address(address), "{address}");
    }
}

#[test]
fn nobody_is_mentioned_twice_and_no_text_stands_for_two_people() {
    let mut message = samples::digest();
    for line in &mut message.lines {
        let who = &mut line.tasks[0].who;
        *who = vec![samples::person("Ben", Some("ben@example.com")), samples::person("Ben", Some("b2@example.com"))];
    }
    let entities = &card(&message)["msteams"]["entities"];
    assert_eq!(entities.as_array().unwrap().len(), 1, "{entities}");
}

#[test]
fn nobodys_text_becomes_markdown_a_link_a_mention_or_a_date() {
    for message in samples::hostile() {
        assert_safe(&card(&message));
    }
}

fn assert_safe(value: &Value) {
    let text = value["text"].as_str().unwrap_or_default();
    match value["type"].as_str() {
        None | Some("AdaptiveCard" | "Container" | "RichTextBlock" | "mention") => {}
        Some("TextRun") => {
            assert!(!text.contains(['<', '>', '\n', '\r']) && !text.contains("{{") && !text.contains("&l"), "{text}");
            assert!(!text.chars().any(pilot_core::visible::is_hidden), "{text}");
            assert!(value.get("selectAction").is_none());
        }
        Some("TextBlock") => assert_ours(text),
        Some(other) => panic!("{other}: no other element is expected, and none that sends anything"),
    }
    let children =
        value.as_array().into_iter().flatten().chain(value.as_object().into_iter().flat_map(|map| map.values()));
    children.for_each(assert_safe);
}

/// A `TextBlock` is our own link, or mentions.
fn assert_ours(text: &str) {
    if let Some(link) = text.strip_prefix("[Open in Pilot](https://pilot.example/") {
        assert!(link.ends_with(')') && link.matches([')', '(', '[', ']', ' ', '<']).count() == 1, "{text}");
        return;
    }
    let mentions = text.strip_prefix("For <at>").and_then(|text| text.strip_suffix("</at>")).unwrap();
    for name in mentions.split("</at>, <at>") {
        assert!(name.chars().all(|character| character.is_alphanumeric() || " -.'".contains(character)), "{text}");
    }
}

#[test]
fn a_card_is_within_the_limit_and_says_how_many_items_did_not_fit() {
    for message in samples::hostile().into_iter().chain([samples::digest()]) {
        let body = body(&message);
        assert!(body.to_string().len() <= BYTES_MAX, "{}", body.to_string().len());
    }
    let mut long = samples::digest();
    for line in &mut long.lines {
        line.title = Some("字".repeat(500));
        line.tasks = vec![line.tasks[0].clone(); 4];
        line.tasks.iter_mut().flat_map(|task| &mut task.who).for_each(|person| person.name = "字".repeat(500));
    }
    let card = card(&long);
    let elements = card["body"].as_array().unwrap();
    assert_eq!(words_of(&elements[0]), "17 operations wait");
    let shown = elements.iter().filter(|element| element["items"].is_array()).count() - 1;
    let rest = words_of(&elements[shown + 1]["items"][0]);
    assert!(shown < 10, "{shown}");
    assert_eq!(rest, format!("{} more", 17 - shown));
}

/// What Microsoft's own library has to say against each card; `cargo xtask notices` installs it.
fn read_by_microsoft(cards: &[Value]) -> Vec<Value> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers");
    let installed = scripts.join("node_modules/adaptivecards");
    assert!(installed.exists(), "{} is missing: run `cargo xtask notices`, which installs it", installed.display());
    let mut input = tempfile::tempfile().unwrap();
    for card in cards {
        writeln!(input, "{card}").unwrap();
    }
    input.rewind().unwrap();
    let output = Command::new("node").arg(scripts.join("card.mjs")).stdin(input).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn microsofts_own_library_reads_every_card_and_loses_nothing() {
    use samples::{digest, end, escalation, hostile, mentioning, reminder, summary};
    let messages = [mentioning(), digest(), reminder(), escalation(), end(), summary()];
    let cards: Vec<_> = messages.iter().chain(&hostile()).map(card).collect();
    let read = read_by_microsoft(&cards);
    assert_eq!(read.len(), cards.len());
    for (card, read) in cards.iter().zip(&read) {
        assert_eq!(read["said"], json!([]), "{card}");
        assert_eq!((&read["actions"], &read["inputs"]), (&json!(0), &json!(0)), "{card}");
        assert_eq!(texts(&read["read"]), texts(card));
    }
    let broken = json!({ "type": "AdaptiveCard", "version": "1.4", "body": [{ "type": "Nothing" }] });
    assert_ne!(read_by_microsoft(&[broken])[0]["said"], json!([]), "it does object to what it does not know");
}

/// Every text that is shown, in order.
fn texts(value: &Value) -> Vec<&str> {
    let here = value["text"].as_str().filter(|_| value["type"] != "mention");
    let children = value.as_array().into_iter().flatten();
    let children = children.chain(value.as_object().into_iter().flat_map(|map| map.values()));
    here.into_iter().chain(children.flat_map(texts)).collect()
}
