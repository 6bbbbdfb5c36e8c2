//! Several nodes on one ledger, as their users see them: any of them may be asked, and any of them may go.

use std::fs;
use std::time::Duration;

use pilot_core::time::Time;
use pilot_ledger::clock::Clock;
use pilot_testing::postgres::until;
use serde_json::{Value, json};

use crate::durability::client::{self, Acknowledged, Answered, Client, Work};
use crate::durability::ledger::Seen;
use crate::operations::machine::Machine;
use crate::operations::second_place::work;
use crate::operations::webhooks::receiver::Receiver;
use crate::operations::webhooks::{all_in_order, endpoint};
use crate::support::harness::{Installation, Server, expiring_credential_file, role_map};
use crate::support::team::{JSON, TEAM, person, submitted, token};

const HOUR: u64 = 3_600;

/// A ledger in a database, and the configuration of as many nodes as have a letter here.
fn installation(entries: &[(&str, &str, &str)]) -> Installation {
    let installation = Installation::with_database();
    let in_a_month = Clock::System.now().plus(Duration::from_hours(30 * 24));
    installation.write("credentials.json", &expiring_credential_file(entries, &in_a_month.to_string()));
    installation.write("role-map.json", &role_map(&entries.iter().map(|entry| (entry.0, entry.1)).collect::<Vec<_>>()));
    for node in ["a", "b"] {
        let text = format!(
            "listen = \"127.0.0.1:0\"\ndata_dir = \"data-{node}\"\n[node]\nname = \"{node}\"\n\
             [credentials]\nrole_map = \"role-map.json\"\n[identity]\nmechanism = \"credential_file\"\n"
        );
        installation.write(&format!("{node}.toml"), &text);
    }
    installation
}

fn team() -> Installation {
    let tokens: Vec<_> = TEAM.iter().map(|(name, _)| token(name)).collect();
    let entries: Vec<_> = TEAM.iter().zip(&tokens).map(|((name, role), token)| (*name, *role, &**token)).collect();
    installation(&entries)
}

fn start(installation: &Installation, node: &str) -> Server {
    let config = format!("{node}.toml");
    if node == "b" {
        prepare(installation);
    }
    installation.start(installation.command(&["serve", "--config", &config]))
}

/// Gives the second node the key, which is that of the log and not of a node.
fn prepare(installation: &Installation) {
    installation.make_private_directory("data-b");
    fs::copy(installation.path("data-a/log.key"), installation.path("data-b/log.key")).unwrap();
}

/// The last entry's index, at this node.
fn end(server: &Server) -> u64 {
    let events = person(server, "ada").call("GET /v1/events?limit=200", &[], b"").json();
    events["events"].as_array().unwrap().last().unwrap()["index"].as_u64().unwrap()
}

#[test]
fn what_one_node_records_the_other_shows_and_decides_on() {
    let installation = team();
    let (a, b) = (start(&installation, "a"), start(&installation, "b"));
    let id = submitted(&a, "low");
    person(&b, "ben").decides(&id, "approve");
    assert_eq!(person(&a, "ana").item(&id)["state"], "approved");
    let nodes = person(&a, "ada").call("GET /v1/nodes", &[], b"").json();
    let names: Vec<_> = nodes["nodes"].as_array().unwrap().iter().map(|node| &node["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    // The same request twice, at two nodes.
    let body = json!({"action": "revoke_approval", "comment": "One more look"}).to_string();
    let act = |server: &Server| {
        let path = format!("POST /v1/items/{id}/transitions");
        person(server, "ben").call(&path, &[JSON, "Idempotency-Key: once"], body.as_bytes())
    };
    let (first, again) = (act(&a), act(&b));
    assert_eq!((first.status, again.status), (201, 201), "{} {}", first.text(), again.text());
    assert_eq!(first.body, again.body);
    a.stop().expect(0);
    b.stop().expect(0);
}

#[test]
fn a_credential_revoked_at_one_node_is_refused_at_the_other_by_the_time_that_is_answered() {
    let installation = team();
    let (a, b) = (start(&installation, "a"), start(&installation, "b"));
    assert_eq!(b.session(&token("eli")).status, 200);
    let answer = person(&a, "sol").call("POST /v1/credentials/eli-1/revocation", &[JSON], b"{}");
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(b.session(&token("eli")).status, 401);
}

/// The name of the node that sends.
fn sender(server: &Server) -> Option<String> {
    let nodes = person(server, "ada").get("/v1/nodes").json();
    let sends = |node: &&Value| node["duties"].as_array().unwrap().iter().any(|duty| duty == "webhooks");
    nodes["nodes"].as_array().unwrap().iter().find(sends).map(|node| node["name"].as_str().unwrap().to_owned())
}

#[test]
fn one_node_sends_webhooks_at_a_time_and_when_it_is_killed_the_other_continues_and_leaves_nothing_out() {
    let (installation, receiver) = (team(), Receiver::start());
    let webhook = endpoint(&installation, "all", &receiver, "from = 0\nrestricted = true");
    for node in ["a", "b"] {
        let file = format!("{node}.toml");
        installation.write(&file, &format!("{}{webhook}", installation.read(&file)));
    }
    let mut servers = vec![("a", start(&installation, "a")), ("b", start(&installation, "b"))];
    work(&servers[0].1, 20);
    work(&servers[1].1, 20);
    let first = until("someone sends", || sender(&servers[0].1));
    receiver.until_accepted(end(&servers[0].1));
    let once = receiver.indices();
    assert_eq!(once, (0..once.len() as u64).collect::<Vec<_>>(), "each once, although two nodes run");
    let at = servers.iter().position(|(name, _)| *name == first).unwrap();
    drop(servers.remove(at));
    let (name, rest) = servers.remove(0);
    work(&rest, 20);
    let last = until("it is known", || Some(end(&rest)));
    receiver.until_accepted(last);
    assert_eq!(sender(&rest).as_deref(), Some(name));
    all_in_order(&receiver.arrived(), last + 1);
    // Someone asks the node that is left to send all of it again.
    let before = receiver.arrived().len();
    assert_eq!(person(&rest, "sol").post("/v1/webhooks/all/replay", &json!({ "from": 0 })).status, 200);
    receiver.until("all of it again", |arrived| {
        let again = &arrived[before.min(arrived.len())..];
        let begun = again.iter().position(|arrived| arrived.index() == 0);
        begun.is_some_and(|begun| again[begun..].iter().any(|arrived| arrived.index() == last))
    });
    // What was under way when they asked comes before it.
    let again = receiver.indices().split_off(before);
    let begun = again.iter().position(|index| *index == 0).unwrap();
    assert!(again[begun..].windows(2).all(|pair| pair[1] == pair[0] + 1), "{again:?}");
}

#[test]
fn a_feed_goes_on_at_another_node() {
    let installation = team();
    let (a, b) = (start(&installation, "a"), start(&installation, "b"));
    submitted(&a, "low");
    let last = end(&a);
    let id = submitted(&a, "low");
    // With the entries after the one that was seen last, and none of those before it.
    let path = format!("GET /v1/events?after={last}");
    let events = until("it has heard of the new item", || {
        let page = person(&b, "ada").call(&path, &[], b"").json();
        page["events"].as_array().unwrap().iter().any(|event| event["item"] == *id).then(|| page["events"].clone())
    });
    let indices = events.as_array().unwrap().iter().map(|event| event["index"].as_u64().unwrap());
    assert!(indices.eq(last + 1..last + 1 + events.as_array().unwrap().len() as u64), "{events}");
}

#[test]
fn nodes_whose_clocks_are_an_hour_apart_date_entries_by_the_database() {
    let installation = team();
    let a = start(&installation, "a");
    let machine = Machine::of(&installation);
    machine.clock_is_ahead(HOUR);
    prepare(&installation);
    let b = installation.start(machine.command(&["serve", "--config", "b.toml"]));
    let ids = [submitted(&a, "low"), submitted(&b, "low"), submitted(&a, "low")];
    let created = |id: &String| person(&b, "ana").item(id)["created_at"].as_str().unwrap().parse::<Time>().unwrap();
    let times: Vec<_> = ids.iter().map(created).collect();
    assert!(times.is_sorted(), "{times:?}");
    let limit = Clock::System.now().plus(Duration::from_secs(HOUR / 2));
    assert!(times.iter().all(|time| *time < limit), "an entry is dated by the clock that is ahead: {times:?}");
}

/// One request, asked again with the same key until this node has recorded it: on a busy machine it may say 503 first.
fn recorded_by(server: &Server, work: &mut Work, acknowledged: &mut Vec<Acknowledged>) {
    let mut client = Client::connect(server.address);
    until(&format!("{:?} to be recorded; {}", work.next, server.last_lines()), || {
        let is_done = settle(&mut client, work, acknowledged);
        if !is_done {
            client = Client::connect(server.address);
        }
        is_done.then_some(())
    });
}

/// What a writer was told, and what it could not find out.
fn settle(client: &mut Client, work: &mut Work, acknowledged: &mut Vec<Acknowledged>) -> bool {
    match client.ask(&work.next) {
        Answered::Done(done, body) => {
            work.advance(&done, &body);
            acknowledged.push(done);
            true
        }
        Answered::Unavailable | Answered::Unknown => false,
    }
}

#[test]
fn a_node_that_is_killed_takes_nothing_with_it_and_the_other_goes_on() {
    let tokens: Vec<_> = (0..client::WRITERS).map(client::writer_token).collect();
    let names: Vec<_> = (0..client::WRITERS).map(|number| format!("ini{number}")).collect();
    let mut entries = client::OVERSEERS.to_vec();
    entries.extend(names.iter().zip(&tokens).map(|(name, token)| (name.as_str(), "initiator", token.as_str())));
    let installation = installation(&entries);
    let mut a = Some(start(&installation, "a"));
    let b = start(&installation, "b");
    let (mut seen, mut acknowledged) = (Seen::default(), Vec::new());
    let mut work: Vec<_> = (0..client::WRITERS).map(|number| Work::new(number, &format!("w{number}"))).collect();
    for round in 0..5 {
        let killed = a.take().unwrap();
        let address = killed.address;
        let writers: Vec<_> = work
            .drain(..)
            .map(|mut work| {
                std::thread::spawn(move || {
                    let (mut client, mut acknowledged) = (Client::connect(address), Vec::new());
                    while settle(&mut client, &mut work, &mut acknowledged) {}
                    (work, acknowledged)
                })
            })
            .collect();
        // Others write at the other node, and go on when the first is gone.
        let mut other = Work::new(round, &format!("other{round}"));
        for _ in 0..20 {
            recorded_by(&b, &mut other, &mut acknowledged);
        }
        // Its last act is SIGKILL.
        drop(killed);
        for writer in writers {
            let (unfinished, told) = writer.join().unwrap();
            acknowledged.extend(told);
            work.push(unfinished);
        }
        // What was under way is asked for again, at the node that is left.
        for work in &mut work {
            recorded_by(&b, work, &mut acknowledged);
        }
        seen.read(&b);
        seen.holds(&acknowledged);
        a = Some(start(&installation, "a"));
    }
    let made = acknowledged.iter().filter(|done| done.version == 1).count();
    assert_eq!(seen.creations(), made, "each request was recorded once");
    b.stop().expect(0);
    a.unwrap().stop().expect(0);
    let finished = installation.pilot(&["log", "fsck", "--config", "a.toml"]).expect(0);
    assert!(finished.stdout.contains("everything is consistent"), "{finished:#?}");
}

#[test]
fn a_node_with_another_role_map_does_not_start_beside_one_that_runs() {
    let installation = team();
    let a = start(&installation, "a");
    let other = installation.read("role-map.json").replacen("Ina", "Ira", 1);
    installation.write("role-map.json", &other);
    prepare(&installation);
    let refused = installation.pilot(&["serve", "--config", "b.toml"]).expect(2);
    refused.says(&["--adopt"]);
    assert_eq!(a.session(&token("ada")).status, 200, "the one that runs goes on");
}

#[test]
fn a_node_with_another_permit_key_does_not_start_beside_one_that_runs() {
    let installation = team();
    for node in ["a", "b"] {
        let file = format!("{node}.toml");
        let permits = "[permits]\nissuer = \"https://pilot.example\"\naudiences = [\"vault\"]\n";
        let text = installation.read(&file) + permits;
        installation.write(&file, &text);
    }
    let a = start(&installation, "a");
    prepare(&installation);
    let refused = installation.pilot(&["serve", "--config", "b.toml"]).expect(2);
    refused.says(&["permit.key", "give this node the same files as the others"]);
    fs::copy(installation.path("data-a/permit.key"), installation.path("data-b/permit.key")).unwrap();
    let b = installation.start(installation.command(&["serve", "--config", "b.toml"]));
    let keys = |server: &Server| server.get("/.well-known/jwks.json", &[]).json();
    assert_eq!(keys(&a), keys(&b));
    b.stop().expect(0);
    a.stop().expect(0);
}
