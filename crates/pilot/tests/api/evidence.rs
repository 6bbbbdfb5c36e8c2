//! Evidence as an auditor takes it away: exported from the real service, checked by the real verifier.

use std::io::{Read, Write};
use std::net::TcpStream;

use pilot_core::time::Time;
use serde_json::{Value, json};

use crate::support::harness::{
    Finished, Installation, Server, bearer, credential_file, digest, is_on_postgres, role_map,
};
use crate::support::team::{TEAM, cleared, payload, person, submitted, team, token};

fn export(installation: &Installation, server: &Server, arguments: &[&str]) -> Finished {
    let url = server.url();
    let arguments = [&["evidence", "export", "--url", &url, "--output", "json"], arguments].concat();
    installation.pilot_as(&token("ada"), &arguments)
}

fn verify(installation: &Installation, bundle: &str) -> Finished {
    let key = installation.pilot(&["log", "key", "--config", "pilot.toml"]).expect(0).stdout;
    installation.pilot(&["evidence", "verify", bundle, "--key", key.trim()])
}

/// A time between what happened so far and what happens next: that of the newest entry, and a microsecond more.
fn now(server: &Server) -> Time {
    let events = person(server, "ada").get("/v1/events?limit=200").json();
    let newest = events["events"].as_array().unwrap().last().unwrap()["at"].as_str().unwrap().to_owned();
    newest.parse().unwrap()
}

fn after(time: Time) -> String {
    Time::from_unix_micros(time.unix_micros() + 1).to_string()
}

fn with_role_map() -> Installation {
    let installation = team();
    installation.write("role-map.json", &role_map(&TEAM));
    let config = installation.read("pilot.toml") + "[credentials]\nrole_map = \"role-map.json\"\n";
    installation.write("pilot.toml", &config);
    installation
}

#[test]
fn the_evidence_of_an_item_is_taken_away_and_verified_without_the_service() {
    let installation = with_role_map();
    let server = installation.serve();
    let id = cleared(&server);
    person(&server, "eli").decides(&id, "start");
    person(&server, "ada").post(&format!("/v1/items/{id}/comments"), &json!({"text": "seen by the auditor"}));
    submitted(&server, "high");
    let exported = export(&installation, &server, &["--item", &id, "--out", "item.zip"]).expect(0).json();
    assert_eq!(exported["entries"], 7, "creation, four moves, a comment, and the start of the service");
    assert!(server.stop().code == 0);
    verify(&installation, "item.zip").expect(0);
    // Nothing is written over.
    installation.pilot_as(&token("ada"), &["evidence", "export", "--item", &id, "--out", "item.zip"]).expect(2);
}

#[test]
fn the_evidence_of_a_period_is_complete_and_brings_the_older_part_of_its_items_along() {
    let installation = with_role_map();
    let server = installation.serve();
    let (id, other) = (submitted(&server, "low"), submitted(&server, "low"));
    let from = after(now(&server));
    person(&server, "ben").decides(&id, "approve");
    let new = submitted(&server, "low");
    let to = after(now(&server));
    person(&server, "ben").decides(&other, "approve");
    person(&server, "ben").decides(&new, "approve");
    // A period between two creations, whose items are none of its business.
    let before = submitted(&server, "low");
    person(&server, "ana").creates("controlled-operation", &payload("low"));
    let quiet = after(now(&server));
    person(&server, "ben").must(&before, &json!({"action": "reject", "comment": "no"}));
    let end_of_quiet = after(now(&server));
    person(&server, "ana").creates("controlled-operation", &payload("low"));
    let exported = export(&installation, &server, &["--from", &from, "--to", &to, "--out", "period.zip"]).expect(0);
    // Three of the period; two older ones of its item; the start; the neighbours on both sides, one of them new.
    assert_eq!(exported.json()["entries"], 3 + 2 + 1 + 2);
    let whole = ["--from", "1970-01-01T00:00:00Z", "--to", "2100-01-01T00:00:00Z"];
    let all = export(&installation, &server, &[&whole[..], &["--out", "all.zip"]].concat()).expect(0).json();
    assert_eq!(all["entries"], 15);
    let quiet = ["--from", &quiet, "--to", &end_of_quiet, "--out", "quiet.zip"];
    assert_eq!(export(&installation, &server, &quiet).expect(0).json()["entries"], 1 + 2 + 2 + 1);
    let empty = ["--from", "1970-01-01T00:00:00Z", "--to", "1970-01-02T00:00:00Z", "--out", "empty.zip"];
    export(&installation, &server, &empty).expect(0);
    let bare = [&whole[..], &["--out", "bare.zip", "--without-documents"]].concat();
    export(&installation, &server, &bare).expect(0);
    server.stop().expect(0);
    for (bundle, code) in [("period.zip", 0), ("all.zip", 0), ("empty.zip", 0), ("bare.zip", 4), ("quiet.zip", 0)] {
        verify(&installation, bundle).expect(code);
    }
}

#[test]
fn evidence_is_for_auditors_and_asked_for_in_one_way() {
    let server = team().serve();
    let id = submitted(&server, "low");
    for name in ["ana", "ben", "sol", "eli"] {
        assert_eq!(person(&server, name).get(&format!("/v1/evidence?item={id}")).verdict(), "403 role_forbidden");
    }
    let mut ada = person(&server, "ada");
    for (query, verdict) in [
        ("", "422 invalid_request"),
        (&*format!("item={id}&from=2026-01-01T00:00:00Z"), "422 invalid_request"),
        ("from=2026-01-01T00:00:00Z", "422 invalid_request"),
        ("from=yesterday&to=today", "422 invalid_request"),
        ("from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "422 invalid_request"),
        (&*format!("item={id}&documents=some"), "422 invalid_request"),
        (&*format!("item={id}&actor=ana"), "422 invalid_request"),
        ("item=01890a5d-ac96-774b-bcce-b302099a8057", "404 not_found"),
        ("item=7", "404 not_found"),
    ] {
        assert_eq!(ada.get(&format!("/v1/evidence?{query}")).verdict(), verdict, "{query}");
    }
    let answer = server.request(&format!("HEAD /v1/evidence?item={id} HTTP/1.1"), &[&bearer(&token("ada"))]);
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/zip")));
    assert_eq!(answer.header("evidence-entries"), Some("3"));
    let disposition = format!("attachment; filename=\"evidence-{id}.zip\"");
    assert_eq!(answer.header("content-disposition"), Some(&*disposition));
}

#[test]
fn no_bundle_holds_a_token_or_the_digest_of_one() {
    let installation = with_role_map();
    let late = "late.hand-made-token-that-was-plain-text-before-it-was-a-token";
    let server = installation.serve();
    let id = submitted(&server, "low");
    person(&server, "ben").post(&format!("/v1/items/{id}/comments"), &json!({"text": format!("try {late} please")}));
    person(&server, "ben").post(&format!("/v1/items/{id}/comments"), &json!({"text": "kept"}));
    person(&server, "eli").decides(&id, "approve");
    server.stop().expect(0);
    // What was a remark becomes a credential.
    let mut people: Vec<(&str, &str, String)> = TEAM.iter().map(|(name, role)| (*name, *role, token(name))).collect();
    people.push(("ben", "approver", late.to_owned()));
    let entries: Vec<_> = people.iter().map(|(name, role, token)| (*name, *role, &**token)).collect();
    installation.write("credentials.json", &credential_file(&entries));
    let server = installation.serve();
    let whole = ["--from", "1970-01-01T00:00:00Z", "--to", "2100-01-01T00:00:00Z", "--out", "all.zip"];
    export(&installation, &server, &whole).expect(0);
    server.wait_for_log("was left out of an evidence bundle");
    server.stop().expect(0);
    let bundle = std::fs::read(installation.path("all.zip")).unwrap();
    let holds = |text: &str| bundle.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("kept") && holds(&payload("low")["purpose"].as_str().unwrap()[..8]), "the scan finds what is there");
    for (_, _, token) in &people {
        assert!(!holds(token) && !holds(&digest(token.as_bytes())) && !holds(&digest(token.as_bytes())[..16]));
    }
    verify(&installation, "all.zip").expect(4).says(&["documents were erased or left out"]);
}

#[test]
fn the_verifier_s_verdict_can_be_read_by_programs() {
    let installation = with_role_map();
    let server = installation.serve();
    let id = cleared(&server);
    export(&installation, &server, &["--item", &id, "--out", "item.zip"]).expect(0);
    server.stop().expect(0);
    let key = installation.pilot(&["log", "key", "--config", "pilot.toml"]).expect(0).stdout;
    let verdict: Value = installation
        .pilot(&["evidence", "verify", "item.zip", "--key", key.trim(), "--output", "json"])
        .expect(0)
        .json();
    assert!(verdict.is_object());
    let mut bundle = std::fs::read(installation.path("item.zip")).unwrap();
    let middle = bundle.len() / 2;
    bundle[middle] ^= 1;
    std::fs::write(installation.path("changed.zip"), bundle).unwrap();
    verify(&installation, "changed.zip").expect(1);
}

#[test]
fn what_people_wrote_can_be_erased_and_the_proof_of_what_happened_stands() {
    let installation = with_role_map();
    let server = installation.serve();
    let erase = |id: &str| {
        ["evidence", "erase", "--item", id, "--why", "request 12", "--config", "pilot.toml"].map(str::to_owned)
    };
    let run = |id: &str| installation.pilot(&erase(id).each_ref().map(String::as_str));
    let id = submitted(&server, "low");
    let other = submitted(&server, "low");
    let looked = json!({"content_digest": person(&server, "eli").item(&id)["content_digest"]});
    let look = |server: &Server| {
        let line = format!("PUT /v1/items/{id}/look");
        person(server, "eli").call(&line, &["Content-Type: application/json"], looked.to_string().as_bytes()).status
    };
    assert_eq!(look(&server), 204);
    person(&server, "ben").must(&id, &json!({"action": "reject", "comment": "because of Walter"}));
    if !is_on_postgres() {
        run(&id).expect(1).says(&["another process has this store open"]);
    }
    server.stop().expect(0);
    run(&other).expect(1).says(&["is still open"]);
    run("01890a5d-ac96-774b-bcce-b302099a8057").expect(1).says(&["there is no item"]);
    assert!(run(&id).expect(0).stdout.contains("2 documents"));
    assert!(run(&id).expect(0).stdout.contains("nothing left"));
    for file in installation.files().iter().filter(|file| file.starts_with(installation.path("data"))) {
        let bytes = std::fs::read(file).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"Walter"), "{}", file.display());
    }
    installation.pilot(&["log", "fsck", "--config", "pilot.toml"]).expect(0);
    let server = installation.serve();
    for seen in [person(&server, "eli").item(&id), {
        assert_eq!(look(&server), 204, "there is nothing left to look at");
        person(&server, "eli").item(&id)
    }] {
        assert_eq!((&seen["seen"], &seen["content_nonce"]), (&json!(null), &json!(null)));
    }
    let item = person(&server, "ana").item(&id);
    assert_eq!(
        (&item["title"], &item["payload"], &item["state"]),
        (&json!("(erased)"), &json!({}), &json!("rejected"))
    );
    let events = person(&server, "ada").get("/v1/events?limit=200").json();
    let told: Vec<_> =
        events["events"].as_array().unwrap().iter().filter(|event| event["type"] == "documents.erased").collect();
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0]["details"]["item"], &told[0]["details"]["why"]), (&json!(id), &json!("request 12")));
    export(&installation, &server, &["--item", &id, "--out", "item.zip"]).expect(0);
    server.stop().expect(0);
    let said = verify(&installation, "item.zip").expect(4).stdout;
    assert!(said.contains("missing: 2 erased, according to entry "), "{said}");
    for question in ["whether title and payload fit the definition (entry 1)", "whether the comment said anything"] {
        assert!(said.contains(&format!("not checked: {question}")), "{said}");
    }
    let key = installation.pilot(&["log", "key", "--config", "pilot.toml"]).expect(0).stdout;
    installation.pilot(&["evidence", "verify", "item.zip", "--key", key.trim(), "--allow-left-out"]).expect(0);
}

/// An item whose evidence is too much for what lies between the service and a reader who does not read.
fn large_item(server: &Server) -> String {
    let mut ana = person(server, "ana");
    let id = ana.creates("controlled-operation", &payload("low"));
    for number in 0..200 {
        let patch = json!({"payload": {"note": format!("{number} {}", "some words ".repeat(5_500))}});
        let answer = ana.call(
            &format!("PATCH /v1/items/{id}"),
            &["Content-Type: application/merge-patch+json"],
            patch.to_string().as_bytes(),
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    id
}

#[test]
fn an_actor_is_sent_one_bundle_at_a_time_and_a_reader_who_leaves_makes_room() {
    let installation = with_role_map();
    let server = installation.serve();
    let id = large_item(&server);
    // Reads the first words of the answer, and no more.
    let mut idle = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
    let credential = bearer(&token("ada"));
    write!(idle, "GET /v1/evidence?item={id} HTTP/1.1\r\nHost: pilot\r\n{credential}\r\n\r\n").unwrap();
    let mut begun = [0; 12];
    idle.read_exact(&mut begun).unwrap();
    assert_eq!(begun, *b"HTTP/1.1 200");
    let second = person(&server, "ada").get(&format!("/v1/evidence?item={id}"));
    assert_eq!((second.verdict().as_str(), second.header("retry-after")), ("503 unavailable", Some("5")));
    assert!(second.text().contains("at most 1 at a time"), "{}", second.text());
    // What there would be is told all the same, and others are not kept from their work.
    assert_eq!(person(&server, "ada").get("/v1/session").status, 200);
    drop(idle);
    let until = crate::support::harness::now() + crate::support::harness::PATIENCE;
    let head = format!("HEAD /v1/evidence?item={id} HTTP/1.1");
    while server.request(&head, &[&credential]).status == 503 {
        assert!(crate::support::harness::now() < until, "nobody reads any more, and the place is not given back");
    }
    // Whoever has received a bundle may ask for the next at once.
    for name in ["one.zip", "two.zip"] {
        export(&installation, &server, &["--item", &id, "--out", name]).expect(0);
    }
    server.stop().expect(0);
    verify(&installation, "one.zip").expect(0);
    let bundle = std::fs::read(installation.path("one.zip")).unwrap();
    assert!(bundle.len() > 8 * 1024 * 1024);
    assert!(!bundle.windows(11).any(|window| window == b"report.html"), "no report of so large a bundle");
}
