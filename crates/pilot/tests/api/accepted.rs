//! Whatever the service accepts can be exported, verified, checked and backed up.

use pilot_testing::Dice;
use serde_json::{Value, json};

use crate::support::harness::Installation;
use crate::support::team::{JSON, payload, person, team, token};

/// A small generator; the seed is printed, and gives the same content everywhere.
const NUMBERS: [&str; 12] = [
    "2.0",
    "-0.0",
    "1e3",
    "0.1",
    "4.9e-324",
    "9007199254740991",
    "-9007199254740991.0",
    "1e-7",
    "2.50",
    "123456789.125",
    "0",
    "7",
];
const TEXTS: [&str; 11] = [
    "plain",
    "",
    " ",
    "\\u202e\\u2066mirror\\u2069",
    "\\u200b\\u00ad\\ufeff",
    "\\ud83d\\ude00 \\uffff",
    "a\\u0001\\u001f\\u007f\\n\\t",
    "</script><img src=x onerror=alert(1)>",
    "\\\\\\\"/~0~1",
    "e\\u0301 \\u00e9 \\u212b",
    "-----BEGIN-----",
];

/// JSON as text, because numbers are to be sent as they are written here.
fn value(dice: &mut Dice, depth: usize) -> String {
    match dice.below(if depth == 0 { 4 } else { 6 }) {
        0 | 1 => (*dice.pick(&NUMBERS)).to_owned(),
        2 => format!("\"{}\"", dice.pick(&TEXTS)),
        3 => dice.pick(&["null", "true", "false", "[]", "{}"]).to_string(),
        4 => format!("[{}]", (0..dice.below(4)).map(|_| value(dice, depth - 1)).collect::<Vec<_>>().join(",")),
        _ => {
            let members =
                (0..dice.below(4)).map(|at| format!("\"{at}{}\":{}", dice.pick(&TEXTS), value(dice, depth - 1)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
    }
}

fn content(dice: &mut Dice) -> String {
    let risk = *dice.pick(&["low", "medium", "high"]);
    let Value::Object(members) = payload(risk) else { unreachable!() };
    let known = members.iter().map(|(name, value)| format!("\"{name}\":{value}"));
    let further = (0..dice.below(4)).map(|at| format!("\"further{at}\":{}", value(dice, 5)));
    format!("{{{}}}", known.chain(further).collect::<Vec<_>>().join(","))
}

/// Exports everything and holds it against the rules, the ledger's own check and a backup.
#[track_caller]
fn all_of_it_holds(installation: &Installation) {
    let server = installation.serve();
    let whole = ["--from", "1970-01-01T00:00:00Z", "--to", "2100-01-01T00:00:00Z", "--out", "all.zip"];
    let url = server.url();
    let export = [&["evidence", "export", "--url", &url], &whole[..]].concat();
    installation.pilot_as(&token("ada"), &export).expect(0);
    server.stop().expect(0);
    let key = installation.pilot(&["log", "key", "--config", "pilot.toml"]).expect(0).stdout;
    installation.pilot(&["evidence", "verify", "all.zip", "--key", key.trim()]).expect(0);
    installation.pilot(&["log", "fsck"]).expect(0);
    installation.pilot(&["backup", "--config", "pilot.toml", "--out", "kept"]).expect(0);
}

#[test]
fn everything_that_is_accepted_exports_verifies_and_passes_fsck_and_backup() {
    let seed = 20_261_116;
    println!("seed {seed}");
    let (mut dice, installation) = (Dice::new(seed), team());
    let server = installation.serve();
    let (mut ana, mut ben, mut accepted) = (person(&server, "ana"), person(&server, "ben"), 0);
    for number in 0..60 {
        let title = format!("{number} {}", dice.pick(&TEXTS));
        let body = format!(
            "{{\"workflow\":\"controlled-operation\",\"title\":\"{title}\",\"payload\":{}}}",
            content(&mut dice)
        );
        let created = ana.call("POST /v1/items", &[JSON], body.as_bytes());
        if created.status != 201 {
            assert_eq!(created.status, 422, "{body}: {}", created.text());
            continue;
        }
        accepted += 1;
        let id = created.json()["id"].as_str().unwrap().to_owned();
        for _ in 0..dice.below(3) {
            let patch = format!("{{\"payload\":{{\"further0\":{}}}}}", value(&mut dice, 4));
            let edited = ana.call(&format!("PATCH /v1/items/{id}"), &[JSON], patch.as_bytes());
            assert!([200, 422].contains(&edited.status), "{patch}: {}", edited.text());
        }
        let text = format!("{{\"text\":\"x{}\"}}", dice.pick(&TEXTS));
        let commented = ben.call(&format!("POST /v1/items/{id}/comments"), &[JSON], text.as_bytes());
        assert!([201, 422].contains(&commented.status), "{text}: {}", commented.text());
        ana.must(&id, &json!({"action": "submit"}));
        if dice.below(2) == 0 {
            assert_eq!(ben.decides(&id, "approve").status, 201);
        }
    }
    assert!(accepted > 30, "only {accepted} were accepted");
    server.stop().expect(0);
    all_of_it_holds(&installation);
}

#[test]
fn a_number_with_a_fraction_of_zero_needs_the_votes_of_the_whole_number() {
    let installation = team();
    let text = pilot_core::workflow::builtin::CONTROLLED_OPERATION;
    let start = text.find("quorum_if").unwrap();
    let end = start + text[start..].find('\n').unwrap();
    let rule = "quorum_if = { pointer = \"/level\", equals = 2, quorum = 2 }";
    let text = format!("{}{rule}{}", &text[..start], &text[end..]).replacen(
        "name = \"controlled-operation\"",
        "name = \"by-number\"",
        1,
    );
    let text = text.replacen("required = [\"purpose\"", "required = [\"level\", \"purpose\"", 1);
    let text = text + "\n[payload_schema.properties.level]\ntype = \"number\"\n";
    std::fs::create_dir(installation.path("workflows")).unwrap();
    installation.write("workflows/by-number.toml", &text);
    let config = installation.read("pilot.toml") + "[workflows]\ndir = \"workflows\"\n";
    installation.write("pilot.toml", &config);
    let server = installation.serve();
    let (mut ana, mut ben) = (person(&server, "ana"), person(&server, "ben"));
    let known = payload("low").to_string();
    let body = format!(
        "{{\"workflow\":\"by-number\",\"title\":\"t\",\"payload\":{},\"level\":2.0}}}}",
        &known[..known.len() - 1]
    );
    let created = ana.call("POST /v1/items", &[JSON], body.as_bytes());
    assert_eq!(created.status, 201, "{}", created.text());
    let id = created.json()["id"].as_str().unwrap().to_owned();
    ana.must(&id, &json!({"action": "submit"}));
    assert_eq!(ben.decides(&id, "approve").json()["to"], "submitted", "one of two");
    assert_eq!(person(&server, "bob").decides(&id, "approve").json()["to"], "approved");
    server.stop().expect(0);
    all_of_it_holds(&installation);
}
