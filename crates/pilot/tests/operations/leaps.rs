//! A wall clock that leaps ahead, under the real program: nothing ends by it, and nothing is written.

use serde_json::Value;

use crate::operations::machine::Machine;
use crate::support::harness::{Installation, PATIENCE, Port, Server, bearer, expiring_credential_file, now, role_map};
use crate::support::team::{TEAM, person, submitted, token};
use crate::support::wire::Wire;

const DAY: u64 = 86_400;

/// A team whose credentials expire in a month, in production.
pub fn installation() -> Installation {
    installation_with("")
}

fn installation_with(more: &str) -> Installation {
    let installation = Installation::bare();
    let identity = "[identity]\nmechanism = \"credential_file\"\n";
    let credentials = "[credentials]\nrole_map = \"role-map.json\"\n";
    installation.write("pilot.toml", &format!("listen = \"127.0.0.1:0\"\n{credentials}{identity}{more}"));
    installation.write("role-map.json", &role_map(&TEAM));
    let tokens: Vec<_> = TEAM.iter().map(|(name, _)| token(name)).collect();
    let entries: Vec<_> = TEAM.iter().zip(&tokens).map(|((name, role), token)| (*name, *role, &**token)).collect();
    let in_a_month = pilot_ledger::clock::Clock::System.now().plus(std::time::Duration::from_hours(30 * 24));
    installation.write("credentials.json", &expiring_credential_file(&entries, &in_a_month.to_string()));
    installation
}

pub fn events(server: &Server) -> Vec<Value> {
    person(server, "ada").get("/v1/events").json()["events"].as_array().unwrap().clone()
}

#[track_caller]
fn comes_to_be(what: &str, is_so: impl Fn() -> bool) {
    let begun = now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::yield_now();
    }
}

fn is_ready(server: &Server) -> bool {
    server.get("/readyz", &[]).status == 200
}

fn metric(ops: &Port, name: &str) -> String {
    let mut wire = Wire::connect(ops.address());
    wire.request("GET /metrics HTTP/1.1", &[]);
    let text = String::from_utf8(wire.response().unwrap().body).unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap_or_default();
    line.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn a_clock_200_days_ahead_ends_no_credential_and_no_item_and_the_service_goes_on_when_it_is_right() {
    let ops = Port::reserve();
    let installation = installation_with(&format!("[ops]\nlisten = \"{}\"\n", ops.address()));
    let machine = Machine::of(&installation);
    machine.clock_is_ahead(0);
    let server = machine.serve();
    let id = submitted(&server, "low");
    let before = events(&server).len();

    machine.clock_is_ahead(200 * DAY);
    comes_to_be("not ready", || !is_ready(&server));
    server.wait_for_log("has jumped");
    let readiness = server.get("/readyz", &[]);
    assert_eq!(readiness.verdict(), "503 unavailable");
    assert!(readiness.text().contains("clock has jumped"), "{}", readiness.text());
    let refused = person(&server, "ben").decides(&id, "approve");
    assert_eq!(refused.verdict(), "503 unavailable", "{}", refused.text());
    assert!(refused.text().contains("clock has jumped"), "{}", refused.text());
    assert_eq!(metric(&ops, "pilot_clock_doubted"), "1");
    for (name, _) in TEAM {
        assert_eq!(server.session(&token(name)).status, 200, "{name} reads on");
    }
    // Long enough for every timer to have looked: the refusals' is the slowest, with two seconds.
    let begun = now();
    comes_to_be("three seconds", || begun.elapsed().as_secs() >= 3);
    assert_eq!(person(&server, "ada").item(&id)["state"], "submitted");
    machine.clock_is_ahead(0);
    comes_to_be("ready", || is_ready(&server));
    server.wait_for_log("trusted again");
    assert_eq!(metric(&ops, "pilot_clock_doubted"), "0");
    assert_eq!(person(&server, "ben").decides(&id, "approve").status, 201);
    let after = events(&server);
    let types: Vec<_> = after.iter().skip(before).map(|event| event["type"].as_str().unwrap()).collect();
    assert!(!types.contains(&"credential.expired"), "{types:?}");
    let latest = after.iter().map(|event| event["at"].as_str().unwrap()).max().unwrap().to_owned();
    let soon = pilot_ledger::clock::Clock::System.now().plus(std::time::Duration::from_hours(1)).to_string();
    assert!(latest < soon, "{latest} is dated by the leap");
    server.stop().expect(0);
    installation.pilot(&["log", "fsck", "--config", "pilot.toml"]).expect(0);
}

#[test]
fn a_leap_while_the_service_is_away_is_noticed_when_it_starts_and_an_operator_can_accept_it() {
    let installation = installation();
    let machine = Machine::of(&installation);
    machine.clock_is_ahead(0);
    let server = machine.serve();
    let id = submitted(&server, "low");
    server.stop().expect(0);

    machine.clock_is_ahead(4 * DAY);
    let server = machine.serve();
    server.wait_for_log("has jumped");
    assert!(!is_ready(&server));
    assert_eq!(person(&server, "ada").item(&id)["state"], "submitted", "due after three days, and not by this clock");
    let finished =
        crate::support::harness::finish(machine.command(&["clock", "accept", "--config", "pilot.toml"]), None);
    assert!(finished.expect(0).stdout.contains("Accepted"));
    comes_to_be("ready", || is_ready(&server));
    server.wait_for_log("`olga` has accepted the machine's clock");
    comes_to_be("expired", || person(&server, "ada").item(&id)["state"] == "expired");
    let accepted: Vec<_> = events(&server).into_iter().filter(|event| event["type"] == "clock.accepted").collect();
    assert_eq!(accepted.len(), 1, "{accepted:?}");
    server.stop().expect(0);
    let finished =
        crate::support::harness::finish(machine.command(&["clock", "accept", "--config", "pilot.toml"]), None);
    assert!(finished.expect(0).stdout.contains("nothing to accept"));
    let server = machine.serve();
    assert!(is_ready(&server));
    assert_eq!(server.get("/v1/session", &[&bearer(&token("ana"))]).status, 200, "a month has not passed");
    server.stop().expect(0);
}
