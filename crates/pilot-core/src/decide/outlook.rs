//! What a caller could do right now, and who could do something.

use std::cell::OnceCell;

use super::case::Case;
use super::unasked::Gaps;
use crate::actor::{Actor, ActorId};
use crate::item::Item;
use crate::refusal::Refusal;
use crate::time::Time;
use crate::workflow::{Action, Definition, Name, Rule};

/// Exactly the actions that `decide` would accept now, given a valid comment, digest and inputs; including `edit`.
pub fn actions_for(definition: &Definition, item: &Item, actor: &Actor, now: Time) -> Vec<Name> {
    let gaps = Gaps::default();
    let Some(outlook) = Outlook::new(definition, item, now, &gaps) else { return Vec::new() };
    let edit = outlook.edit(actor).is_ok().then(|| Name::from("edit"));
    let possible = definition.actions().iter().filter(|action| outlook.take(action, actor).is_ok());
    edit.into_iter().chain(possible.map(|action| action.name.clone())).collect()
}

/// Of the people who were asked about, those who could do it now.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WhoCan {
    /// The first few.
    pub actors: Vec<ActorId>,
    /// How many more there are.
    pub others: usize,
    /// If nobody can: what stops those whom the rules would allow it. None if there is no such person.
    pub obstacle: Option<Refusal>,
}

/// Who could take this action now. Each person costs the same small number of steps: the payload is judged once.
pub fn who_can<'a>(
    definition: &Definition,
    item: &Item,
    action: &str,
    people: impl Iterator<Item = &'a Actor>,
    named_max: usize,
    now: Time,
) -> WhoCan {
    let (mut found, gaps) = (WhoCan::default(), Gaps::default());
    let Some(outlook) = Outlook::new(definition, item, now, &gaps) else { return found };
    for person in people {
        let verdict = match (action, definition.action(action)) {
            ("edit", _) => outlook.edit(person),
            (_, Some(action)) => outlook.take(action, person),
            (_, None) => return found,
        };
        match verdict {
            Ok(()) if found.actors.len() < named_max => found.actors.push(person.actor_id.clone()),
            Ok(()) => found.others += 1,
            Err(refusal) if !refusal.is_about_access() => found.obstacle = found.obstacle.or(Some(refusal)),
            Err(_) => {}
        }
    }
    if !found.actors.is_empty() {
        found.obstacle = None;
    }
    found
}

/// `decide`, asked in advance.
struct Outlook<'c> {
    case: Case<'c>,
    /// Whether the content could be frozen as it is. It is the same whoever asks, and costs the most.
    content: OnceCell<Result<(), Refusal>>,
}

impl<'c> Outlook<'c> {
    /// None if the item moves by another definition.
    fn new(definition: &'c Definition, item: &'c Item, now: Time, gaps: &'c Gaps) -> Option<Outlook<'c>> {
        let case = Case { definition, item, at: now.max(item.updated_at), gaps };
        (item.workflow.digest == *definition.digest()).then(|| Outlook { case, content: OnceCell::new() })
    }

    fn edit(&self, actor: &Actor) -> Result<(), Refusal> {
        self.case.may_edit(actor).and_then(|()| self.case.can_be_edited(&mut Vec::new()))
    }

    fn take(&self, action: &'c Action, actor: &Actor) -> Result<(), Refusal> {
        let first = self.case.permit(action, actor)?;
        let is_other = |rule: &&Rule| rule.roles.contains(actor.role) && !std::ptr::eq(*rule, first);
        let mut others = self.case.definition.rules_of(action).filter(is_other);
        let verdict = self.follow(action, first, actor);
        verdict.or_else(|refusal| others.find_map(|rule| self.follow(action, rule, actor).ok()).ok_or(refusal))
    }

    fn follow(&self, action: &Action, rule: &Rule, actor: &Actor) -> Result<(), Refusal> {
        self.case.situation(action, rule, actor, &mut Vec::new())?;
        if !self.case.freezes(rule) {
            return Ok(());
        }
        self.content.get_or_init(|| self.case.payload_complete(rule, &mut Vec::new())).clone()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::decide::{Content, NewItem, decide_creation};
    use crate::document::ContentDigest;
    use crate::role::Role;
    use crate::workflow::builtin::builtin;

    fn actor(name: &str, role: Role) -> Actor {
        Actor { actor_id: name.parse().unwrap(), role }
    }

    fn people() -> Vec<Actor> {
        let approvers = ["ben", "bob", "bea", "bill", "bo", "bert", "bess"].map(|name| actor(name, Role::Approver));
        [actor("ana", Role::Initiator), actor("amy", Role::Initiator)].into_iter().chain(approvers).collect()
    }

    fn draft(definition: &Definition, payload: &serde_json::Value) -> Item {
        let content = Content::judge(definition, "t", payload, ContentDigest::of("t", payload, "n"));
        let new = NewItem { id: "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap(), content };
        decide_creation(definition, &new, &actor("ana", Role::Initiator), Time::EPOCH, 0).unwrap().1
    }

    fn said(item: &Item, action: &str) -> String {
        let [definition, _] = builtin();
        let WhoCan { actors, others, obstacle } = who_can(&definition, item, action, people().iter(), 5, Time::EPOCH);
        let names: Vec<_> = actors.iter().map(ActorId::as_str).collect();
        format!(
            "{} +{others} {}",
            names.join(" "),
            obstacle.map_or(String::new(), |refusal| refusal.code().to_string())
        )
    }

    #[test]
    fn a_few_are_named_and_the_rest_counted() {
        let [definition, _] = builtin();
        let mut item = draft(&definition, &json!({}));
        item.state = "submitted".into();
        assert_eq!(said(&item, "approve"), "ben bob bea bill bo +2 ");
        assert_eq!(said(&item, "withdraw"), "ana +0 ");
        assert_eq!(said(&item, "no_such_action"), " +0 ");
    }

    #[test]
    fn if_nobody_can_it_is_said_what_stops_those_who_could() {
        let [definition, _] = builtin();
        let item = draft(&definition, &json!({}));
        assert_eq!(said(&item, "approve"), " +0 state_conflict");
        assert_eq!(said(&item, "submit"), " +0 invalid_request");
        assert_eq!(said(&item, "edit"), "ana +0 ");
        // Nobody here is a security_admin.
        assert_eq!(said(&item, "clear"), " +0 ");
    }
}
