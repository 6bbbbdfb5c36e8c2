use expect_test::{Expect, expect};

use super::*;
use crate::samples;

fn check(message: &Message, expected: &Expect) {
    let letter = letter(message);
    expected.assert_eq(&format!("Subject: {}\n\n{}", letter.subject, letter.text));
}

#[test]
fn a_waiting_item_is_in_the_subject() {
    check(
        &samples::waiting(),
        &expect![[r#"
        Subject: Waits for you: Rotate the payment keys

        Action needed: approve

        Rotate the payment keys
        2 approvers must approve: ben, cara, dan or 4 others
        Until 20 Nov 2026, 10:00 CET
        Controlled operation · risk high · created by ana
        Open in Pilot: https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057

        You decide in Pilot, not by replying to this message.
    "#]],
    );
}

#[test]
fn the_html_loads_nothing_and_has_its_style_with_it() {
    expect![[r#"
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width">
        <meta name="color-scheme" content="light dark">
        <meta name="supported-color-schemes" content="light dark">
        <title>Waits for you: Rotate the payment keys</title>
        </head>
        <body style="margin:0;padding:16px;font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;font-size:16px;line-height:1.45">
        <div style="max-width:600px">
        <h1 style="margin:0 0 16px;font-size:22px;line-height:1.25">Action needed: approve</h1>
        <div style="margin:0 0 16px;padding:2px 0 2px 14px;border-left:4px solid #3b82f6">
        <p dir="auto" style="margin:4px 0;text-align:left;font-size:18px;font-weight:bold">Rotate the payment keys</p>
        <p dir="auto" style="margin:4px 0;text-align:left;">2 approvers must approve: <b>ben</b>, <b>cara</b>, <b>dan_k</b> or 4 others</p>
        <p dir="auto" style="margin:4px 0;text-align:left;font-weight:bold">Until 20 Nov 2026, 10:00 CET</p>
        <p dir="auto" style="margin:4px 0;text-align:left;font-size:14px;opacity:0.75">Controlled operation · risk high · created by ana</p>
        <p dir="auto" style="margin:4px 0;text-align:left;margin-top:8px"><a href="https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057" style="font-weight:bold">Open in Pilot</a></p>
        </div>
        <p style="margin:24px 0 0;font-size:13px;opacity:0.7">You decide in Pilot, not by replying to this message.</p>
        </div>
        </body>
        </html>
    "#]].assert_eq(&letter(&samples::mentioning()).html);
}

#[test]
fn a_digest_shows_ten_items_and_how_many_more_there_are() {
    check(
        &samples::digest(),
        &expect![[r#"
            Subject: 17 operations wait for you

            17 operations wait for you

            Rotate key 1
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            Open in Pilot: https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057

            Rotate key 2
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            Open in Pilot: https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057

            Rotate key 3
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            Open in Pilot: https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057

            Rotate key 4
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            Open in Pilot: https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057

            Rotate key 5
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            Open in Pilot: https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057

            Rotate key 6
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            Open in Pilot: https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057

            Rotate key 7
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            Open in Pilot: https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057

            Rotate key 8
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            Open in Pilot: https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057

            Rotate key 9
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            Open in Pilot: https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057

            Rotate key 10
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            Open in Pilot: https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057

            7 more: https://pilot.example/waiting

            You decide in Pilot, not by replying to this message.
        "#]],
    );
}

#[test]
fn a_reminder_says_how_much_time_is_left() {
    check(
        &samples::reminder(),
        &expect![[r#"
        Subject: Reminder, 36 hours left: Rotate the payment keys

        Reminder: 36 hours left to approve

        Rotate the payment keys
        2 approvers must approve: ben, cara, dan or 4 others
        Until 20 Nov 2026, 10:00 CET
        Controlled operation · risk high · created by ana
        Open in Pilot: https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057

        You decide in Pilot, not by replying to this message.
    "#]],
    );
}

#[test]
fn an_escalation_says_that_nobody_has_acted() {
    check(
        &samples::escalation(),
        &expect![[r#"
        Subject: URGENT: Nobody has acted yet, 12 hours left: Rotate the payment keys

        URGENT · Nobody has acted yet: 12 hours left to approve or clear

        Rotate the payment keys
        An approver must approve: ben, cara or dan
        A security admin must clear: dora
        Until 20 Nov 2026, 10:00 CET
        Controlled operation · risk high · created by ana
        Open in Pilot: https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057

        You decide in Pilot, not by replying to this message.
    "#]],
    );
}

#[test]
fn an_end_says_how_it_ended() {
    check(
        &samples::end(),
        &expect![[r#"
        Subject: Ended, rejected: Rotate the payment keys

        Ended: rejected

        Rotate the payment keys
        Controlled operation · risk high · created by ana
        Open in Pilot: https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057

        You decide in Pilot, not by replying to this message.
    "#]],
    );
}

#[test]
fn a_summary_counts_what_waits_and_gives_an_id_where_there_is_no_link() {
    check(
        &samples::summary(),
        &expect![[r#"
            Subject: Daily summary: 2 operations wait for you, 1 urgent

            Daily summary: 2 operations wait for you, 1 urgent

            Controlled operation
            URGENT · Reminder: 5 hours left to approve
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana · 01890a5d-ac96-774b-bcce-b302099a8057

            Close the old account
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            Open in Pilot: https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057

            Everything that waits: https://pilot.example/waiting

            You decide in Pilot, not by replying to this message.
        "#]],
    );
}

#[test]
fn text_and_html_say_the_same() {
    let plain = [samples::waiting(), samples::digest(), samples::escalation(), samples::end(), samples::summary()];
    for message in plain.into_iter().chain(samples::hostile()) {
        let letter = letter(&message);
        let (_, body) = letter.html.split_once("<h1").unwrap();
        let seen = without_tags(body);
        for line in letter.text.lines().filter(|line| !line.is_empty()) {
            let line = line.split_once(": https://pilot.example/").map_or(line, |(before, _)| before);
            assert!(seen.contains(line), "{line}\n\n{seen}");
        }
    }
}

fn without_tags(html: &str) -> String {
    let text: String = html.split('<').filter_map(|piece| piece.split_once('>')).map(|(_, text)| text).collect();
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'");
    text.replace("&amp;", "&")
}

#[test]
fn nobodys_text_becomes_html_or_a_second_line() {
    let ours = ["!doctype", "html", "head", "meta", "title", "body", "div", "h1", "p", "b", "a"];
    for message in samples::hostile() {
        let letter = letter(&message);
        let hidden = |character: char| character != '\n' && pilot_core::visible::is_hidden(character);
        assert!(!letter.subject.contains('\n') && !letter.subject.contains(hidden), "{}", letter.subject);
        assert!(!letter.text.contains(hidden) && !letter.html.contains(hidden), "{}", letter.text);
        assert!((1..=SUBJECT_MAX).contains(&letter.subject.chars().count()), "{}", letter.subject);
        for tag in letter.html.split('<').skip(1) {
            let (tag, _) = tag.split_once('>').unwrap();
            let name = tag.trim_start_matches('/').split(' ').next().unwrap();
            assert!(ours.contains(&name), "{tag}");
            assert!(!tag.contains("src") && !tag.contains("url(") && !tag.contains(" on"), "{tag}");
            assert!(name != "a" || tag.starts_with('/') || tag.starts_with("a href=\"https://pilot.example/"), "{tag}");
        }
    }
}

#[test]
fn an_urgent_mail_says_so_first() {
    let mut message = samples::waiting();
    message.lines[0].is_urgent = true;
    assert_eq!(letter(&message).subject, "URGENT: Waits for you: Rotate the payment keys");
}
