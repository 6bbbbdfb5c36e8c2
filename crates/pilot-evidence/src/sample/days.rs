//! Days on which people do what the rules allow, as chance has it.

use pilot_core::actor::Actor;
use pilot_core::item::{Item, ItemId};
use serde_json::{Value, json};

use super::{CAST, Choose, Ledger, actor, emergency_payload, payload, role_map, variants};

fn is_open(ledger: &Ledger, item: &Item) -> bool {
    !item.is_terminal(&ledger.definition(&item.workflow.digest))
}

/// One attempt of someone to do something; most are refused.
pub fn attempt(ledger: &mut Ledger, choose: Choose<'_>) {
    let who = actor(CAST[choose(CAST.len())].0);
    let risk = ["low", "medium", "high"][choose(3)];
    let ids: Vec<_> = ledger.items.keys().rev().take(6).cloned().collect();
    match choose(40) {
        0 | 1 => {
            let mut payload = payload(risk);
            if choose(3) == 0 {
                payload["extra"] = variants::extra(choose);
            }
            drop(ledger.create("controlled-operation", &who, "An operation", payload));
        }
        2 | 3 => {
            // The sample does not count; here nobody opens a second one.
            let emergency = |item: &&Item| *item.workflow.name == *"emergency-operation" && is_open(ledger, item);
            if !ledger.items.values().filter(emergency).any(|item| item.created_by == who) {
                drop(ledger.create("emergency-operation", &who, "An emergency", emergency_payload()));
            }
        }
        4 => ledger.pass(3_600 * (1 + choose(30) as u64)),
        5 => ledger.start(Some(&role_map(&CAST))),
        choice => {
            let Some(id) = ids.get(choose(ids.len().max(1))).cloned() else { return };
            match choice {
                6 => drop(ledger.expire(&id)),
                7 => drop(ledger.edit(&id, &who, "A better title", json!({"risk": risk}))),
                8 => ledger.remark(&id, &who, "A remark"),
                _ => act(ledger, choose, &id, &who),
            }
        }
    }
}

fn act(ledger: &mut Ledger, choose: Choose<'_>, id: &ItemId, who: &Actor) {
    let item = &ledger.items[id];
    let definition = ledger.definition(&item.workflow.digest);
    let actions = pilot_core::decide::actions_for(&definition, item, who, ledger.now);
    if actions.is_empty() {
        return;
    }
    let action = actions[choose(actions.len())].to_string();
    // Most ways lead to an early end; without this nobody would come far.
    let ends = ["withdraw", "reject", "refuse", "revoke", "return", "condemn"].contains(&action.as_str());
    if ends && choose(12) > 0 {
        return;
    }
    let outcome = ["succeeded", "failed"][choose(2)];
    let inputs = match action.as_str() {
        "clear" => json!({"not_after": ledger.now.plus(std::time::Duration::from_hours(3))}),
        "reconcile" => json!({"outcome": outcome}),
        "succeed" => json!({"result": "done"}),
        _ => Value::Null,
    };
    drop(ledger.act(id, who, &action, "A reason", inputs));
}
