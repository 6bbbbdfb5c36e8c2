//! Lists: filters, pages, and the inbox that shows an item to exactly those who can bring it on.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::thread;

use expect_test::expect;
use serde_json::{Value, json};

use crate::support::harness::Server;
use crate::support::team::{JSON, Person, TEAM, emergency, payload, person, submitted, team, token, with_times};

const ITEMS: usize = 450;
const WRITERS: usize = 8;

fn titles(answer: &Value) -> Vec<&str> {
    answer["items"].as_array().unwrap().iter().map(|item| item["title"].as_str().unwrap()).collect()
}

/// Follows the `Link` headers from `path` on, to the end.
fn pages(person: &mut Person, path: &str) -> Vec<Vec<String>> {
    let (mut path, mut pages) = (path.to_owned(), Vec::new());
    loop {
        let answer = person.get(&path);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let list = answer.json();
        pages.push(titles(&list).into_iter().map(str::to_owned).collect());
        match (list["next"].as_str(), answer.header("link")) {
            (None, None) => return pages,
            (Some(next), Some(link)) => {
                let target = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap();
                assert!(target.contains(&format!("cursor={next}")), "{link}");
                target.clone_into(&mut path);
            }
            other => panic!("`next` and `Link` disagree: {other:?}"),
        }
    }
}

#[test]
fn pages_of_450_items_show_each_once_newest_first_while_others_write() {
    let server = team().serve_with(&["--log-level", "warn"], &[]);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let mut person = person(&server, if writer % 2 == 0 { "ana" } else { "amy" });
            scope.spawn(move || {
                for number in (writer..ITEMS).step_by(WRITERS) {
                    let body = json!({"workflow": "controlled-operation", "title": format!("item {number}")});
                    assert_eq!(person.post("/v1/items", &body).status, 201);
                }
            });
        }
    });
    let mut ben = person(&server, "ben");
    for (query, per_page, all) in [
        ("", 50, ITEMS),
        ("?limit=200", 200, ITEMS),
        ("?limit=7&state=draft", 7, ITEMS),
        ("?limit=100&created_by=amy", 100, ITEMS / 2),
        ("?q=ITEM%204&limit=10", 10, 61),
    ] {
        let pages = pages(&mut ben, &format!("/v1/items{query}"));
        let seen: Vec<_> = pages.iter().flatten().collect();
        assert_eq!(seen.len(), all, "{query}");
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), all, "{query}: each once");
        assert!(pages.iter().rev().skip(1).all(|page| page.len() == per_page), "{query}: full pages but the last");
    }
    // However the parameter is written, the next page replaces it.
    let next = ben.get("/v1/items?limit=200").json()["next"].as_str().unwrap().to_owned();
    assert_eq!(pages(&mut ben, &format!("/v1/items?limit=100&%63ursor={next}")).len(), 3);
    // What is created while someone turns the pages does not shift them.
    let first = ben.get("/v1/items?limit=200");
    person(&server, "ana").creates("controlled-operation", &json!({}));
    let next = first.json()["next"].as_str().unwrap().to_owned();
    let second = ben.get(&format!("/v1/items?limit=200&cursor={next}")).json();
    let (first, second) = (first.json(), second);
    let overlap: Vec<_> = titles(&second).into_iter().filter(|title| titles(&first).contains(title)).collect();
    assert_eq!((titles(&second).len(), overlap), (200, vec![]));
    let listed: Vec<_> = first["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    let created = created(&mut ben);
    let newest_first = created[..ITEMS].iter().rev().take(200);
    assert!(newest_first.eq(listed), "newest first, as the ledger created them");
}

/// The ids of all items, in the order of the entries that created them.
fn created(person: &mut Person) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), String::new());
    loop {
        let page = person.get(&format!("/v1/events?limit=200{after}")).json();
        let events = page["events"].as_array().unwrap();
        if events.is_empty() {
            return ids;
        }
        let created = events.iter().filter(|event| event["type"] == "item.created");
        ids.extend(created.map(|event| event["item"].as_str().unwrap().to_owned()));
        after = format!("&after={}", page["next_after"]);
    }
}

#[test]
fn filters_narrow_and_add_up() {
    let server = team().serve();
    let (mut ana, mut amy) = (person(&server, "ana"), person(&server, "amy"));
    let create = |person: &mut Person, title: &str, workflow: &str| {
        let mut payload = emergency();
        // Only the titles speak of keys: payloads are searched too.
        (payload["purpose"], payload["rollback_plan"]) = ("p".into(), "r".into());
        let answer = person.post("/v1/items", &json!({"workflow": workflow, "title": title, "payload": payload}));
        answer.json()["id"].as_str().unwrap().to_owned()
    };
    let first = create(&mut ana, "Rotate the key", "controlled-operation");
    let second = create(&mut ana, "Restart the KEYserver", "emergency-operation");
    create(&mut amy, "Move the lake", "controlled-operation");
    ana.must(&second, &json!({"action": "submit"}));
    let by_id = format!("q={first}");
    for (query, expected) in [
        ("", vec!["Move the lake", "Restart the KEYserver", "Rotate the key"]),
        ("state=draft", vec!["Move the lake", "Rotate the key"]),
        ("state=submitted", vec!["Restart the KEYserver"]),
        ("state=Draft", vec![]),
        ("workflow=emergency-operation", vec!["Restart the KEYserver"]),
        ("created_by=amy", vec!["Move the lake"]),
        ("created_by=ben", vec![]),
        ("q=key", vec!["Restart the KEYserver", "Rotate the key"]),
        ("q=rotate+the", vec!["Rotate the key"]),
        ("q=rotate%20THE", vec!["Rotate the key"]),
        ("q=k%25y", vec![]),
        ("q=", vec!["Move the lake", "Restart the KEYserver", "Rotate the key"]),
        (&by_id, vec!["Rotate the key"]),
        ("q=key&state=draft", vec!["Rotate the key"]),
        ("q=key&state=draft&created_by=amy", vec![]),
        ("waiting_for=me&created_by=ana", vec!["Rotate the key"]),
    ] {
        let list = ana.get(&format!("/v1/items?{query}")).json();
        assert_eq!(titles(&list), expected, "{query}");
        for item in list["items"].as_array().unwrap() {
            let shown = ana.item(item["id"].as_str().unwrap());
            for (name, value) in item.as_object().unwrap() {
                assert_eq!(*value, shown[name], "a list shows an item as it is shown alone: {name}");
            }
        }
    }
}

/// Who has this item in the inbox, in the order of the team.
fn waited_for(server: &Server, id: &str) -> String {
    let has = |name: &str| {
        let inbox = person(server, name).get("/v1/items?waiting_for=me&limit=200").json();
        inbox["items"].as_array().unwrap().iter().any(|item| item["id"] == id)
    };
    let names: Vec<_> = TEAM.iter().map(|(name, _)| *name).filter(|name| has(name)).collect();
    if names.is_empty() { "nobody".to_owned() } else { names.join(" ") }
}

#[test]
fn an_inbox_holds_what_its_owner_can_bring_on_and_no_longer_when_it_is_done() {
    let server = team().serve();
    let mut seen = String::new();
    let id = person(&server, "ana").creates("controlled-operation", &payload("high"));
    let digest = person(&server, "ada").item(&id)["content_digest"].clone();
    let window = with_times(&json!({"not_after": "in an hour"}), &id);
    let _ = writeln!(seen, "draft: {}", waited_for(&server, &id));
    for (who, body) in [
        ("ana", json!({"action": "submit"})),
        ("ben", json!({"action": "approve", "content_digest": digest})),
        ("sol", json!({"action": "hold", "comment": "wait"})),
        ("sol", json!({"action": "release", "comment": "go on"})),
        ("ben", json!({"action": "return", "comment": "say more"})),
        ("ana", json!({"action": "submit"})),
        ("ben", json!({"action": "approve", "content_digest": digest})),
        ("bob", json!({"action": "approve", "content_digest": digest})),
        ("sol", json!({"action": "clear", "content_digest": digest, "inputs": window})),
        ("eli", json!({"action": "start", "content_digest": digest})),
        ("eli", json!({"action": "fail"})),
        ("eva", json!({"action": "roll_back"})),
        ("eva", json!({"action": "succeed"})),
        ("ben", json!({"action": "dispute", "comment": "no"})),
        ("sol", json!({"action": "reconcile", "comment": "yes", "inputs": {"outcome": "succeeded"}})),
        ("ben", json!({"action": "accept"})),
    ] {
        let moved = person(&server, who).must(&id, &body);
        let (action, to) = (body["action"].as_str().unwrap(), moved["to"].as_str().unwrap());
        let _ = writeln!(seen, "{who} {action}, {to}: {}", waited_for(&server, &id));
    }
    expect![[r#"
        draft: ana
        ana submit, submitted: ben bob bea
        ben approve, submitted: bob bea
        sol hold, submitted: sol sia
        sol release, submitted: bob bea
        ben return, returned: ana
        ana submit, submitted: ben bob bea
        ben approve, submitted: bob bea
        bob approve, approved: sol sia
        sol clear, cleared: eli eva
        eli start, executing: eli
        eli fail, failed: eli eva
        eva roll_back, rolling_back: eva
        eva succeed, rolled_back: ben bob bea
        ben dispute, indeterminate: ben bob bea sol sia
        sol reconcile, succeeded: ben bob bea
        ben accept, closed: nobody
    "#]]
    .assert_eq(&seen);
}

#[test]
fn a_window_that_has_not_begun_and_an_emergency_judged_by_oneself_wait_for_others() {
    let server = team().serve();
    let id = submitted(&server, "low");
    person(&server, "ben").decides(&id, "approve");
    let digest = person(&server, "ada").item(&id)["content_digest"].clone();
    let window = with_times(&json!({"not_before": "in an hour", "not_after": "in two hours"}), &id);
    person(&server, "sol").must(&id, &json!({"action": "clear", "content_digest": digest, "inputs": window}));
    assert_eq!(waited_for(&server, &id), "nobody");
    let id = person(&server, "ana").creates("emergency-operation", &emergency());
    let digest = person(&server, "ada").item(&id)["content_digest"].clone();
    let window = with_times(&json!({"not_after": "in an hour"}), &id);
    person(&server, "ana").must(&id, &json!({"action": "submit"}));
    assert_eq!(waited_for(&server, &id), "sol sia");
    person(&server, "sol").must(&id, &json!({"action": "clear", "content_digest": digest, "inputs": window}));
    assert_eq!(waited_for(&server, &id), "eli eva");
    person(&server, "eli").must(&id, &json!({"action": "start", "content_digest": digest}));
    assert_eq!(waited_for(&server, &id), "eli");
    person(&server, "eli").must(&id, &json!({"action": "fail"}));
    assert_eq!(waited_for(&server, &id), "ben bob bea eli eva");
    person(&server, "ben").must(&id, &json!({"action": "condemn", "comment": "no"}));
    assert_eq!(waited_for(&server, &id), "bob bea eli eva");
}

#[test]
fn an_id_in_upper_case_is_the_same_id_and_is_answered_in_lower_case() {
    let installation = team();
    let server = installation.serve();
    let id = submitted(&server, "low");
    let upper = id.to_uppercase();
    assert_ne!(upper, id, "an id of digits alone would show nothing");
    let mut ada = person(&server, "ada");
    assert_eq!(ada.get(&format!("/v1/items/{upper}")).json()["id"], json!(id));
    for part in ["transitions", "proof", "history"] {
        let [lower, upper] = [&id, &upper].map(|id| ada.get(&format!("/v1/items/{id}/{part}")));
        assert_eq!((upper.status, upper.json()), (200, lower.json()), "{part}");
    }
    let found = ada.get(&format!("/v1/items?q={upper}")).json();
    assert_eq!(found["items"][0]["id"], json!(id), "{found}");
    let export = ["evidence", "export", "--url", &server.url(), "--item", &upper, "--out", "upper.zip"];
    installation.pilot_as(&token("ada"), &export).expect(0);
    // A retry may write it differently: it is the same request.
    let keyed = |id: &str| {
        let line = format!("POST /v1/items/{id}/comments");
        person(&server, "ben").call(&line, &[JSON, "Idempotency-Key: k"], b"{\"text\": \"c\"}").json()
    };
    let first = keyed(&id);
    assert_eq!(first["item_id"], json!(id));
    assert_eq!(keyed(&upper), first);
    assert_eq!(person(&server, "ben").decides(&upper, "approve").json()["item_id"], json!(id));
}

/// Titles in order, from every page of a list.
fn whole(person: &mut Person, query: &str) -> Vec<String> {
    pages(person, &format!("/v1/items?{query}")).into_iter().flatten().collect()
}

#[test]
fn a_summary_is_the_item_without_its_content_and_says_how_many_there_are() {
    let server = team().serve();
    let mut ana = person(&server, "ana");
    let risks = [json!({"risk": "low"}), json!({"risk": "x".repeat(33)}), json!({"risk": 3}), json!({})];
    for (number, payload) in risks.iter().enumerate() {
        let body = json!({"workflow": "controlled-operation", "title": format!("item {number}"), "payload": payload});
        assert_eq!(ana.post("/v1/items", &body).status, if number == 2 { 422 } else { 201 });
    }
    let (full, summary) = (ana.get("/v1/items").json(), ana.get("/v1/items?view=summary").json());
    assert_eq!(full.get("total"), None);
    assert_eq!((summary["total"].as_u64(), summary["next"].is_null()), (Some(3), true));
    let risks: Vec<_> = summary["items"].as_array().unwrap().iter().map(|item| item["risk"].clone()).collect();
    assert_eq!(risks, [json!(null), json!(null), json!("low")]);
    for (item, summary) in full["items"].as_array().unwrap().iter().zip(summary["items"].as_array().unwrap()) {
        let (mut item, mut summary) = (item.clone(), summary.clone());
        for left_out in ["payload", "content_digest"] {
            item.as_object_mut().unwrap().remove(left_out).unwrap();
        }
        summary.as_object_mut().unwrap().remove("risk").unwrap();
        assert_eq!(item, summary);
    }
    for (query, total) in [
        ("limit=1", json!(3)),
        ("state=draft&limit=2", json!(3)),
        ("state=closed", json!(0)),
        ("risk=low", json!(1)),
        ("q=item&limit=2", json!(null)),
        ("q=item", json!(3)),
        ("waiting_for=me", json!(3)),
        ("waiting_for=me&limit=1", json!(null)),
        ("sort=title&limit=1", json!(3)),
        ("sort=title&q=item&limit=1", json!(3)),
    ] {
        assert_eq!(ana.get(&format!("/v1/items?view=summary&{query}")).json()["total"], total, "{query}");
    }
    for (query, fault) in [
        ("view=all", "must be one of summary, full"),
        ("sort=name", "must be one of created, updated, due, title"),
        ("limit=201", "must be a whole number from 1 to 200"),
        ("view=summary&limit=1001", "must be a whole number from 1 to 1000"),
        ("sort=due&cursor=AAAAAAAAAAA", "is not a cursor issued by this service"),
    ] {
        let refused = ana.get(&format!("/v1/items?{query}"));
        assert_eq!(refused.verdict(), "422 invalid_request", "{query}");
        assert!(refused.text().contains(fault), "{query}: {}", refused.text());
    }
}

#[test]
fn a_search_looks_into_payloads_creators_and_the_beginning_of_ids() {
    let server = team().serve();
    let (mut ana, mut amy) = (person(&server, "ana"), person(&server, "amy"));
    let create = |person: &mut Person, title: &str, payload: Value| {
        let answer =
            person.post("/v1/items", &json!({"workflow": "controlled-operation", "title": title, "payload": payload}));
        answer.json()["id"].as_str().unwrap().to_owned()
    };
    let first = create(&mut ana, "One", json!({"links": ["https://tickets.example/CHG-77"], "risk": "high"}));
    create(&mut amy, "Two", json!({"targets": ["host-500", "Straße"], "operation": {"port": 5432}, "risk": "low"}));
    for (query, expected) in [
        ("q=chg-77", vec!["One"]),
        ("q=HOST-500", vec!["Two"]),
        ("q=STRASSE", vec![]),
        ("q=stra%C3%9Fe", vec!["Two"]),
        ("q=5432", vec!["Two"]),
        ("q=amy", vec!["Two"]),
        ("q=targets", vec![]),
        ("q=o", vec!["Two", "One"]),
        ("q=o&risk=high", vec!["One"]),
        ("risk=low", vec!["Two"]),
        ("risk=lo", vec![]),
        (&format!("q={}", &first[..7]), vec![]),
        (&format!("q={}", &first[..35]), vec!["One"]),
        (&format!("q={}", first[..35].to_uppercase()), vec!["One"]),
        (&format!("q={}", &first[9..]), vec![]),
    ] {
        let found = ana.get(&format!("/v1/items?{query}")).json();
        assert_eq!(titles(&found), expected, "{query}");
    }
}

#[test]
fn a_sorted_list_continues_where_it_was_whatever_changes_meanwhile() {
    let server = team().serve();
    let (mut ana, mut ben) = (person(&server, "ana"), person(&server, "ben"));
    let mut ids = Vec::new();
    for number in 0..12 {
        let title = format!("{} {number:02}", ["delta", "Bravo", "charlie"][number % 3]);
        let body = json!({"workflow": "controlled-operation", "title": title, "payload": payload("low")});
        ids.push(ana.post("/v1/items", &body).json()["id"].as_str().unwrap().to_owned());
    }
    for place in [7, 3, 5] {
        ana.must(&ids[place], &json!({"action": "submit"}));
    }
    let numbers = |titles: Vec<String>| -> Vec<usize> {
        titles.iter().map(|title| title.rsplit(' ').next().unwrap().parse().unwrap()).collect()
    };
    for limit in [1, 5, 12, 200] {
        let sorted = |ben: &mut Person, sort: &str| numbers(whole(ben, &format!("limit={limit}&sort={sort}")));
        assert_eq!(sorted(&mut ben, "created"), [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(sorted(&mut ben, "updated"), [5, 3, 7, 11, 10, 9, 8, 6, 4, 2, 1, 0]);
        assert_eq!(sorted(&mut ben, "due"), [7, 3, 5, 0, 1, 2, 4, 6, 8, 9, 10, 11]);
        assert_eq!(sorted(&mut ben, "title"), [1, 4, 7, 10, 2, 5, 8, 11, 0, 3, 6, 9]);
        assert_eq!(sorted(&mut ben, "due&waiting_for=me"), [7, 3, 5]);
        assert_eq!(sorted(&mut ben, "title&q=BRAVO"), [1, 4, 7, 10]);
    }
    // What changes while someone turns the pages is not shown twice, and hides nothing else.
    let first = ben.get("/v1/items?sort=updated&limit=5");
    assert_eq!(numbers(titles(&first.json()).into_iter().map(str::to_owned).collect()), [5, 3, 7, 11, 10]);
    ana.must(&ids[11], &json!({"action": "submit"}));
    let next = first.json()["next"].as_str().unwrap().to_owned();
    assert_eq!(numbers(whole(&mut ben, &format!("sort=updated&limit=5&cursor={next}"))), [9, 8, 6, 4, 2, 1, 0]);
    let foreign = ben.get(&format!("/v1/items?sort=due&cursor={next}"));
    assert_eq!(foreign.verdict(), "422 invalid_request");
}
