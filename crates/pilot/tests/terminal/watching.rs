//! `pilot watch`: the ledger as it grows.

use std::io::{BufRead, BufReader};

use serde_json::Value;

use super::desk::Desk;
use crate::support::harness::Port;
use crate::support::team::team;

#[test]
fn every_entry_is_a_line_from_now_on_or_from_where_one_says() {
    let desk = Desk::new();
    let first = desk.item("One", &[]);
    let mut watch = desk.start("ben", &["watch"]);
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    desk.server.wait_for_log("list_events");
    let second = desk.item("Two", &["--submit"]);
    for (line, words) in [(lines.next(), "ana: create"), (lines.next(), "ana: submit, draft to submitted")] {
        let line = line.unwrap();
        assert!(line.contains(&second) && line.ends_with(words) && line.chars().count() <= 120, "{line}");
    }
    watch.kill().unwrap();
    watch.wait().unwrap();
    let mut all = desk.start("ben", &["watch", "--from-the-beginning", "--item", &first, "--output", "jsonl"]);
    let line = BufReader::new(all.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let entry: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((entry["item"].as_str(), entry["action"].as_str()), (Some(&*first), Some("create")));
    let index = entry["index"].as_u64().unwrap();
    all.kill().unwrap();
    all.wait().unwrap();
    let mut after = desk.start("ben", &["watch", "--after", &index.to_string()]);
    let line = BufReader::new(after.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    assert!(line.starts_with(&(index + 1).to_string()), "{line}");
    after.kill().unwrap();
    after.wait().unwrap();
}

#[test]
fn a_watch_ends_when_nobody_reads_and_fails_past_the_end_of_the_ledger() {
    let desk = Desk::new();
    let mut watch = desk.start("ben", &["watch"]);
    desk.server.wait_for_log("list_events");
    drop(watch.stdout.take());
    desk.item("One", &[]);
    assert_eq!(watch.wait().unwrap().code(), Some(0));
    desk.run("ben", &["watch", "--after", "1000000"]).expect(1).says(&["past the end of the ledger"]);
}

#[test]
fn a_watch_goes_on_after_a_restart_without_losing_or_repeating_an_entry() {
    let installation = team();
    let port = Port::reserve();
    installation.write("pilot.toml", &format!("listen = \"{}\"\n", port.address()));
    let desk = Desk { server: installation.serve(), installation };
    let mut watch = desk.start("ben", &["watch", "--output", "jsonl"]);
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    desk.server.wait_for_log("list_events");
    desk.item("One", &[]);
    let index = |line: String| serde_json::from_str::<Value>(&line).unwrap()["index"].as_u64().unwrap();
    let first = index(lines.next().unwrap());
    let Desk { installation, server } = desk;
    server.stop().expect(0);
    let desk = Desk { server: installation.serve(), installation };
    let two = desk.item("Two", &[]);
    let entries = desk.json("ben", &["item", "show", &two])["history"][0]["entry"].as_u64().unwrap();
    let mut seen = vec![first];
    while seen.last() != Some(&entries) {
        seen.push(index(lines.next().unwrap()));
    }
    assert!(seen.is_sorted_by(|one, other| one < other), "{seen:?}");
    watch.kill().unwrap();
    watch.wait().unwrap();
}
