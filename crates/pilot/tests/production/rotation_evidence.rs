//! `pilot rotation report` from the ledger: a rotation with its restarts, an expiry, revocations, and evidence of it all.

use std::fs;

use serde_json::{Value, json};

use crate::support::authority::{IDENTITY, MESH, RATE_LIMITS, ROLE_MAP, configure};
use crate::support::harness::{Finished, Installation, Server, TOKEN, bearer, digest, role_map};

const TEAM: [(&str, &str); 6] = [
    ("ana", "initiator"),
    ("ben", "approver"),
    ("cid", "approver"),
    ("dan", "executor"),
    ("sam", "security_admin"),
    ("ada", "auditor"),
];
const PERIOD: [&str; 4] = ["--from", "2020-01-01T00:00:00Z", "--to", "2100-01-01T00:00:00Z"];

fn token(actor: &str) -> String {
    if actor == "ana" { TOKEN.to_owned() } else { format!("the-token-of-{actor}-{}", "0123456789".repeat(3)) }
}

/// Everyone has a credential that lasts, but for cid, whose time is over.
fn team() -> Installation {
    let entry = |(actor, role): &(&str, &str)| {
        let end = if *actor == "cid" { "2021-01-01T00:00:00Z" } else { "2090-01-01T00:00:00Z" };
        json!({"credential_id": format!("{actor}-1"), "actor_id": actor, "roles": [role], "token_sha3_256": digest(token(actor).as_bytes()), "not_before": "2020-01-01T00:00:00Z", "expires_at": end})
    };
    let installation = Installation::bare();
    let credentials: Vec<_> = TEAM.iter().map(entry).collect();
    installation.write("credentials.json", &json!({"schema_version": 2, "credentials": credentials}).to_string());
    installation.write("role-map.json", &role_map(&TEAM));
    configure(&installation, "production", &[MESH, ROLE_MAP, RATE_LIMITS, IDENTITY]);
    installation
}

fn restart(server: Server, installation: &Installation) -> Server {
    server.stop().expect(0);
    installation.serve()
}

/// The whole of a rotation, and one end of each other kind.
fn rotated() -> (Installation, Server) {
    let installation = team();
    let server = installation.serve();
    assert_eq!(server.session(&token("ana")).status, 200);
    assert_eq!(server.session(&token("cid")).status, 401);
    let begin = ["rotation", "begin", "--actor", "ana", "--id", "ana-2", "--token-out", "ana.new"];
    installation.pilot(&begin).expect(0);
    let new = installation.read("ana.new").trim().to_owned();
    let server = restart(server, &installation);
    let verify = |server: &Server, token: &str| {
        installation.pilot_as(token, &["rotation", "verify", "--actor", "ana", "--url", &server.url()]).expect(0);
    };
    verify(&server, &new);
    installation.pilot(&["rotation", "finish", "--actor", "ana"]).expect(0);
    let server = restart(server, &installation);
    verify(&server, &token("ana"));
    let headers = [&bearer(&token("sam"))[..], "Content-Type: application/json", "Content-Length: 2"];
    let head = format!(
        "POST /v1/credentials/ben-1/revocation HTTP/1.1\r\nHost: pilot\r\n{}\r\n\r\n{{}}",
        headers.join("\r\n")
    );
    assert_eq!(server.send(head).status, 201);
    assert_eq!(server.get(&format!("/v1/session?t={}", token("dan")), &[]).status, 400);
    // What happens to credentials is written beside the requests; a stop writes the rest.
    let server = restart(server, &installation);
    (installation, server)
}

fn report(installation: &Installation, server: &Server, arguments: &[&str]) -> Finished {
    let asked = ["rotation", "report", "--url", &server.url()].map(str::to_owned);
    let asked: Vec<_> = asked.iter().map(String::as_str).chain(PERIOD).chain(arguments.iter().copied()).collect();
    installation.pilot_as(&token("ada"), &asked)
}

/// `WHO CREDENTIAL WHAT` of each row.
fn told(finished: &Finished) -> Vec<String> {
    let events = finished.json()["events"].as_array().unwrap().clone();
    let text = |event: &Value, member: &str| event[member].as_str().unwrap_or("-").to_owned();
    events
        .iter()
        .map(|event| ["actor_id", "credential_id", "what"].map(|member| text(event, member)).join(" "))
        .collect()
}

#[test]
fn a_rotation_is_told_from_verified_evidence_from_its_addition_to_the_refusal_of_the_old() {
    let (installation, server) = rotated();
    let of_ana = report(&installation, &server, &["--actor", "ana", "--output", "json"]).expect(0);
    let expected = ["added", "first_used"].map(|what| format!("ana ana-1 {what}"));
    let expected = expected.into_iter().chain(["added", "first_used"].map(|what| format!("ana ana-2 {what}")));
    let expected: Vec<_> = expected.chain(["removed", "refused"].map(|what| format!("ana ana-1 {what}"))).collect();
    assert_eq!(told(&of_ana), expected);
    let entries: Vec<_> =
        of_ana.json()["events"].as_array().unwrap().iter().map(|event| event["entry"].as_u64().unwrap()).collect();
    assert!(entries.is_sorted(), "{entries:?}");

    let table = report(&installation, &server, &["--actor", "ana"]).expect(0).stdout;
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()).collect();
    assert_eq!(rows[0], ["TIME", "ACTOR", "CREDENTIAL", "WHAT", "ENTRY"]);
    let what: Vec<_> = rows[1..7].iter().map(|row| row[3]).collect();
    assert_eq!(what[..2], ["added, valid until 2090-01-01T00:00:00.000000Z", "first used"]);
    assert_eq!(what[3..], ["first used", "removed", "refused because it was removed"]);
    assert!(table.contains("\nverified: entries 0 to "), "{table}");

    let all = told(&report(&installation, &server, &["--output", "json"]).expect(0));
    for event in [
        "cid cid-1 expired",
        "cid cid-1 refused",
        "ben ben-1 revoked",
        "dan - token_exposed",
        "dan dan-1 revoked",
        "sam sam-1 first_used",
    ] {
        assert_eq!(all.iter().filter(|told| *told == event).count(), 1, "{event}: {all:#?}");
    }
    let words = report(&installation, &server, &[]).expect(0).stdout;
    for said in
        ["revoked by sam", "revoked by the service, which saw its token in a URL", "refused because it had expired"]
    {
        assert!(words.contains(said), "{said:?} is missing in {words}");
    }
    // Neither a token nor a digest.
    for (actor, _) in TEAM {
        assert!(!words.contains(&token(actor)) && !words.contains(&digest(token(actor).as_bytes())), "{words}");
    }
}

#[test]
fn the_exported_evidence_tells_the_same_without_the_service_and_nothing_once_a_byte_of_it_is_changed() {
    let (installation, server) = rotated();
    let key = installation.pilot(&["log", "key", "--config", "pilot.toml"]).expect(0).stdout;
    let asked = report(&installation, &server, &["--bundle-out", "e.zip", "--key", key.trim(), "--output", "json"]);
    let asked = told(&asked.expect(0));
    report(&installation, &server, &["--bundle-out", "e.zip"]).expect(2).says(&["e.zip: already exists"]);
    server.stop().expect(0);
    installation.pilot(&["evidence", "verify", "e.zip", "--key", key.trim()]).expect(0);
    // Elsewhere there is no configuration, so the key is asked for.
    let elsewhere = Installation::bare();
    let bundle = fs::read(installation.path("e.zip")).unwrap();
    fs::write(elsewhere.path("e.zip"), &bundle).unwrap();
    let offline = ["rotation", "report", "--bundle", "e.zip", "--output", "json"];
    elsewhere.pilot(&offline).expect(2).says(&["the key to verify the evidence with is missing", "--key"]);
    let offline = [&offline[..], &["--key", key.trim()]].concat();
    assert_eq!(told(&elsewhere.pilot(&offline).expect(0)), asked);

    let named = bundle.windows(21).position(|window| window == b"credential.first_used").unwrap();
    let step = bundle.len() / 25;
    for at in (0..25).map(|number| number * step).chain([named]) {
        let mut changed = bundle.clone();
        changed[at] ^= 1;
        fs::write(elsewhere.path("e.zip"), &changed).unwrap();
        let refused = elsewhere.pilot(&offline).expect(1);
        assert_eq!(refused.stdout, "", "byte {at}");
        refused.says(&["the evidence does not hold, so nothing is reported from it"]);
    }
    // Another log's key verifies nothing of it.
    let stranger = Installation::with_ana();
    stranger.serve().stop().expect(0);
    let other = stranger.pilot(&["log", "key", "--config", "pilot.toml"]).expect(0).stdout;
    fs::write(elsewhere.path("e.zip"), &bundle).unwrap();
    elsewhere.pilot(&["rotation", "report", "--bundle", "e.zip", "--key", other.trim()]).expect(1);
}

#[test]
fn only_an_auditor_and_only_a_period_gets_a_report_and_wrong_usage_says_how() {
    let installation = team();
    let server = installation.serve();
    let url = server.url();
    let asked = [&["rotation", "report", "--url", &url][..], &PERIOD].concat();
    installation.pilot_as(TOKEN, &asked).expect(1).says(&["role"]);
    let nonsense = ["rotation", "report", "--url", &url, "--from", "yesterday", "--to", "today"];
    installation.pilot_as(&token("ada"), &nonsense).expect(1).says(&["from"]);
    let quiet = ["rotation", "report", "--url", &url, "--from", "1970-01-01T00:00:00Z", "--to", "1971-01-01T00:00:00Z"];
    let told = installation.pilot_as(&token("ada"), &quiet).expect(0).stdout;
    assert!(told.contains("nothing happened to credentials in this time"), "{told}");
    for wrong in [
        &["--from", "2020-01-01T00:00:00Z"][..],
        &["--key", "k"],
        &["--bundle-out", "x"],
        &["--bundle", "x", "--from", "a", "--to", "b"],
    ] {
        installation.pilot(&[&["rotation", "report"][..], wrong].concat()).expect(2);
    }
    installation.pilot(&["rotation", "report", "--bundle", "missing.zip"]).expect(3).says(&["missing.zip"]);
    // Without those flags it is the operator's own record.
    assert_eq!(installation.pilot(&["rotation", "report"]).expect(0).stdout, "no rotation is recorded\n");
}
