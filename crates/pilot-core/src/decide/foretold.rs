//! What is said in advance about an action is what then happens: random walks through the built-in workflows.
//!
//! A case is a list of bytes that choose who does what and how much time passes. Before each step everyone is told what
//! they could do; then each action is really decided, on a copy of the item.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::actor::Actor;
use crate::document::ContentDigest;
use crate::role::Role;
use crate::workflow::builtin::builtin;
use crate::workflow::{Action, Name, Rule};

const PEOPLE: [(&str, Role); 13] = [
    ("ana", Role::Initiator),
    ("amy", Role::Initiator),
    ("ben", Role::Approver),
    ("bea", Role::Approver),
    // Took part in another role before the role map changed.
    ("ana", Role::Approver),
    ("sam", Role::SecurityAdmin),
    ("sue", Role::SecurityAdmin),
    ("eve", Role::Executor),
    ("eli", Role::Executor),
    ("uma", Role::Auditor),
    // Machines.
    ("ben's bot", Role::Initiator),
    ("ana's bot", Role::Approver),
    ("sam's bot", Role::Executor),
];

/// What was seen on the walks, so that a walk that sees nothing cannot pass for a proof.
#[derive(Default)]
struct Seen {
    effects: BTreeSet<String>,
    blocked: BTreeSet<String>,
}

struct Walk<'s> {
    definition: &'s Definition,
    item: Item,
    now: Time,
    seen: &'s mut Seen,
}

fn person((name, role): (&str, Role)) -> Actor {
    match name.split_once("'s ") {
        Some((operator, name)) => Actor {
            operated_by: Some(operator.parse().unwrap()),
            ..Actor::new(format!("{operator}-{name}").parse().unwrap(), role)
        },
        None => Actor::new(name.parse().unwrap(), role),
    }
}

impl Walk<'_> {
    fn begin<'s>(definition: &'s Definition, risk: &str, is_complete: bool, seen: &'s mut Seen) -> Walk<'s> {
        let mut payload =
            json!({"purpose": "p", "operation": "o", "risk": risk, "rollback_plan": "r", "incident": "i"});
        if !is_complete {
            payload.as_object_mut().unwrap().remove("operation");
        }
        let content = Content::judge(definition, "t", &payload, ContentDigest::of("t", &payload, "n"));
        let new = NewItem { id: "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap(), content };
        let (_, item) =
            decide_creation(definition, &new, &person(PEOPLE[0]), Time::EPOCH, OpenItems::default()).unwrap();
        Walk { definition, item, now: Time::EPOCH, seen }
    }

    /// A request with everything the action could need; `outcome` chooses where an input does.
    fn request(&self, action: &Action, opens_late: bool, outcome: Option<&str>) -> Request {
        let here = |rule: &&Rule| rule.leads_from(&self.item.state);
        let rule =
            self.definition.rules_of(action).find(here).or_else(|| self.definition.rules_of(action).next()).unwrap();
        let later = |seconds| self.now.max(self.item.updated_at).plus(Duration::from_secs(seconds));
        let inputs: Option<Value> = match (&rule.sets_window, outcome) {
            (Some(_), _) if opens_late => Some(json!({"not_before": later(600), "not_after": later(7_200)})),
            (Some(_), _) => Some(json!({"not_after": later(7_200)})),
            (None, Some(outcome)) => Some(json!({ "outcome": outcome })),
            (None, None) => None,
        };
        Request::Act(ActionRequest {
            action: action.name.to_string(),
            content_digest: Some(self.item.content_digest.to_string()),
            comment: Some("c".to_owned()),
            inputs,
            if_match: None,
        })
    }

    fn decide(&self, request: &Request, actor: &Actor) -> Result<Transition, Refusal> {
        decide(self.definition, &self.item, request, &Caller::Actor(actor.clone()), self.now)
    }

    fn edit(&self) -> Request {
        let payload = json!({"note": "n"});
        let (title, payload) = EditRequest::edited(&self.item, None, Some(&payload));
        let digest = ContentDigest::of(&title, &payload, &self.item.version.to_string());
        let content = Some(Content::judge(self.definition, &title, &payload, digest));
        Request::Edit(EditRequest { content, made_from: self.item.content_digest.clone(), if_match: None })
    }

    /// Every way in which the action can be taken here.
    fn verdicts(&self, action: &Action, actor: &Actor) -> Vec<Result<Transition, Refusal>> {
        let chooses = |rule: &Rule| rule.when.is_some() && rule.leads_from(&self.item.state);
        let outcomes: &[Option<&str>] =
            if self.definition.rules_of(action).any(chooses) { &[Some("succeeded"), Some("failed")] } else { &[None] };
        outcomes.iter().map(|outcome| self.decide(&self.request(action, false, *outcome), actor)).collect()
    }

    /// What is foretold to this person holds.
    fn check(&mut self, actor: &Actor) {
        let told = prospect(self.definition, &self.item, actor, self.now);
        assert_eq!(told.actions, actions_for(self.definition, &self.item, actor, self.now));
        let named: Vec<_> = told.effects.iter().map(|(action, _)| action).collect();
        assert_eq!(named, told.actions.iter().filter(|action| ***action != *"edit").collect::<Vec<_>>());
        for (name, effect) in &told.effects {
            let verdicts = self.verdicts(self.definition.action(name).unwrap(), actor);
            let happened: Vec<Item> = verdicts.into_iter().flatten().map(|done| self.item.after(&done)).collect();
            self.came_true(name, effect, &happened, actor);
        }
        for Blocked { action, refusal, until } in &told.blocked {
            let verdicts = match self.definition.action(action) {
                Some(action) => self.verdicts(action, actor),
                None => vec![self.decide(&self.edit(), actor)],
            };
            for verdict in verdicts {
                assert_eq!(verdict.map_err(|refused| refused.code()), Err(refusal.code()), "{action}");
            }
            if let Some(until) = until {
                let early = decide_at(self, action, actor, Time::from_unix_micros(until.unix_micros() - 1));
                assert_eq!(early.map_err(|refused| refused.code()), Err(refusal.code()), "{action} before {until}");
                // Whatever else may be in the way then, it is not this.
                let then = decide_at(self, action, actor, *until);
                assert_ne!(then.map_err(|refused| refused.code()), Err(refusal.code()), "{action} at {until}");
            }
            self.seen.blocked.insert(format!("{} {action} {}", self.item.state, refusal.code()));
        }
        self.is_complete(&told, actor);
    }

    fn came_true(&mut self, name: &str, effect: &Effect, happened: &[Item], actor: &Actor) {
        assert!(!happened.is_empty(), "{name} was offered and refused");
        let states: BTreeSet<_> = happened.iter().map(|item| item.state.clone()).collect();
        assert_eq!(effect.to.iter().cloned().collect::<BTreeSet<_>>(), states, "{name}");
        assert_eq!(effect.moves, states.iter().any(|state| *state != self.item.state), "{name}");
        let ended = effect.moves && happened.iter().all(|item| item.is_terminal(self.definition));
        assert_eq!(effect.ends, ended, "{name}");
        let cast = |item: &Item| item.votes.iter().any(|vote| vote.actor_id == actor.actor_id && *vote.action == *name);
        let is_vote = self.definition.rules_of(self.definition.action(name).unwrap()).any(|rule| rule.quorum.is_some());
        assert_eq!(effect.vote.is_some(), is_vote, "{name}");
        if let Some(Tally { count, needed }) = effect.vote {
            let [after] = happened else { panic!("a vote leads to one item") };
            assert!(cast(after), "{name}");
            assert_eq!(after.votes_for(name).count(), count as usize, "{name}");
            assert_eq!(effect.moves, count >= needed, "{name}: {count} of {needed}");
        }
        self.seen.effects.insert(format!("{} {name} {} {}", self.item.state, effect.moves, effect.ends));
    }

    /// What the role may do here is offered or blocked, and nothing else is said to be blocked.
    fn is_complete(&self, told: &Prospect, actor: &Actor) {
        for action in self.definition.actions() {
            let here = |rule: &Rule| rule.leads_from(&self.item.state) && rule.roles.contains(actor.role);
            let is_told = told.actions.contains(&action.name) || told.blocked.iter().any(|b| b.action == action.name);
            let is_toggle = ["hold", "release"].contains(&&*action.name);
            let is_for_role = self.definition.rules_of(action).any(here);
            assert!(is_told == is_for_role || is_toggle && is_for_role, "{} for {}", action.name, actor.role);
        }
    }
}

fn decide_at(walk: &Walk<'_>, action: &str, actor: &Actor, at: Time) -> Result<Transition, Refusal> {
    let request = walk.request(walk.definition.action(action).unwrap(), false, None);
    decide(walk.definition, &walk.item, &request, &Caller::Actor(actor.clone()), at)
}

fn walk(definition: &Definition, bytes: &[u8], seen: &mut Seen) {
    let mut bytes = bytes.iter().copied().map(usize::from);
    let first = bytes.next().unwrap_or(0);
    let risk = if first % 2 == 0 { "low" } else { "high" };
    let mut walk = Walk::begin(definition, risk, first % 8 < 7, seen);
    while let (Some(who), Some(what), Some(how)) = (bytes.next(), bytes.next(), bytes.next()) {
        walk.now = walk.now.plus(Duration::from_secs([0, 0, 1, 60, 0, 900, 0, 7_300][how % 8]));
        let turn = walk.item.waits_for(definition);
        // Mostly someone whose turn it is, and an action that goes on: otherwise most walks are soon withdrawn.
        let fits: Vec<_> = PEOPLE.into_iter().filter(|(_, role)| how % 5 == 0 || turn.contains(role)).collect();
        let actor = person(fits.get(who % fits.len().max(1)).copied().unwrap_or(PEOPLE[0]));
        walk.check(&actor);
        walk.check(&person(PEOPLE[(who + what) % PEOPLE.len()]));
        let told = prospect(definition, &walk.item, &actor, walk.now);
        let goes_on = |action: &&Name| how % 7 == 0 || told.effects.iter().all(|(name, e)| name != *action || !e.ends);
        let offered: Vec<_> = told.actions.iter().filter(goes_on).collect();
        let taken = match offered.get(what % offered.len().max(1)).and_then(|name| definition.action(name)) {
            Some(action) => {
                let outcome = [Some("succeeded"), Some("failed")][how / 8 % 2];
                let chooses = definition.rules_of(action).any(|rule| rule.when.is_some());
                let request = walk.request(action, how % 3 == 0, outcome.filter(|_| chooses));
                walk.decide(&request, &actor)
            }
            None if offered.is_empty() && how % 4 == 0 => {
                decide(definition, &walk.item, &Request::Timer, &Caller::Timer, walk.now)
            }
            None if offered.is_empty() => continue,
            None => walk.decide(&walk.edit(), &actor),
        };
        if let Ok(transition) = taken {
            walk.item = walk.item.after(&transition);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(256)))]
    #[test]
    fn what_is_foretold_about_an_action_is_what_it_then_does(bytes in proptest::collection::vec(any::<u8>(), 30..150)) {
        for definition in builtin() {
            walk(&definition, &bytes, &mut Seen::default());
        }
    }
}

/// The test above would prove nothing if its walks ended early.
#[test]
fn walks_meet_votes_that_decide_and_votes_that_do_not_and_every_kind_of_obstacle() {
    let (mut random, mut seen) = (1_u64, Seen::default());
    for _ in 0..400 {
        let mut draw = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random.to_be_bytes()[0]
        };
        let bytes: Vec<u8> = (0..150).map(|_| draw()).collect();
        for definition in builtin() {
            walk(&definition, &bytes, &mut seen);
        }
    }
    for effect in ["submitted approve true false", "submitted approve false false", "cleared start true false"] {
        assert!(seen.effects.contains(effect), "{effect}: {:?}", seen.effects);
    }
    let codes: BTreeSet<_> = seen.blocked.iter().filter_map(|line| line.split(' ').nth(2)).collect();
    for code in [
        "separation_of_duties",
        "not_owner",
        "already_decided",
        "item_held",
        "outside_window",
        "invalid_request",
        "state_conflict",
    ] {
        assert!(codes.contains(code), "{code}: {:?}", seen.blocked);
    }
}
