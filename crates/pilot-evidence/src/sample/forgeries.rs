//! Ledgers that are signed and against the rules.

use std::collections::BTreeMap;
use std::time::Duration;

use pilot_core::actor::Actor;
use pilot_core::document::{ContentDigest, Document};
use pilot_core::entry::Entry;
use pilot_core::item::ItemId;
use pilot_core::role::Role;
use pilot_core::workflow::builtin::CONTROLLED_OPERATION;
use serde_json::{Value, json};

use super::{CAST, Choose, Ledger, actor, as_role, emergency_payload, payload, role_map};

pub const MINUTE: u64 = 60;
pub const HOUR: u64 = 3_600;
pub const DAY: u64 = 24 * HOUR;

/// An operation, and what was forced upon its history at the end.
#[derive(Clone)]
#[must_use]
pub struct Forgery {
    pub ledger: Ledger,
    pub id: ItemId,
}

impl Forgery {
    pub fn new(risk: &str) -> Forgery {
        let mut ledger = Ledger::default();
        let cast = [&CAST[..], &[("eva", Role::Executor)]].concat();
        ledger.start(Some(&role_map(&cast)));
        let id = ledger.create("controlled-operation", &actor("ana"), "Rotate", payload(risk)).unwrap();
        let mut forgery = Forgery { ledger, id };
        forgery.does("ana", "submit");
        forgery
    }

    pub fn emergency() -> Forgery {
        let mut ledger = Ledger::default();
        let id = ledger.create("emergency-operation", &actor("ana"), "Stop it", emergency_payload()).unwrap();
        let forgery = Forgery { ledger, id };
        forgery.all(&[("ana", "submit"), ("sam", "clear"), ("eve", "start"), ("eve", "succeed")])
    }

    pub fn does(&mut self, who: &str, action: &str) {
        let has_comment = ["revoke_approval", "hold", "release"].contains(&action);
        let comment = if has_comment { "A reason" } else { "" };
        let is_emergency = *self.ledger.items[&self.id].workflow.name == *"emergency-operation";
        let length = if is_emergency { 3 * HOUR } else { 20 * DAY };
        let not_after = self.ledger.now.plus(Duration::from_secs(length));
        let inputs = if action == "clear" { json!({"not_after": not_after}) } else { Value::Null };
        self.ledger.act(&self.id, &actor(who), action, comment, inputs).unwrap();
    }

    pub fn all(mut self, steps: &[(&str, &str)]) -> Forgery {
        for (who, action) in steps {
            self.does(who, action);
        }
        self
    }

    pub fn after(mut self, seconds: u64) -> Forgery {
        self.ledger.pass(seconds);
        self
    }

    /// An entry nobody decided on.
    pub fn forced(self, who: &Actor, action: &str, to: &str) -> Forgery {
        self.with(Some(who), action, to, |_, _| {})
    }

    pub fn with(
        mut self,
        who: Option<&Actor>,
        action: &str,
        to: &str,
        change: impl FnOnce(&mut Entry, &mut BTreeMap<ContentDigest, Vec<u8>>),
    ) -> Forgery {
        let mut documents = std::mem::take(&mut self.ledger.documents);
        self.ledger.force(&self.id, who, |entry| {
            (entry.action, entry.to) = (Some(action.into()), Some(to.into()));
            change(entry, &mut documents);
        });
        self.ledger.documents = documents;
        self
    }

    pub fn commented(entry: &mut Entry, documents: &mut BTreeMap<ContentDigest, Vec<u8>>) {
        let comment = Document::comment("A reason", &format!("{:032x}", entry.index + 1_000));
        documents.insert(comment.digest.clone(), comment.bytes);
        entry.comment = Some(comment.digest);
    }
}

/// A machine of ben's, as the map says, or as someone else says.
fn bot(operated_by: Option<&str>) -> Actor {
    Actor { operated_by: operated_by.map(|name| name.parse().unwrap()), ..as_role("bot", Role::Initiator) }
}

/// A machine of ben's that approves; only a pilot may have one.
fn approving_machine() -> Actor {
    Actor { operated_by: Some("ben".parse().unwrap()), ..as_role("bob", Role::Approver) }
}

/// An operation of high risk, to which ben's machine is admitted as an approver.
pub fn approved_by_machine() -> Forgery {
    let mut forgery = Forgery::new("high");
    forgery.ledger.employ(&approving_machine());
    let Forgery { ledger, id } = &mut forgery;
    ledger.act(id, &approving_machine(), "approve", "", Value::Null).unwrap();
    forgery
}

/// `bot`, which ben operates, has proposed something and waits for an approval.
pub fn proposed_by_machine() -> Forgery {
    let mut ledger = Ledger::default();
    ledger.employ(&bot(Some("ben")));
    let id = ledger.create("controlled-operation", &bot(Some("ben")), "Rotate", payload("low")).unwrap();
    ledger.act(&id, &bot(Some("ben")), "submit", "", Value::Null).unwrap();
    Forgery { ledger, id }
}

fn of_machines() -> Vec<Named> {
    let ana = Actor { operated_by: Some("ben".parse().unwrap()), ..actor("ana") };
    vec![
        (
            "the operator of a machine",
            "separation_of_duties",
            proposed_by_machine().forced(&actor("ben"), "approve", "approved"),
        ),
        (
            "a machine without its operator",
            "role_map",
            proposed_by_machine().forced(&bot(None), "withdraw", "withdrawn"),
        ),
        (
            "a machine of another operator",
            "role_map",
            proposed_by_machine().forced(&bot(Some("bea")), "withdraw", "withdrawn"),
        ),
        ("a person who is called a machine", "role_map", Forgery::new("low").forced(&ana, "withdraw", "withdrawn")),
        (
            "a person and their machine",
            "already_decided",
            approved_by_machine().forced(&actor("ben"), "approve", "approved"),
        ),
        ("a machine that nobody is", "history", {
            proposed_by_machine().after(73 * HOUR).with(None, "timer", "expired", |entry, _| {
                entry.operated_by = Some("ben".parse().unwrap());
            })
        }),
    ]
}

pub const CLEARED: [(&str, &str); 2] = [("ben", "approve"), ("sam", "clear")];
pub const STARTED: [(&str, &str); 3] = [("ben", "approve"), ("sam", "clear"), ("eve", "start")];

/// Under a definition that lets approvals be revoked where there may be none.
fn revocable_at_once() -> Forgery {
    let mut ledger = Ledger::default();
    let (from, both) = ("from = [\"approved\", \"cleared\"]", "from = [\"submitted\", \"approved\", \"cleared\"]");
    assert_eq!(CONTROLLED_OPERATION.matches(from).count(), 1);
    let text = CONTROLLED_OPERATION.replace(from, both).replace("version = 2", "version = 3");
    ledger.define(&text);
    ledger.start(Some(&role_map(&CAST)));
    let id = ledger.create("controlled-operation", &actor("ana"), "Rotate", payload("high")).unwrap();
    let mut forgery = Forgery { ledger, id };
    forgery.does("ana", "submit");
    forgery
}

/// What it is called, the rule that must be named, and the ledger.
pub type Named = (&'static str, &'static str, Forgery);

/// Against rules that need no content, each with the rule that must be named.
pub fn forgeries() -> Vec<Named> {
    [of_people_and_time(), of_machines(), of_steps()].concat()
}

fn of_people_and_time() -> Vec<Named> {
    let [ben, bea, eve, sam] = ["ben", "bea", "eve", "sam"].map(actor);
    let failed = [("eve", "fail"), ("eve", "retry"), ("eve", "fail"), ("eve", "retry"), ("eve", "fail")];
    vec![
        ("role", "role_forbidden", Forgery::new("low").forced(&eve, "approve", "approved")),
        ("two roles", "separation_of_duties", {
            let mut forgery = Forgery::new("low");
            forgery.ledger.start(Some(&role_map(&[("ana", Role::Approver)])));
            forgery.forced(&as_role("ana", Role::Approver), "approve", "approved")
        }),
        ("owner", "not_owner", Forgery::new("low").forced(&actor("ida"), "withdraw", "withdrawn")),
        (
            "second vote",
            "already_decided",
            Forgery::new("high").all(&[("ben", "approve")]).forced(&ben, "approve", "approved"),
        ),
        ("no vote of one's own", "not_owner", {
            let forgery = Forgery::new("low").all(&[("ben", "approve")]);
            forgery.with(Some(&bea), "revoke_approval", "submitted", Forgery::commented)
        }),
        ("another's lease", "not_owner", {
            Forgery::new("low").all(&STARTED).forced(&as_role("eva", Role::Executor), "succeed", "succeeded")
        }),
        (
            "lost lease",
            "state_conflict",
            Forgery::new("low").all(&STARTED).after(16 * MINUTE).forced(&eve, "succeed", "succeeded"),
        ),
        (
            "lost lease renewed",
            "state_conflict",
            Forgery::new("low").all(&STARTED).after(16 * MINUTE).forced(&eve, "heartbeat", "executing"),
        ),
        ("late approval", "state_conflict", Forgery::new("low").after(73 * HOUR).forced(&ben, "approve", "approved")),
        ("late clearance", "state_conflict", {
            let forgery = Forgery::new("low").all(&[("ben", "approve")]).after(25 * HOUR);
            let not_after = forgery.ledger.now.plus(Duration::from_secs(DAY));
            forgery.with(Some(&sam), "clear", "cleared", |entry, documents| {
                let inputs = Document::inputs(&json!({"not_after": not_after}), &"9".repeat(32));
                documents.insert(inputs.digest.clone(), inputs.bytes);
                entry.inputs = Some(inputs.digest);
            })
        }),
        (
            "a fourth attempt",
            "state_conflict",
            Forgery::new("low").all(&STARTED).all(&failed).forced(&eve, "retry", "executing"),
        ),
    ]
}

fn of_steps() -> Vec<Named> {
    let [ben, eve, sam] = ["ben", "eve", "sam"].map(actor);
    vec![
        ("held", "item_held", Forgery::new("low").all(&[("ben", "hold")]).forced(&ben, "approve", "approved")),
        (
            "not held",
            "state_conflict",
            Forgery::new("low").with(Some(&sam), "release", "submitted", Forgery::commented),
        ),
        ("held twice", "state_conflict", {
            Forgery::new("low").all(&[("ben", "hold")]).with(Some(&sam), "hold", "submitted", Forgery::commented)
        }),
        (
            "a step left out",
            "state_conflict",
            Forgery::new("low").all(&[("ben", "approve")]).forced(&eve, "start", "executing"),
        ),
        ("an end that was left", "state_conflict", {
            Forgery::new("low").all(&[("ana", "withdraw")]).forced(&ben, "approve", "approved")
        }),
        ("a vote taken back that nobody cast", "state_conflict", {
            revocable_at_once().with(Some(&ben), "revoke_approval", "submitted", Forgery::commented)
        }),
        ("no such action", "unknown_action", Forgery::new("low").forced(&ben, "bless", "approved")),
        ("another end", "other_entry", Forgery::new("low").all(&CLEARED).forced(&eve, "start", "succeeded")),
        ("no comment", "invalid_request", Forgery::new("low").forced(&ben, "reject", "rejected")),
        (
            "no inputs",
            "invalid_request",
            Forgery::new("low").all(&[("ben", "approve")]).forced(&sam, "clear", "cleared"),
        ),
        ("no window lasts so long", "state_conflict", {
            Forgery::new("low").all(&CLEARED).after(31 * DAY).forced(&eve, "start", "executing")
        }),
        ("nor for a retry", "outside_window", {
            let forgery = Forgery::new("low").all(&STARTED).all(&[("eve", "fail")]).after(31 * DAY);
            forgery.forced(&eve, "retry", "executing")
        }),
        (
            "a timer too early",
            "state_conflict",
            Forgery::new("low").after(HOUR).with(None, "timer", "expired", |_, _| {}),
        ),
        ("a lease that was not lost", "state_conflict", {
            Forgery::new("low").all(&STARTED).with(None, "timer", "indeterminate", |_, _| {})
        }),
        ("a timer to another end", "other_entry", {
            Forgery::new("low").all(&STARTED).after(HOUR).with(None, "timer", "expired", |_, _| {})
        }),
        ("half a quorum", "quorum", {
            Forgery::emergency().with(Some(&ben), "ratify", "ratified", Forgery::commented)
        }),
    ]
}

/// Some entry about some item, by someone, which may by chance be legal.
pub fn forge(ledger: &mut Ledger, choose: Choose<'_>) {
    let ids: Vec<_> = ledger.items.keys().cloned().collect();
    let id = ids[choose(ids.len())].clone();
    let item = ledger.items[&id].clone();
    let definition = ledger.definition(&item.workflow.digest);
    let rules = definition.rules();
    let here: Vec<_> = rules.transitions.iter().filter(|rule| rule.leads_from(&item.state)).collect();
    // Mostly something that would be possible here, so that only one thing is wrong with it.
    let (action, to) = if here.is_empty() || choose(4) == 0 {
        let rule = &rules.transitions[choose(rules.transitions.len())];
        (rule.action.clone(), rule.to.clone())
    } else {
        let rule = here[choose(here.len())];
        (rule.action.clone(), rule.to.clone())
    };
    let to = to.filter(|_| choose(8) > 0).unwrap_or_else(|| item.state.clone());
    let (name, role) = CAST[choose(CAST.len())];
    let who = match choose(12) {
        0 => None,
        1 => Some(as_role(name, Role::Approver)),
        _ => Some(as_role(name, role)),
    };
    ledger.pass([0, 0, 10 * MINUTE, HOUR, 30 * HOUR, 40 * DAY][choose(6)]);
    let (comment, text) = (choose(3) > 0, ["A reason", "A reason", " "][choose(3)]);
    let soon = ledger.now.plus(Duration::from_secs(HOUR * (1 + choose(900) as u64)));
    let inputs = match choose(4) {
        0 => Some(json!({"not_after": soon})),
        1 => Some(json!({"outcome": if choose(2) == 0 { "succeeded" } else { "failed" }})),
        2 if &*action == "clear" => Some(json!({"not_after": soon})),
        _ => None,
    };
    let (action, to) = match who {
        Some(_) => (action, to),
        None => ("timer".into(), rules.timers[choose(rules.timers.len())].to.clone()),
    };
    let mut documents = std::mem::take(&mut ledger.documents);
    ledger.force(&id, who.as_ref(), |entry| {
        (entry.action, entry.to) = (Some(action), Some(to));
        let mut keep = |document: Document| {
            documents.insert(document.digest.clone(), document.bytes);
            document.digest
        };
        entry.comment = comment.then(|| keep(Document::comment(text, &format!("{:032x}", entry.index + 7_000))));
        entry.inputs = inputs.map(|inputs| keep(Document::inputs(&inputs, &format!("{:032x}", entry.index + 8_000))));
    });
    ledger.documents = documents;
}
