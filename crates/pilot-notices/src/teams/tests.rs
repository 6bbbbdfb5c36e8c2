use expect_test::{Expect, expect};

use super::*;
use crate::samples;

fn card(message: &Message) -> Value {
    body(message)["attachments"][0]["content"].clone()
}

/// What each element shows; containers are indented.
fn check(message: &Message, expected: &Expect) {
    let mut seen = String::new();
    for element in card(message)["body"].as_array().unwrap() {
        match element["items"].as_array() {
            Some(items) => {
                seen += &format!("[{}]\n", element["style"].as_str().unwrap_or("default"));
                items.iter().for_each(|item| seen += &format!("    {}\n", words_of(item)));
            }
            None => seen += &format!("{}\n", words_of(element)),
        }
    }
    expected.assert_eq(&seen);
}

fn words_of(element: &Value) -> String {
    match element["inlines"].as_array() {
        Some(runs) => runs.iter().map(|run| run["text"].as_str().unwrap()).collect(),
        None => element["text"].as_str().unwrap().to_owned(),
    }
}

#[test]
fn a_waiting_item_is_a_card_with_the_question_first() {
    let body = serde_json::to_string_pretty(&body(&samples::mentioning())).unwrap();
    expect![[r#"
        {
          "attachments": [
            {
              "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "body": [
                  {
                    "inlines": [
                      {
                        "size": "Large",
                        "text": "Action needed: approve",
                        "type": "TextRun",
                        "weight": "Bolder"
                      }
                    ],
                    "spacing": "Small",
                    "type": "RichTextBlock"
                  },
                  {
                    "items": [
                      {
                        "inlines": [
                          {
                            "size": "Medium",
                            "text": "Rotate the payment keys",
                            "type": "TextRun",
                            "weight": "Bolder"
                          }
                        ],
                        "spacing": "Small",
                        "type": "RichTextBlock"
                      },
                      {
                        "inlines": [
                          {
                            "text": "2 approvers must approve",
                            "type": "TextRun"
                          },
                          {
                            "text": ": ",
                            "type": "TextRun"
                          },
                          {
                            "text": "ben",
                            "type": "TextRun",
                            "weight": "Bolder"
                          },
                          {
                            "text": ", ",
                            "type": "TextRun"
                          },
                          {
                            "text": "cara",
                            "type": "TextRun",
                            "weight": "Bolder"
                          },
                          {
                            "text": ", ",
                            "type": "TextRun"
                          },
                          {
                            "text": "dan_k",
                            "type": "TextRun",
                            "weight": "Bolder"
                          },
                          {
                            "text": " or 4 others",
                            "type": "TextRun"
                          }
                        ],
                        "spacing": "Small",
                        "type": "RichTextBlock"
                      },
                      {
                        "inlines": [
                          {
                            "text": "Until 20 Nov 2026, 10:00 CET",
                            "type": "TextRun",
                            "weight": "Bolder"
                          }
                        ],
                        "spacing": "Small",
                        "type": "RichTextBlock"
                      },
                      {
                        "inlines": [
                          {
                            "isSubtle": true,
                            "text": "Controlled operation · risk high · created by ana",
                            "type": "TextRun"
                          }
                        ],
                        "spacing": "Small",
                        "type": "RichTextBlock"
                      },
                      {
                        "spacing": "Small",
                        "text": "[Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)",
                        "type": "TextBlock",
                        "wrap": true
                      }
                    ],
                    "separator": true,
                    "spacing": "Medium",
                    "style": "default",
                    "type": "Container"
                  },
                  {
                    "text": "For <at>cara</at>",
                    "type": "TextBlock",
                    "wrap": true
                  },
                  {
                    "inlines": [
                      {
                        "isSubtle": true,
                        "size": "Small",
                        "text": "You decide in Pilot, not by replying to this message.",
                        "type": "TextRun"
                      }
                    ],
                    "spacing": "Small",
                    "type": "RichTextBlock"
                  }
                ],
                "fallbackText": "Action needed: approve",
                "msteams": {
                  "entities": [
                    {
                      "mentioned": {
                        "id": "cara@example.com",
                        "name": "cara"
                      },
                      "text": "<at>cara</at>",
                      "type": "mention"
                    }
                  ],
                  "width": "Full"
                },
                "type": "AdaptiveCard",
                "version": "1.4"
              },
              "contentType": "application/vnd.microsoft.card.adaptive",
              "contentUrl": null
            }
          ],
          "type": "message"
        }"#]].assert_eq(&body);
}

#[test]
fn a_digest_shows_ten_items_and_how_many_more_there_are() {
    check(&samples::digest(), &expect![[r#"
        17 operations wait
        [default]
            Rotate key 1
            Action needed: approve
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            [Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)
        [default]
            Rotate key 2
            Action needed: approve
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            [Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)
        [default]
            Rotate key 3
            Action needed: approve
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            [Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)
        [default]
            Rotate key 4
            Action needed: approve
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            [Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)
        [default]
            Rotate key 5
            Action needed: approve
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            [Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)
        [default]
            Rotate key 6
            Action needed: approve
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            [Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)
        [default]
            Rotate key 7
            Action needed: approve
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            [Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)
        [default]
            Rotate key 8
            Action needed: approve
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            [Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)
        [default]
            Rotate key 9
            Action needed: approve
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            [Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)
        [default]
            Rotate key 10
            Action needed: approve
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            [Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)
        [default]
            7 more
            [Open in Pilot](https://pilot.example/waiting)
        You decide in Pilot, not by replying to this message.
    "#]]);
}

#[test]
fn a_reminder_says_how_much_time_is_left() {
    check(&samples::reminder(), &expect![[r#"
        Reminder: 36 hours left to approve
        [default]
            Rotate the payment keys
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            [Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)
        You decide in Pilot, not by replying to this message.
    "#]]);
}

#[test]
fn an_escalation_says_that_nobody_has_acted() {
    check(&samples::escalation(), &expect![[r#"
        URGENT · Nobody has acted yet: 12 hours left to approve or clear
        [attention]
            Rotate the payment keys
            An approver must approve: ben, cara or dan
            A security admin must clear: dora
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            [Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)
        You decide in Pilot, not by replying to this message.
    "#]]);
}

#[test]
fn an_end_says_how_it_ended() {
    check(&samples::end(), &expect![[r#"
        Ended: rejected
        [default]
            Rotate the payment keys
            Controlled operation · risk high · created by ana
            [Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)
        You decide in Pilot, not by replying to this message.
    "#]]);
}

#[test]
fn a_summary_counts_what_waits_and_gives_an_id_where_there_is_no_link() {
    check(&samples::summary(), &expect![[r#"
        Daily summary: 2 operations wait, 1 urgent
        [attention]
            Controlled operation
            URGENT · Reminder: 5 hours left to approve
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana · 01890a5d-ac96-774b-bcce-b302099a8057
        [default]
            Close the old account
            Action needed: approve
            2 approvers must approve: ben, cara, dan or 4 others
            Until 20 Nov 2026, 10:00 CET
            Controlled operation · risk high · created by ana
            [Open in Pilot](https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057)
        [default]
            Everything that waits
            [Open in Pilot](https://pilot.example/waiting)
        You decide in Pilot, not by replying to this message.
    "#]]);
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
