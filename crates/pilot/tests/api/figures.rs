//! Figures are what one would count by hand, however long the ledger is and whoever asks.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::harness::Server;
use crate::support::team::{payload, person, submitted, team};

const NO_DECISION: [&str; 1] = ["heartbeat"];

/// Every entry, read page by page.
fn entries(server: &Server) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), None::<u64>);
    loop {
        let from = after.map_or(String::new(), |after| format!("&after={after}"));
        let page = person(server, "ada").get(&format!("/v1/events?limit=200{from}")).json();
        let events = page["events"].as_array().unwrap().clone();
        if events.is_empty() {
            return all;
        }
        after = page["next_after"].as_u64();
        all.extend(events);
    }
}

fn counted(server: &Server) -> (u64, u64, BTreeMap<String, u64>) {
    let (mut decisions, mut created, mut states) = (0, 0, BTreeMap::<String, String>::new());
    for entry in entries(server) {
        let item = entry["item"].as_str().unwrap_or_default().to_owned();
        match entry["type"].as_str().unwrap() {
            "item.created" => created += 1,
            "item.transition" if entry["actor_id"].is_string() => {
                decisions += u64::from(!NO_DECISION.contains(&entry["action"].as_str().unwrap()));
            }
            _ => continue,
        }
        if let Some(to) = entry["to"].as_str() {
            states.insert(item, to.to_owned());
        }
    }
    let mut open = BTreeMap::new();
    for state in states.into_values().filter(|state| !["rejected", "withdrawn", "closed"].contains(&state.as_str())) {
        *open.entry(state).or_default() += 1;
    }
    (decisions, created, open)
}

fn figures(server: &Server, name: &str) -> Value {
    person(server, name).get("/v1/figures?days=2").json()
}

#[test]
fn figures_are_those_of_the_whole_ledger_and_follow_it() {
    let server = team().serve_with(&["--log-level", "warn"], &[]);
    for round in 0..3 {
        for number in 0..120 {
            let id = submitted(&server, ["low", "high"][number % 2]);
            match number % 4 {
                0 => drop(person(&server, "ben").decides(&id, "approve")),
                1 => drop(person(&server, "ben").must(&id, &json!({"action": "reject", "comment": "no"}))),
                2 => drop(person(&server, "ana").must(&id, &json!({"action": "withdraw"}))),
                _ => {}
            }
        }
        let body = json!({"workflow": "controlled-operation", "title": "t", "payload": payload("low")});
        assert_eq!(person(&server, "ben").post("/v1/items", &body).status, 403);
        let shown = figures(&server, "ada");
        let (decisions, created, open) = counted(&server);
        let sum = |name: &str| -> u64 {
            shown["days"].as_array().unwrap().iter().map(|day| day[name].as_u64().unwrap()).sum()
        };
        assert_eq!((sum("decisions"), sum("created")), (decisions, created), "round {round}");
        assert_eq!(shown["open"], json!(open), "round {round}");
        let by_age: u64 = shown["open_by_age"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(by_age, open.values().sum::<u64>());
        // Half of those that were submitted were decided on by someone else: approved or rejected.
        assert_eq!(shown["time_to_decide"]["count"], 60 * (round + 1));
    }
}

#[test]
fn refusals_are_shown_to_those_who_may_see_them_and_days_are_bounded() {
    let server = team().serve_with(&["--log-level", "warn"], &[]);
    assert_eq!(figures(&server, "ana")["refusals"], Value::Null);
    assert_eq!(figures(&server, "ana")["days"][0]["refused"], Value::Null);
    assert!(figures(&server, "sol")["refusals"].is_object());
    assert_eq!(figures(&server, "ada")["days"].as_array().unwrap().len(), 2);
    for wrong in ["0", "91", "x", "-1"] {
        assert_eq!(person(&server, "ada").get(&format!("/v1/figures?days={wrong}")).status, 422, "{wrong}");
    }
}
