use expect_test::{Expect, expect, expect_file};

use super::*;
use crate::samples;

/// The notification, and what each block shows.
fn seen(message: &Message) -> String {
    let body = body(message);
    let mut seen = vec![body["text"].as_str().unwrap().to_owned()];
    for block in body["blocks"].as_array().unwrap() {
        let text = block["text"]["text"].as_str().or(block["elements"][0]["text"].as_str()).unwrap_or("");
        seen.push(format!("[{}]", block["type"].as_str().unwrap()));
        seen.extend(text.lines().map(|line| format!("    {line}")));
    }
    seen.join("\n") + "\n"
}

fn check(message: &Message, expected: &Expect) {
    expected.assert_eq(&seen(message));
}

#[test]
fn a_waiting_item_is_a_header_a_title_what_to_do_and_facts() {
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
            *Reminder: 36 hours left to approve*
            • Rotate the payment keys · Until 20 Nov 2026, 10:00 CET · <https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057|Open in Pilot>
            2 approvers must approve: ben, cara, dan or 4 others
            [header]
                Reminder: 36 hours left to approve
            [section]
                Rotate the payment keys
            [section]
                2 approvers must approve: ben, cara, dan or 4 others
                *Until 20 Nov 2026, 10:00 CET*
                <https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057|Open in Pilot>
            [context]
                Controlled operation · risk high · created by ana
        "#]],
    );
}

#[test]
fn an_escalation_says_that_nobody_has_acted() {
    check(
        &samples::escalation(),
        &expect![[r#"
            *URGENT · Nobody has acted yet: 12 hours left to approve or clear*
            • Rotate the payment keys · Until 20 Nov 2026, 10:00 CET · <https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057|Open in Pilot>
            An approver must approve: ben, cara or dan
            A security admin must clear: dora
            [header]
                URGENT · Nobody has acted yet: 12 hours left to approve or clear
            [section]
                Rotate the payment keys
            [section]
                An approver must approve: ben, cara or dan
                A security admin must clear: dora
                *Until 20 Nov 2026, 10:00 CET*
                <https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057|Open in Pilot>
            [context]
                Controlled operation · risk high · created by ana
        "#]],
    );
}

#[test]
fn an_end_says_how_it_ended() {
    check(
        &samples::end(),
        &expect![[r#"
        *Ended: rejected*
        • Rotate the payment keys · <https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057|Open in Pilot>
        [header]
            Ended: rejected
        [section]
            Rotate the payment keys
        [section]
            <https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057|Open in Pilot>
        [context]
            Controlled operation · risk high · created by ana
    "#]],
    );
}

#[test]
fn a_summary_counts_what_waits_and_gives_an_id_where_there_is_no_link() {
    check(
        &samples::summary(),
        &expect![[r#"
            *Daily summary: 2 operations wait, 1 urgent*
            • Controlled operation · Until 20 Nov 2026, 10:00 CET · 01890a5d-ac96-774b-bcce-b302099a8057
            • Close the old account · Until 20 Nov 2026, 10:00 CET · <https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057|Open in Pilot>
            [header]
                Daily summary: 2 operations wait, 1 urgent
            [header]
                Controlled operation
            [section]
                *URGENT · Reminder: 5 hours left to approve*
                2 approvers must approve: ben, cara, dan or 4 others
                *Until 20 Nov 2026, 10:00 CET*
            [context]
                Controlled operation · risk high · created by ana · 01890a5d-ac96-774b-bcce-b302099a8057
            [divider]
            [header]
                Close the old account
            [section]
                2 approvers must approve: ben, cara, dan or 4 others
                *Until 20 Nov 2026, 10:00 CET*
                <https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057|Open in Pilot>
            [context]
                Controlled operation · risk high · created by ana
            [divider]
            [section]
                *Everything that waits*: <https://pilot.example/waiting|Open in Pilot>
        "#]],
    );
}

#[test]
fn only_a_member_id_is_mentioned() {
    for id in ["U012AB3CD", "W01", "U0BEN"] {
        assert!(is_member(id), "{id}");
    }
    for id in ["", "U", "U1", "u012AB3CD", "C012AB3CD", "U012 AB", "U012>", "!channel", "UÄÄÄ", &"U".repeat(22)] {
        assert!(!is_member(id), "{id}");
    }
}

#[test]
fn nobodys_text_becomes_formatting_a_link_a_mention_or_an_emoji() {
    for message in samples::hostile() {
        let body = body(&message);
        assert_harmless(body["text"].as_str().unwrap());
        for block in body["blocks"].as_array().unwrap() {
            let texts = block["elements"].as_array().cloned().unwrap_or_else(|| vec![block["text"].clone()]);
            for text in texts.iter().filter(|text| !text.is_null()) {
                let words = text["text"].as_str().unwrap();
                match text["type"].as_str().unwrap() {
                    "plain_text" => {
                        assert_eq!(text["emoji"], false);
                        assert_escaped(words);
                    }
                    "mrkdwn" => {
                        assert_eq!(text["verbatim"], true);
                        assert_harmless(words);
                    }
                    other => panic!("{other}"),
                }
            }
        }
    }
}

fn assert_escaped(text: &str) {
    let unescaped = text.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "");
    assert!(!unescaped.contains(['&', '<', '>', '\n']), "{text}");
    assert!(!text.chars().any(pilot_core::visible::is_hidden), "{text}");
}

/// Besides our own links, mentions and bold lines.
fn assert_harmless(text: &str) {
    for line in text.lines() {
        let mut line = line.replace("<@U0BEN>", "");
        while let Some((before, (link, after))) =
            line.split_once("<https://pilot.example/").and_then(|(before, rest)| Some((before, rest.split_once('>')?)))
        {
            assert!(link.ends_with("|Open in Pilot"), "{text}");
            line = format!("{before}{after}");
        }
        let ours = line.strip_prefix('*').and_then(|line| line.split_once('*'));
        let line = ours.map_or(line.clone(), |(bold, after)| format!("{bold}{after}"));
        assert_escaped(&line);
        assert!(!line.contains(['*', '~', '`', '@', '#', '[', ']', '|', '\\']), "{text}");
        assert!(!line.contains("://") && !line.contains("evil.example") && !line.contains(":fire:"), "{text}");
        assert!(!line.contains("_i") && !line.contains("__"), "{text}");
    }
}

#[test]
fn a_message_is_within_the_limits_and_has_nothing_to_press() {
    let allowed = [("header", HEADER_MAX), ("section", SECTION_MAX), ("context", SECTION_MAX), ("divider", 0)];
    for message in samples::hostile().into_iter().chain([samples::digest(), samples::summary()]) {
        let body = body(&message);
        assert!((1..=2_000).contains(&body["text"].as_str().unwrap().chars().count()));
        let blocks = body["blocks"].as_array().unwrap();
        assert!(blocks.len() <= 50, "{}", blocks.len());
        for block in blocks {
            let (kind, most) = allowed.iter().find(|(kind, _)| block["type"] == *kind).unwrap();
            let text = block["text"]["text"].as_str().or(block["elements"][0]["text"].as_str());
            assert!(*kind == "divider" || (1..=*most).contains(&text.unwrap().chars().count()), "{block}");
        }
    }
}

#[test]
fn a_name_with_an_underscore_and_a_time_stay_as_they_are() {
    assert_eq!(harmless("deploy_bot v1.5 at 10:00, note: ok"), "deploy_bot v1.5 at 10:00, note: ok");
    assert_eq!(harmless("_x_ a.example :x: R&D"), "＿x＿ a․example ∶x: R&amp;D");
}
