//! A machine whose clock is behind the ledger: time goes on all the same, and everyone is told the same time.

use std::sync::Arc;
use std::time::Duration;

use pilot_core::entry::Entry;
use pilot_core::entry::details::{Attempts, Details};
use pilot_core::time::Time;
use pilot_ledger::clock::Clock;
use pilot_store::postgres::{Access, Identity, Postgres};
use pilot_store::sqlite::Sqlite;
use pilot_store::{Record, Situation, Store, Subject, Write};
use serde_json::{Value, json};

use crate::api::timers::{leaves, led, quick};
use crate::support::harness::{Installation, Port, now};
use crate::support::team::{person, submitted};

const HOUR: Duration = Duration::from_hours(1);

/// The ledger gets an entry of an hour from now: as if the clock had been set back by an hour since.
fn set_back_by_an_hour(installation: &Installation) {
    installation.serve().stop().expect(0);
    add_refusals(installation, Clock::System.now().plus(HOUR), 1);
}

fn open(installation: &Installation, at: Time) -> Box<dyn Store> {
    let Some(url) = installation.database_url() else {
        return Box::new(Sqlite::open(&installation.path("data/pilot.db"), Arc::new(move || at)).unwrap());
    };
    let access = Access { url: url.to_owned(), ..Access::default() };
    let identity = Identity { name: "test".to_owned(), build: "test".to_owned() };
    Box::new(Postgres::open(&access, identity, Arc::new(move || at), Arc::new(|_| {})).unwrap())
}

/// Puts refused attempts into the ledger of a service that is not running.
pub fn add_refusals(installation: &Installation, at: Time, count: usize) {
    let store = open(installation, at);
    let refusal = |situation: &Situation<'_>| {
        let attempts =
            Attempts { code: "role_forbidden".to_owned(), count: 1, since: Some(situation.now), origins: Vec::new() };
        let details = Details::AccessRefused(attempts);
        Ok(Record::of(Entry::of_service(situation.index, situation.now, None, &details)))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut left = count;
    while left > 0 {
        let some = left.min(1_000);
        let handed_in: Vec<_> = (0..some).map(|_| store.settle(Write::new(Subject::Ledger, None, refusal))).collect();
        for pending in handed_in {
            runtime.block_on(pending).unwrap();
        }
        left -= some;
    }
}

fn time(value: &Value) -> Time {
    value.as_str().unwrap().parse().unwrap()
}

#[test]
fn deadlines_windows_and_actions_go_by_the_ledger_when_the_machine_is_an_hour_behind() {
    let installation = quick();
    set_back_by_an_hour(&installation);
    let (server, began) = (installation.serve(), Clock::System.now());
    let id = submitted(&server, "low");
    let item = person(&server, "ben").item(&id);
    assert!(time(&item["created_at"]) > began.plus(HOUR / 2), "the ledger's time does not go back: {item}");

    // What is listed can be done: the window begins now, which the machine's clock reaches in an hour only.
    person(&server, "ben").decides(&id, "approve");
    let at = time(&person(&server, "sol").item(&id)["updated_at"]);
    let digest = item["content_digest"].clone();
    let inputs = json!({"not_before": at, "not_after": at.plus(HOUR / 4)});
    person(&server, "sol").must(&id, &json!({"action": "clear", "content_digest": digest, "inputs": inputs}));
    assert_eq!(person(&server, "eli").item(&id)["actions"], json!(["start"]));
    let inbox = person(&server, "eli").get("/v1/items?waiting_for=me").json();
    assert_eq!(inbox["items"][0]["id"], json!(id), "{inbox}");
    assert_eq!(person(&server, "eli").decides(&id, "start").status, 201);

    // And what is over is over after its time, not an hour later.
    let watched = now();
    let id = led(&server, &[("ana", "submit")]);
    assert_eq!(leaves(&server, &id, "submitted")["state"], "expired");
    assert!(watched.elapsed() < Duration::from_secs(10), "a deadline of two seconds took {:?}", watched.elapsed());
    let stopped = server.stop().expect(0);
    assert_eq!(stopped.stderr.matches("behind the ledger").count(), 1, "{}", stopped.stderr);
    installation.pilot(&["log", "fsck", "--config", "pilot.toml"]).expect(0);
}

#[test]
fn how_far_the_machine_is_behind_is_a_figure_to_watch() {
    let installation = crate::support::team::team();
    let port = Port::reserve();
    let behind = |server: &crate::support::harness::Server| -> u64 {
        let mut wire = crate::support::wire::Wire::connect(port.address());
        wire.request("GET /metrics HTTP/1.1", &[]);
        let text = wire.response().unwrap().text();
        let line = text.lines().find(|line| line.starts_with("pilot_clock_behind_seconds "));
        let value = line.and_then(|line| line.split(' ').nth(1)).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(server.get("/healthz", &[]).status, 200);
        value.split('.').next().unwrap().parse().unwrap()
    };
    let ops = port.address().to_string();
    let serve = || installation.serve_with(&[], &[("PILOT_OPS__LISTEN", ops.as_str())]);
    let server = serve();
    assert_eq!(behind(&server), 0);
    assert!(!server.stop().expect(0).stderr.contains("behind the ledger"));
    set_back_by_an_hour(&installation);
    let server = serve();
    let seconds = behind(&server);
    assert!((3_500..=3_600).contains(&seconds), "{seconds}");
    server.wait_for_log("behind the ledger");
}
