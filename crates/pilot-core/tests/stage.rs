//! A stage for scenarios: people, a clock that only the script moves, and one item.
//!
//! `ana proposes; ana submits; ben approves; wait 2h; sam clears for 4h` reads as it plays. A step may end in
//! `without comment`, `without digest`, `with old digest`, `at version N`, `for SPAN`, `from SPAN to SPAN`,
//! `with {json inputs}`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pilot_core::actor::Actor;
use pilot_core::decide::{
    ActionRequest, Caller, Content, EditRequest, IfMatch, NewItem, OpenItems, Request, actions_for, decide,
    decide_creation, due_at,
};
use pilot_core::document::ContentDigest;
use pilot_core::item::Item;
use pilot_core::refusal::Refusal;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::Definition;
use pilot_core::workflow::builtin::builtin;
use serde_json::{Value, json};

pub struct Stage {
    definition: Arc<Definition>,
    roles: BTreeMap<String, Role>,
    now: Time,
    item: Option<Item>,
    first_digest: Option<ContentDigest>,
    /// Machines, and who operates them.
    operators: BTreeMap<String, String>,
    open_items: OpenItems,
}

const CAST: [(&str, Role); 10] = [
    ("ana", Role::Initiator),
    ("ada", Role::Initiator),
    ("ben", Role::Approver),
    ("bea", Role::Approver),
    ("bob", Role::Approver),
    ("sam", Role::SecurityAdmin),
    ("sue", Role::SecurityAdmin),
    ("eve", Role::Executor),
    ("eli", Role::Executor),
    ("uma", Role::Auditor),
];

impl Stage {
    pub fn new() -> Stage {
        let [controlled, _] = builtin();
        Stage {
            definition: controlled,
            roles: CAST.into_iter().map(|(name, role)| (name.to_owned(), role)).collect(),
            now: "2026-11-15T09:00:00Z".parse().unwrap(),
            item: None,
            first_digest: None,
            operators: BTreeMap::new(),
            open_items: OpenItems::default(),
        }
    }

    /// Plays every step. All but the last must be accepted, unless they begin with `try`; the last one's verdict counts.
    pub fn play(script: &str) -> String {
        let mut stage = Stage::new();
        let mut verdict = String::new();
        let steps: Vec<&str> = script.split(';').map(str::trim).filter(|step| !step.is_empty()).collect();
        for (index, step) in steps.iter().enumerate() {
            let allowed_to_fail = step.starts_with("try ") || index + 1 == steps.len();
            verdict = match stage.step(step.trim_start_matches("try ")) {
                Ok(done) => done,
                Err(refusal) if allowed_to_fail => format!("refused {}: {refusal}", refusal.code()),
                Err(refusal) => panic!("step `{step}` was refused {}: {refusal}", refusal.code()),
            };
        }
        verdict
    }

    fn step(&mut self, step: &str) -> Result<String, Refusal> {
        let words: Vec<&str> = step.split_whitespace().collect();
        match words.as_slice() {
            ["wait", span] => {
                self.now = self.now.plus(span_of(span));
                Ok(format!("it is {}", self.now))
            }
            ["the", "clock", "goes", "back", span] => {
                let micros = i64::try_from(span_of(span).as_micros()).unwrap();
                self.now = Time::from_unix_micros(self.now.unix_micros() - micros);
                Ok(format!("it is {}", self.now))
            }
            ["time", "acts"] => self.transition(&Request::Timer, &Caller::Timer),
            ["the", "deadline"] => Ok(due_at(&self.definition, self.item())
                .map_or("no deadline".to_owned(), |due| format!("{} → {}", due.at, due.to))),
            ["the", "item"] => Ok(self.describe()),
            [name, "becomes", role] => {
                self.roles.insert((*name).to_owned(), role.parse().unwrap());
                Ok(format!("{name} is {role}"))
            }
            [machine, "is", "operated", "by", operator] => {
                self.operators.insert((*machine).to_owned(), (*operator).to_owned());
                Ok(format!("{machine} is operated by {operator}"))
            }
            [machine, "has", open, "of", max] => {
                let open_items = OpenItems { of_workflow: 0, in_all: open.parse().unwrap(), max: max.parse().ok() };
                self.open_items = open_items;
                Ok(format!("{machine} has {open}"))
            }
            [name, "may"] => {
                let may = actions_for(&self.definition, self.item(), &self.actor(name), self.now);
                Ok(if may.is_empty() { "nothing".to_owned() } else { may.join(", ") })
            }
            [name, "proposes", what @ ..] => self.propose(name, what),
            [name, "edits", change] => self.edit(name, change, None),
            [name, "edits", change, "at", "version", version] => {
                self.edit(name, change, version.parse().ok().map(IfMatch::one))
            }
            [name, verb @ ..] => self.act(name, verb, step),
            [] => panic!("an empty step"),
        }
    }

    fn propose(&mut self, name: &str, what: &[&str]) -> Result<String, Refusal> {
        let mut payload = json!({"purpose": "p", "operation": "o", "risk": "low", "rollback_plan": "r"});
        for word in what {
            match *word {
                "high" => payload["risk"] = json!("high"),
                "unfinished" => payload = json!({"purpose": "p"}),
                "malformed" => payload = json!({"purpose": 7, "links": "x"}),
                "emergency" => {
                    self.definition = builtin()[1].clone();
                    payload["incident"] = json!("INC-7");
                }
                "again" => self.open_items.of_workflow = usize::from(!self.item().is_terminal(&self.definition)),
                other => panic!("what is {other}?"),
            }
        }
        let content_digest = ContentDigest::of("t", &payload, "1");
        let id = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        let content = Content::judge(&self.definition, "t", &payload, content_digest.clone());
        let request = NewItem { id, content };
        let (transition, item) =
            decide_creation(&self.definition, &request, &self.actor(name), self.now, self.open_items)?;
        self.first_digest = Some(content_digest);
        self.item = Some(item);
        Ok(format!("→ {}", transition.to()))
    }

    fn edit(&mut self, name: &str, change: &str, if_match: Option<IfMatch>) -> Result<String, Refusal> {
        let (key, value) = change.split_once('=').unwrap();
        let value: Value = serde_json::from_str(value).unwrap_or(Value::String(value.to_owned()));
        let title = (key == "title").then(|| value.as_str().unwrap().to_owned());
        let payload = title.is_none().then(|| json!({ key: value }));
        let (new_title, new_payload) = EditRequest::edited(self.item(), title.as_deref(), payload.as_ref());
        let content_digest = ContentDigest::of(&new_title, &new_payload, &self.item().version.to_string());
        let content = Some(Content::judge(&self.definition, &new_title, &new_payload, content_digest));
        let made_from = self.item().content_digest.clone();
        let request = Request::Edit(EditRequest { content, made_from, if_match });
        let caller = Caller::Actor(self.actor(name));
        self.transition(&request, &caller)
    }

    fn act(&mut self, name: &str, verb: &[&str], step: &str) -> Result<String, Refusal> {
        let (action, rest) = self.action(verb);
        let mut request = ActionRequest {
            content_digest: Some(self.item().content_digest.to_string()),
            comment: Some("because".to_owned()),
            ..ActionRequest::default()
        };
        if action == "clear" {
            request.inputs = Some(json!({"not_after": self.now.plus(span_of("1h"))}));
        }
        match rest {
            [] => {}
            ["without", "comment"] => request.comment = None,
            ["without", "digest"] => request.content_digest = None,
            ["without", "inputs"] => request.inputs = None,
            ["with", "old", "digest"] => request.content_digest = self.first_digest.as_ref().map(ToString::to_string),
            ["with", "digest", text] => request.content_digest = Some((*text).to_owned()),
            ["at", "version", version] => request.if_match = version.parse().ok().map(IfMatch::one),
            ["for", span] => request.inputs = Some(json!({"not_after": self.now.plus(span_of(span))})),
            ["from", start, "to", end] => {
                let (start, end) = (self.now.plus(span_of(start)), self.now.plus(span_of(end)));
                request.inputs = Some(json!({"not_before": start, "not_after": end}));
            }
            ["with", ..] => request.inputs = Some(serde_json::from_str(step.split_once("with").unwrap().1).unwrap()),
            other => panic!("what is {other:?}?"),
        }
        request.action = action;
        let caller = Caller::Actor(self.actor(name));
        self.transition(&Request::Act(request), &caller)
    }

    /// "rolls back", "revokes approval", "retries": the action and the words behind it.
    fn action<'w>(&self, verb: &'w [&'w str]) -> (String, &'w [&'w str]) {
        let first =
            verb[0].strip_suffix("ies").map_or_else(|| verb[0].trim_end_matches('s').to_owned(), |y| format!("{y}y"));
        if let [_, second, rest @ ..] = verb {
            let joined = format!("{first}_{second}");
            if self.definition.action(&joined).is_some() {
                return (joined, rest);
            }
        }
        (first, &verb[1..])
    }

    fn transition(&mut self, request: &Request, caller: &Caller) -> Result<String, Refusal> {
        let before = self.item().clone();
        let transition = decide(&self.definition, &before, request, caller, self.now)?;
        let after = before.after(&transition);
        assert_eq!(after.version, before.version + 1);
        assert!(after.updated_at >= before.updated_at, "time ran backwards");
        let stored = serde_json::to_string(&after).unwrap();
        assert_eq!(serde_json::from_str::<Item>(&stored).unwrap(), after, "what is stored is not what is read");
        self.item = Some(after);
        Ok(format!("{} → {}", transition.from().unwrap(), transition.to()))
    }

    fn item(&self) -> &Item {
        self.item.as_ref().expect("nobody proposed an item yet")
    }

    fn actor(&self, name: &str) -> Actor {
        let operated_by = self.operators.get(name).map(|operator| operator.parse().unwrap());
        let role = *self.roles.get(name).expect("a name of the cast");
        Actor { operated_by, ..Actor::new(name.parse().unwrap(), role) }
    }

    fn describe(&self) -> String {
        let item = self.item();
        let votes = item.votes_view(&self.definition).map_or("no vote".to_owned(), |votes| {
            let by: Vec<_> = votes.by.iter().map(|id| id.as_str()).collect();
            format!("{} {}/{} by [{}]", votes.action, votes.have, votes.need, by.join(" "))
        });
        let waits: Vec<_> = item.waits_for(&self.definition).iter().map(|role| role.as_str()).collect();
        format!(
            "{} v{}{}, {votes}, window {}, lease {}, attempts {}, waits for [{}]",
            item.state,
            item.version,
            if item.held { " held" } else { "" },
            item.window.as_ref().map_or("none".to_owned(), |window| window.not_after.to_string()),
            item.lease.as_ref().map_or("none".to_owned(), |lease| lease.holder.to_string()),
            item.attempts,
            waits.join(" "),
        )
    }
}

fn span_of(text: &str) -> Duration {
    let (number, unit) = text.split_at(text.len() - 1);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        other => panic!("what is {other}?"),
    };
    Duration::from_secs(number.parse::<u64>().unwrap() * seconds)
}
