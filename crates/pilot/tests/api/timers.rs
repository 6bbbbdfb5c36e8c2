//! Deadlines act by themselves, soon after they pass, also those that passed while the service was down.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use pilot_core::time::Time;
use serde_json::{Value, json};

use crate::support::harness::{Installation, PATIENCE, Server, now};
use crate::support::team::{payload, person, team, with_times};

const SPAN: Duration = Duration::from_secs(2);
/// The service promises one second; a machine that is busy with other tests is given another.
const LATE_MAX_MICROS: i64 = 2_000_000;

/// An installation with a workflow whose deadlines and leases are two seconds long.
pub fn quick() -> Installation {
    let built_in = include_str!("../../../../workflows/controlled-operation.toml");
    let quick = built_in
        .replace("name = \"controlled-operation\"", "name = \"quick-operation\"")
        .replace("after = \"72h\"", "after = \"2s\"")
        .replace("after = \"24h\"", "after = \"2s\"")
        .replace("after = \"7d\"", "after = \"2s\"")
        .replace("\"15m\"", "\"2s\"");
    let installation = team();
    std::fs::create_dir(installation.path("workflows")).unwrap();
    installation.write("workflows/quick.toml", &quick);
    installation.write("pilot.toml", "listen = \"127.0.0.1:0\"\n[workflows]\ndir = \"workflows\"\n");
    installation
}

fn micros(time: &Value) -> i64 {
    time.as_str().unwrap().parse::<Time>().unwrap().unix_micros()
}

/// A quick item, led through these actions.
pub fn led(server: &Server, actions: &[(&str, &str)]) -> String {
    let id = person(server, "ana").creates("quick-operation", &payload("low"));
    let digest = person(server, "ada").item(&id)["content_digest"].clone();
    for (who, action) in actions {
        let mut body = json!({"action": action, "content_digest": digest});
        if ["return", "hold"].contains(action) {
            body["comment"] = "why".into();
        }
        if *action == "clear" {
            body["inputs"] = with_times(&json!({"not_after": "in 3 seconds"}), &id);
        }
        person(server, who).must(&id, &body);
    }
    id
}

/// Looks at the item until it has left its state.
pub fn leaves(server: &Server, id: &str, state: &str) -> Value {
    let began = now();
    let mut ada = person(server, "ada");
    loop {
        let item = ada.item(id);
        if item["state"] != state {
            return item;
        }
        assert!(began.elapsed() < PATIENCE, "{state} never ends: {item}");
        thread::park_timeout(Duration::from_millis(20));
    }
}

#[test]
fn every_kind_of_deadline_acts_by_itself_also_on_a_held_item() {
    let installation = quick();
    let server = installation.serve();
    let to_cleared = [("ana", "submit"), ("ben", "approve"), ("sol", "clear")];
    let executing = [&to_cleared[..], &[("eli", "start")]].concat();
    let rolling_back = [&executing[..], &[("eli", "fail"), ("eli", "roll_back")]].concat();
    let cases = vec![
        (to_cleared[..1].to_vec(), "submitted", "expired"),
        (vec![("ana", "submit"), ("sol", "hold")], "submitted", "expired"),
        (to_cleared[..2].to_vec(), "approved", "expired"),
        (vec![("ana", "submit"), ("ben", "return")], "returned", "expired"),
        (to_cleared.to_vec(), "cleared", "expired"),
        ([&to_cleared[..], &[("sol", "hold")]].concat(), "cleared", "expired"),
        (executing.clone(), "executing", "indeterminate"),
        ([&executing[..], &[("ben", "hold")]].concat(), "executing", "indeterminate"),
        (rolling_back, "rolling_back", "indeterminate"),
    ];
    let items: Vec<_> = cases.iter().map(|(actions, from, to)| (led(&server, actions), from, to)).collect();
    let due: BTreeMap<_, _> =
        items.iter().map(|(id, ..)| (id.clone(), person(&server, "ada").item(id)["due_at"].clone())).collect();
    let mut latest = 0;
    for (id, from, to) in &items {
        let item = leaves(&server, id, from);
        assert_eq!(item["state"], **to, "{from}");
        assert_eq!((&item["lease"], item["waits_for"] == json!([])), (&Value::Null, **to == "expired"));
        let history = person(&server, "ada").get(&format!("/v1/items/{id}/transitions")).json();
        let last = history["transitions"].as_array().unwrap().last().unwrap().clone();
        assert_eq!((&last["action"], &last["from"], &last["to"]), (&json!("timer"), &json!(from), &json!(to)));
        assert_eq!((&last["actor_id"], &last["role"]), (&Value::Null, &Value::Null));
        let late = micros(&last["at"]) - micros(&due[id]);
        assert!((0..LATE_MAX_MICROS).contains(&late), "{from} was left {late} µs after its deadline");
        latest = latest.max(late);
    }
    println!("{} deadlines, the latest {} ms late", items.len(), latest / 1000);
    // An expired item is at its end, an indeterminate one waits for people.
    let (id, ..) = &items[0];
    assert_eq!(person(&server, "ben").decides(id, "approve").verdict(), "409 state_conflict");
    let (id, ..) = &items[6];
    assert_eq!(person(&server, "eli").acts(id, &json!({"action": "succeed"})).verdict(), "409 state_conflict");
    assert_eq!(person(&server, "eli").acts(id, &json!({"action": "heartbeat"})).verdict(), "409 state_conflict");
}

#[test]
fn a_heartbeat_keeps_a_lease_alive_beyond_its_first_end() {
    let installation = quick();
    let server = installation.serve();
    let id = led(&server, &[("ana", "submit"), ("ben", "approve"), ("sol", "clear"), ("eli", "start")]);
    let first = person(&server, "ada").item(&id)["lease"]["expires_at"].clone();
    let mut eli = person(&server, "eli");
    let mut beats = 0;
    loop {
        let beat = eli.acts(&id, &json!({"action": "heartbeat"}));
        assert_eq!(beat.status, 201, "{}", beat.text());
        beats += 1;
        if micros(&beat.json()["at"]) > micros(&first) {
            break;
        }
        thread::park_timeout(Duration::from_millis(100));
    }
    assert_eq!(person(&server, "ada").item(&id)["state"], "executing", "after {beats} heartbeats");
    assert_eq!(leaves(&server, &id, "executing")["state"], "indeterminate");
}

#[test]
fn what_became_due_while_the_service_was_down_happens_once_and_in_order() {
    let installation = quick();
    let server = installation.serve();
    let ids: Vec<_> = (0..8).map(|_| led(&server, &[("ana", "submit")])).collect();
    let due: Vec<_> = ids.iter().map(|id| micros(&person(&server, "ada").item(id)["due_at"])).collect();
    let last = now();
    server.stop().expect(0);
    // The deadlines pass while nobody is there to see them.
    while let Some(left) = (SPAN + Duration::from_millis(100)).checked_sub(last.elapsed()) {
        thread::park_timeout(left);
    }
    let server = installation.serve();
    for id in &ids {
        assert_eq!(leaves(&server, id, "submitted")["state"], "expired");
    }
    server.stop().expect(0);
    let server = installation.serve();
    let events = person(&server, "ada").get("/v1/events?limit=200").json();
    let timers = events["events"].as_array().unwrap().iter().filter(|event| event["action"] == "timer");
    let order: Vec<_> = timers.map(|event| event["item"].as_str().unwrap().to_owned()).collect();
    assert!(due.is_sorted(), "the items were submitted one after the other");
    assert_eq!(order, ids, "each once, the earliest deadline first");
}
