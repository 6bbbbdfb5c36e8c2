//! A story in lines, `who action`, told to the service one after the other, and what the item looks like after each.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use expect_test::Expect;
use serde_json::{Value, json};

use crate::support::team::{JSON, Person, TEAM, emergency, payload, person, team, with_times};

/// A line is `who action`, then inputs as `name=value`, then a comment after a colon. `create` takes a workflow and a
/// risk. Whatever asks for a digest is sent the one the item has.
pub fn check(story: &str, expected: &Expect) {
    let installation = team();
    let server = installation.serve();
    let mut people: BTreeMap<_, _> = TEAM.iter().map(|(name, _)| (*name, person(&server, name))).collect();
    let (mut told, mut id) = (String::new(), String::new());
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (words, comment) = match line.split_once(':') {
            Some((words, comment)) => (words, Some(comment.trim())),
            None => (line, None),
        };
        let mut words = words.split_whitespace();
        let (who, action) = (words.next().unwrap(), words.next().unwrap());
        let rest: Vec<_> = words.collect();
        let before = if id.is_empty() { Value::Null } else { people.get_mut("ada").unwrap().item(&id) };
        let answer = match action {
            "create" => create(people.get_mut(who).unwrap(), rest[0], rest.get(1).copied()),
            "edit" => edit(people.get_mut(who).unwrap(), &id, rest[0]),
            _ => {
                let body = action_body(action, &rest, comment, &before, &id);
                people.get_mut(who).unwrap().acts(&id, &body)
            }
        };
        let verdict = answer.verdict();
        if action == "create" && answer.status == 201 {
            answer.json()["id"].as_str().unwrap().clone_into(&mut id);
        } else if answer.status == 201 {
            check_transition(&answer.json(), who, action, comment, &before);
        }
        let _ = writeln!(told, "{line}\n  {verdict}");
        if answer.status < 300 {
            tell(&mut people, &id, &mut told);
        } else if !id.is_empty() {
            assert_eq!(people.get_mut("ada").unwrap().item(&id), before, "a refusal moves nothing");
        }
    }
    expected.assert_eq(&told);
    assert_eq!(server.stop().code, 0);
}

fn create(who: &mut Person, workflow: &str, risk: Option<&str>) -> crate::support::wire::Response {
    let payload = match (workflow, risk) {
        ("emergency-operation", _) => emergency(),
        (_, Some(risk)) => payload(risk),
        _ => json!({}),
    };
    who.post("/v1/items", &json!({"workflow": workflow, "title": "Rotate the key", "payload": payload}))
}

fn edit(who: &mut Person, id: &str, change: &str) -> crate::support::wire::Response {
    let (name, value) = change.split_once('=').unwrap();
    let body = json!({"payload": {name: value}}).to_string();
    who.call(&format!("PATCH /v1/items/{id}"), &[JSON], body.as_bytes())
}

fn action_body(action: &str, rest: &[&str], comment: Option<&str>, before: &Value, id: &str) -> Value {
    let mut body = json!({"action": action});
    if ["approve", "clear", "start", "retry"].contains(&action) {
        body["content_digest"] = before["content_digest"].clone();
    }
    if let Some(comment) = comment {
        body["comment"] = comment.into();
    }
    let inputs: serde_json::Map<_, _> = rest
        .iter()
        .filter_map(|part| part.split_once('='))
        .map(|(name, value)| (name.to_owned(), Value::from(value.replace('_', " "))))
        .collect();
    if !inputs.is_empty() {
        body["inputs"] = with_times(&inputs.into(), id);
    }
    body
}

/// The transition says who did what, and nothing the caller could have made up.
fn check_transition(transition: &Value, who: &str, action: &str, comment: Option<&str>, before: &Value) {
    assert_eq!(transition["item_id"], before["id"]);
    assert_eq!(transition["action"], action);
    assert_eq!(transition["from"], before["state"]);
    assert_eq!(transition["actor_id"], who);
    assert_eq!(transition["role"], TEAM.iter().find(|(name, _)| *name == who).unwrap().1);
    assert_eq!(transition["version"].as_u64(), before["version"].as_u64().map(|version| version + 1));
    assert_eq!(transition["comment"], comment.map_or(Value::Null, Value::from));
    assert!(transition["entry"].as_u64().is_some(), "{transition}");
}

/// The item as everyone sees it, and what each may do now; people with the same choice stand together.
fn tell(people: &mut BTreeMap<&str, Person>, id: &str, told: &mut String) {
    let item = people.get_mut("ada").unwrap().item(id);
    let _ = write!(told, "  {} v{}", item["state"].as_str().unwrap(), item["version"]);
    if item["held"] == true {
        told.push_str(", held");
    }
    if let Some(votes) = item["votes"].as_object() {
        let by: Vec<_> = votes["by"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let _ = write!(told, ", {} of {} to {}", votes["have"], votes["need"], votes["action"].as_str().unwrap());
        let _ = write!(told, " [{}]", by.join(" "));
    }
    if !item["window"].is_null() {
        told.push_str(", window");
    }
    if let Some(lease) = item["lease"].as_object() {
        let _ = write!(told, ", lease of {}", lease["holder"].as_str().unwrap());
    }
    if item["attempts"] != 0 {
        let _ = write!(told, ", attempt {}", item["attempts"]);
    }
    let _ = writeln!(told, ", waits for [{}]", words(&item["waits_for"]));
    let mut choices: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, _) in TEAM {
        let item = people.get_mut(name).unwrap().item(id);
        let actions = words(&item["actions"]);
        match choices.iter_mut().find(|(known, _)| *known == actions) {
            Some((_, who)) => who.push(name),
            None => choices.push((actions, vec![name])),
        }
    }
    for (actions, who) in choices.iter().filter(|(actions, _)| !actions.is_empty()) {
        let _ = writeln!(told, "    {}: {actions}", who.join(" "));
    }
}

fn words(list: &Value) -> String {
    list.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect::<Vec<_>>().join(" ")
}
