//! What a caller could do right now and what that would lead to, what they cannot do and why, and who could do something.

use std::cell::OnceCell;

use super::case::Case;
use super::request::ActionRequest;
use super::taken::Tally;
use super::unasked::Gaps;
use crate::actor::{Actor, ActorId};
use crate::certain::Certain as _;
use crate::item::Item;
use crate::refusal::Refusal;
use crate::role::Role;
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

/// Everything `decide` would say to one actor about the item as it is.
#[derive(Debug, Default)]
pub struct Prospect {
    /// As [`actions_for`] gives them.
    pub actions: Vec<Name>,
    /// What each of them would do, except `edit`, which moves nothing.
    pub effects: Vec<(Name, Effect)>,
    pub blocked: Vec<Blocked>,
}

/// What an action would do, if it were taken now with everything it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The states the item may be in afterwards: several if an input chooses.
    pub to: Vec<Name>,
    /// Whether it would leave its state.
    pub moves: bool,
    /// Whether it would be finished.
    pub ends: bool,
    /// If the action is a vote: what the tally would be with this one.
    pub vote: Option<Tally>,
}

/// An action that the actor's role may take in the item's state, but that this actor cannot take now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    pub action: Name,
    pub refusal: Refusal,
    /// When it becomes possible by itself, if that is known.
    pub until: Option<Time>,
}

/// What `decide` would say to this actor now. Costs a small number of steps an action: the payload is judged once.
pub fn prospect(definition: &Definition, item: &Item, actor: &Actor, now: Time) -> Prospect {
    let (mut prospect, gaps) = (Prospect::default(), Gaps::default());
    let Some(outlook) = Outlook::new(definition, item, now, &gaps) else { return prospect };
    match outlook.edit(actor) {
        Ok(()) => prospect.actions.push("edit".into()),
        Err(refusal) if outlook.is_editing(actor) => prospect.block(&"edit".into(), refusal, &outlook),
        Err(_) => {}
    }
    for action in definition.actions() {
        match outlook.effect(action, actor) {
            Ok(effect) => {
                prospect.actions.push(action.name.clone());
                prospect.effects.push((action.name.clone(), effect));
            }
            Err(refusal) if outlook.is_for(action, actor) => prospect.block(&action.name, refusal, &outlook),
            Err(_) => {}
        }
    }
    prospect
}

impl Prospect {
    fn block(&mut self, action: &Name, refusal: Refusal, outlook: &Outlook<'_>) {
        // Of hold and release one is always pointless. Nobody waits for it to become possible.
        if matches!(refusal, Refusal::AlreadyHeld | Refusal::NotHeld) {
            return;
        }
        let until = match &refusal {
            Refusal::OutsideWindow { window: Some(window), .. } if !window.is_left_out => Some(window.not_before),
            _ => None,
        };
        let until = until.filter(|opens| *opens > outlook.case.at);
        self.blocked.push(Blocked { action: action.clone(), refusal, until });
    }
}

/// An action that would take the item forward, and who could take it.
#[derive(Debug, PartialEq, Eq)]
pub struct Waiting {
    pub action: Name,
    pub role: Role,
    pub who: WhoCan,
    /// How many people still have to do it.
    pub needed: u32,
}

/// What the item is waiting for, and from whom: for each role that it waits for, the actions that take it forward.
pub fn waiting(definition: &Definition, item: &Item, people: &[Actor], named_max: usize, now: Time) -> Vec<Waiting> {
    let mut found = Vec::new();
    for role in item.waits_for(definition) {
        for rule in forward(definition, item, role) {
            let people = people.iter().filter(|person| person.role == role);
            let who = who_can(definition, item, &rule.action, people, named_max, now);
            let have =
                u32::try_from(item.votes_for(&rule.action).count()).certain("an item has fewer votes than entries");
            let needed = rule.votes_needed(&item.payload).map_or(1, |needed| needed.saturating_sub(have).max(1));
            found.push(Waiting { action: rule.action.clone(), role, who, needed });
        }
    }
    found
}

/// The rules, one for each action, by which a role whose turn it is takes the item forward. A held item has to be
/// released. A vote in progress has to be cast. Otherwise it is what a hold would stop, because that is how a definition
/// tells going on from backing out; and if a hold would stop none of it, whatever moves the item.
fn forward<'d>(definition: &'d Definition, item: &Item, role: Role) -> Vec<&'d Rule> {
    let rules = definition.actions().iter().filter_map(|action| {
        let here = |rule: &&Rule| rule.leads_from(&item.state) && rule.roles.contains(role);
        definition.rules_of(action).find(here)
    });
    let rules: Vec<&Rule> = rules.collect();
    if item.held {
        return rules.into_iter().filter(|rule| rule.holds == Some(false)).collect();
    }
    let moves = |rule: &&Rule| rule.to.as_ref().is_some_and(|to| *to != item.state);
    let mut rules: Vec<&Rule> = rules.into_iter().filter(moves).collect();
    if rules.iter().any(|rule| rule.quorum.is_some()) {
        rules.retain(|rule| rule.quorum.is_some());
    } else if rules.iter().any(|rule| definition.hold_blocks(&rule.action)) {
        rules.retain(|rule| definition.hold_blocks(&rule.action));
    }
    rules
}

/// Of the people who were asked about, those who could do it now.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WhoCan {
    /// The first few.
    pub actors: Vec<ActorId>,
    /// How many more there are.
    pub others: usize,
    /// If nobody can: what stops those who otherwise could. None if there is no such person.
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
    /// Whether the content could be frozen as it is. It is the same for every caller, and costs the most.
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

    /// Whether an actor of this role edits items in this state.
    fn is_editing(&self, actor: &Actor) -> bool {
        let state = self.case.definition.rules().state(&self.case.item.state);
        actor.role == Role::Initiator && state.is_some_and(|state| state.editable)
    }

    /// Whether an actor of this role takes the action in this state.
    fn is_for(&self, action: &Action, actor: &Actor) -> bool {
        let here = |rule: &Rule| rule.leads_from(&self.case.item.state) && rule.roles.contains(actor.role);
        self.case.definition.rules_of(action).any(here)
    }

    fn take(&self, action: &'c Action, actor: &Actor) -> Result<(), Refusal> {
        let first = self.case.permit(action, actor)?;
        let verdict = self.follow(action, first, actor);
        verdict.or_else(|refusal| {
            self.others(action, first).find_map(|rule| self.follow(action, rule, actor).ok()).ok_or(refusal)
        })
    }

    /// The rules that an input would choose in place of this one.
    fn others(&self, action: &'c Action, first: &'c Rule) -> impl Iterator<Item = &'c Rule> {
        let is_other = move |rule: &&Rule| first.when.is_some() && !std::ptr::eq(*rule, first);
        self.case.beside(action, first).filter(is_other)
    }

    /// What `decide` would do, tried on a copy of the item.
    fn effect(&self, action: &'c Action, actor: &Actor) -> Result<Effect, Refusal> {
        self.take(action, actor)?;
        let item = self.case.item;
        let first = self.case.permit(action, actor)?;
        let rules = std::iter::once(first).chain(self.others(action, first));
        let (mut to, mut vote): (Vec<Name>, _) = (Vec::new(), None);
        for rule in rules.filter(|rule| self.follow(action, rule, actor).is_ok()) {
            let transition = self.case.taken(rule, actor, &ActionRequest::default(), None, Vec::new());
            let after = item.after(&transition);
            if !to.contains(&after.state) {
                to.push(after.state);
            }
            vote = vote.or_else(|| rule.quorum.map(|_| self.case.tally(rule, &actor.actor_id, actor.person())));
        }
        let moves = to.iter().any(|state| *state != item.state);
        let ends = moves && to.iter().all(|state| self.case.definition.rules().is_terminal(state));
        Ok(Effect { to, moves, ends, vote })
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
    use crate::decide::{Content, NewItem, OpenItems, decide_creation};
    use crate::document::ContentDigest;
    use crate::workflow::builtin::builtin;

    fn actor(name: &str, role: Role) -> Actor {
        Actor::new(name.parse().unwrap(), role)
    }

    fn people() -> Vec<Actor> {
        let approvers = ["ben", "bob", "bea", "bill", "bo", "bert", "bess"].map(|name| actor(name, Role::Approver));
        [actor("ana", Role::Initiator), actor("amy", Role::Initiator)].into_iter().chain(approvers).collect()
    }

    fn draft(definition: &Definition, payload: &serde_json::Value) -> Item {
        let content = Content::judge(definition, "t", payload, ContentDigest::of("t", payload, "n"));
        let new = NewItem { id: "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap(), content };
        decide_creation(definition, &new, &actor("ana", Role::Initiator), Time::EPOCH, OpenItems::default()).unwrap().1
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

    fn waited(item: &Item) -> String {
        let [definition, _] = builtin();
        let line = |waiting: Waiting| {
            let names: Vec<_> = waiting.who.actors.iter().map(ActorId::as_str).collect();
            let (action, role, others) = (waiting.action, waiting.role, waiting.who.others);
            format!("{action} {role}: {} +{others}, {} needed", names.join(" "), waiting.needed)
        };
        let found = waiting(&definition, item, &people(), 5, Time::EPOCH);
        found.into_iter().map(line).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn an_item_waits_for_the_people_who_can_take_it_forward() {
        let [definition, _] = builtin();
        let mut item =
            draft(&definition, &json!({"purpose": "p", "operation": "o", "risk": "high", "rollback_plan": "r"}));
        assert_eq!(waited(&item), "submit initiator: ana +0, 1 needed");
        item.state = "submitted".into();
        assert_eq!(waited(&item), "approve approver: ben bob bea bill bo +2, 2 needed");
        item.votes.push(crate::item::Vote {
            actor_id: "bob".parse().unwrap(),
            operated_by: None,
            action: "approve".into(),
            content_digest: item.content_digest.clone(),
            at: Time::EPOCH,
        });
        assert_eq!(waited(&item), "approve approver: ben bea bill bo bert +1, 1 needed");
        item.held = true;
        // Nobody here is a security_admin.
        assert_eq!(waited(&item), "release security_admin:  +0, 1 needed");
        item.held = false;
        item.state = "succeeded".into();
        assert_eq!(waited(&item), "accept approver: ben bob bea bill bo +2, 1 needed");
        item.state = "closed".into();
        assert_eq!(waited(&item), "");
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
