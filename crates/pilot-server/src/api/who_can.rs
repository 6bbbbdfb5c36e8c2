//! A refusal for role, separation of duties or ownership says who can.

use pilot_api::problem::WhoCanView;
use pilot_core::actor::{Actor, ActorId};
use pilot_core::decide::{WhoCan, who_can};
use pilot_core::item::ItemId;
use pilot_core::limits::{WHO_CAN_ASKED_MAX, WHO_CAN_NAMED_MAX};
use pilot_core::refusal::Refusal;
use pilot_ledger::settle::SettleError;

use crate::app::App;
use crate::problem::Problem;

/// The answer to an action that was not taken.
pub async fn explained(app: &App, id: &ItemId, action: &str, error: SettleError) -> Problem {
    let SettleError::Refused(refusal) = error else { return error.into() };
    let is_about_access = refusal.is_about_access();
    let problem = Problem::from(refusal);
    if !is_about_access {
        return problem;
    }
    // The refusal stands whether or not it can be explained.
    let Ok(Some(item)) = app.ledger.store.item(id.clone()).await else { return problem };
    let Ok(definition) = app.workflows.kept_by(&item) else { return problem };
    let people = people(app);
    let found = who_can(&definition, &item, action, people.iter(), WHO_CAN_NAMED_MAX, app.ledger.clock.now());
    let words = in_words(&found);
    problem.said_who_can(&words, WhoCanView { actors: found.actors, others: found.others })
}

/// Those who are asked about.
pub fn people(app: &App) -> Vec<Actor> {
    let people = app.identity.actors().into_iter().take(WHO_CAN_ASKED_MAX);
    people.map(|view| Actor { actor_id: view.actor_id, role: view.role, operated_by: view.operated_by }).collect()
}

/// `ben and bob can`
fn in_words(found: &WhoCan) -> String {
    let names: Vec<_> = found.actors.iter().map(ActorId::as_str).collect();
    match (names.as_slice(), found.others) {
        ([], _) => nobody(found.obstacle.as_ref()),
        ([one], 0) => format!("{one} can"),
        ([first @ .., last], 0) => format!("{} and {last} can", first.join(", ")),
        (all, 1) => format!("{} and one other can", all.join(", ")),
        (all, others) => format!("{} and {others} others can", all.join(", ")),
    }
}

fn nobody(obstacle: Option<&Refusal>) -> String {
    match obstacle {
        Some(Refusal::Invalid(_)) => "nobody can now: the content is not complete".to_owned(),
        Some(obstacle) => format!("nobody can now: {obstacle}"),
        None => {
            "nobody can: the rules allow it to no actor there is, so it needs one more, in the right role".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_can_is_said_as_a_person_would_say_it() {
        let said = |names: &[&str], others| {
            let actors = names.iter().map(|name| name.parse().unwrap()).collect();
            in_words(&WhoCan { actors, others, obstacle: None })
        };
        assert_eq!(said(&["ben"], 0), "ben can");
        assert_eq!(said(&["ben", "cleo"], 0), "ben and cleo can");
        assert_eq!(said(&["ben", "bob", "cleo"], 0), "ben, bob and cleo can");
        assert_eq!(said(&["ben", "bob"], 1), "ben, bob and one other can");
        assert_eq!(said(&["ben", "bob"], 12), "ben, bob and 12 others can");
        assert!(said(&[], 0).starts_with("nobody can: "));
    }
}
