//! Definitions nobody wrote, driven by requests nobody would make: whatever passes the prover keeps the invariants.
//!
//! A case is a list of bytes. They choose the rules first, then what people ask for, so that a failing case shrinks to
//! fewer states, fewer rules and fewer requests. The checks follow the item's history independently and never ask the
//! prover or `decide` what was right.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::actor::{Actor, ActorId};
use crate::document::ContentDigest;
use crate::item::Vote;
use crate::role::Role;
use crate::role_set::RoleSet;
use crate::workflow::builtin::builtin;
use crate::workflow::{Due, Hold, Kind, Name, Own, QuorumIf, Rule, Rules, Span, State, Timer};

/// Returns one choice after another; zeros when the bytes run out.
struct Choices<'b>(std::slice::Iter<'b, u8>);

impl Choices<'_> {
    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % bound.max(1)
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == bound - 1
    }

    fn role(&mut self) -> Role {
        [Role::Initiator, Role::Approver, Role::SecurityAdmin, Role::Executor][self.below(4)]
    }

    fn left(&self) -> bool {
        !self.0.as_slice().is_empty()
    }
}

fn span(seconds: u64) -> Span {
    Span { text: format!("{seconds}s").into(), length: Duration::from_secs(seconds) }
}

fn state(name: &str, kind: Kind, editable: bool) -> State {
    let waits_for = if kind == Kind::Terminal { RoleSet::EMPTY } else { RoleSet::one(Role::Initiator) };
    State { name: name.into(), kind, editable, waits_for, description: String::new() }
}

/// A chain of steps from draft to an effect and on to an end, plus rules that lead anywhere.
fn rules(choices: &mut Choices<'_>) -> (Rules, Vec<Rule>) {
    let steps = 1 + choices.below(4);
    let mut states = vec![state("draft", Kind::Open, true)];
    states.extend((0..steps).map(|step| state(&format!("s{step}"), Kind::Open, choices.one_in(6))));
    states.push(state("effect", Kind::Effect, false));
    states.push(state("after", Kind::Open, false));
    states.extend(["done", "lost"].map(|end| state(end, Kind::Terminal, false)));
    let names: Vec<Name> = states.iter().map(|state| state.name.clone()).collect();
    let mut chain: Vec<Rule> = Vec::new();
    for (index, pair) in names[..steps + 2].windows(2).enumerate() {
        let role = if index == 0 { Role::Initiator } else { choices.role() };
        chain.push(varied(
            Rule::plain(
                format!("step{index}").into(),
                vec![pair[0].clone()],
                Some(pair[1].clone()),
                RoleSet::one(role),
            ),
            choices,
        ));
    }
    let finish = |action: &str, from: &str, to: &str, role| {
        Rule::plain(action.into(), vec![from.into()], Some(to.into()), RoleSet::one(role))
    };
    chain.push(finish("finish", "effect", "after", Role::Executor));
    chain.push(finish("again", "after", "effect", Role::Executor));
    chain.push(finish("close", "after", "done", Role::Approver));
    let required = chain[..=steps].iter().fold(RoleSet::EMPTY, |all, rule| all.union(rule.roles));
    let extras = (0..choices.below(5)).map(|index| extra(index, &names, choices)).collect();
    let open = names[..=steps].to_vec();
    let rules = Rules {
        schema_version: 1,
        name: "generated".into(),
        version: 1,
        title: "generated".to_owned(),
        description: String::new(),
        initial: "draft".into(),
        required_roles: if required.len() < 2 { required.with(Role::Executor) } else { required },
        one_open_per_creator: false,
        hold: Some(Hold {
            roles: RoleSet::one(Role::Approver),
            release_roles: RoleSet::one(Role::SecurityAdmin),
            blocks: vec!["again".into(), format!("step{steps}").into()],
        }),
        timers: vec![
            Timer { from: open, due: Due::After(span(500)), to: "lost".into() },
            Timer { from: vec!["effect".into()], due: Due::After(span(300)), to: "after".into() },
        ],
        states,
        transitions: chain,
        payload_schema: json!({"properties": {"risk": {}}, "required": ["risk"]}),
    };
    (rules, extras)
}

fn varied(mut rule: Rule, choices: &mut Choices<'_>) -> Rule {
    match choices.below(5) {
        0 => rule.quorum = Some(1),
        1 => rule.quorum = Some(2),
        2 => {
            rule.quorum = Some(1);
            rule.quorum_if = Some(QuorumIf { pointer: "/risk".to_owned(), equals: json!("high"), quorum: 3 });
        }
        _ => {}
    }
    rule.content_digest_required = rule.quorum.is_some();
    rule.takes_lease = choices.one_in(3).then(|| span(60));
    rule.sets_window = choices.one_in(4).then(|| span(400));
    rule.comment_required = choices.one_in(4);
    rule.attempts = choices.one_in(5).then_some(2);
    rule
}

fn extra(index: usize, names: &[Name], choices: &mut Choices<'_>) -> Rule {
    let pick = |choices: &mut Choices<'_>| names[choices.below(names.len())].clone();
    let from = vec![pick(choices)];
    let to = Some(pick(choices)).filter(|_| !choices.one_in(5));
    let mut roles = RoleSet::one(choices.role());
    if choices.one_in(2) {
        roles = roles.with(choices.role());
    }
    let mut rule = varied(Rule::plain(format!("extra{index}").into(), from, to, roles), choices);
    match choices.below(8) {
        0 => rule.own = Some(Own::Creator),
        1 => rule.own = Some(Own::Voter),
        2 => rule.own = Some(Own::Holder),
        3 => rule.voids_votes = true,
        4 => rule.inside_window = true,
        5 => {
            rule.own = Some(Own::Voter);
            rule.takes_back_vote = true;
        }
        6 => rule.not_by_executor = true,
        _ => {}
    }
    rule
}

/// The chain with as many of the extra rules as the prover accepts, or `None` if the chain itself is flawed. What a
/// state waits for has nothing to do with rights, and is set to whatever fits.
fn proved(choices: &mut Choices<'_>) -> Option<Definition> {
    let (mut rules, extras) = rules(choices);
    let passes = |rules: &mut Rules| {
        for index in 0..rules.states.len() {
            let name = rules.states[index].name.clone();
            let acting = rules.transitions.iter().filter(|rule| rule.leads_from(&name));
            let acting = acting.fold(RoleSet::EMPTY, |all, rule| all.union(rule.roles));
            let ends = rules.states[index].kind == Kind::Terminal;
            rules.states[index].waits_for = if ends { RoleSet::EMPTY } else { acting };
        }
        crate::workflow::check::check(rules).is_empty()
    };
    if !passes(&mut rules) {
        return None;
    }
    for extra in extras {
        rules.transitions.push(extra);
        if !passes(&mut rules) {
            rules.transitions.pop();
            passes(&mut rules);
        }
    }
    let [like, _] = builtin();
    Some(Definition::from_rules(rules, &like))
}

const PEOPLE: [(&str, Role); 12] = [
    ("ana", Role::Initiator),
    ("ada", Role::Initiator),
    ("amy", Role::Initiator),
    ("ben", Role::Approver),
    ("bea", Role::Approver),
    ("bob", Role::Approver),
    ("sam", Role::SecurityAdmin),
    ("sue", Role::SecurityAdmin),
    ("sid", Role::SecurityAdmin),
    ("eve", Role::Executor),
    ("eli", Role::Executor),
    ("edo", Role::Executor),
];

/// An item's life, tracked independently of the engine.
struct History {
    definition: Definition,
    item: Item,
    /// People and machines alike.
    acted_as: BTreeMap<ActorId, Role>,
    /// Who has granted the current content, and for which person.
    stands: BTreeMap<ActorId, (Role, ActorId)>,
    record: Vec<(Request, Caller, Transition)>,
}

impl History {
    fn begin(definition: Definition, risk: &str) -> (History, Item) {
        let payload = json!({"risk": risk, "purpose": "p", "operation": "o", "rollback_plan": "r"});
        let content_digest = ContentDigest::of("t", &payload, "0");
        let id = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        let ana = Actor::new("ana".parse().unwrap(), Role::Initiator);
        let request = NewItem { id, content: Content::judge(&definition, "t", &payload, content_digest) };
        let (_, item) = decide_creation(&definition, &request, &ana, Time::EPOCH, OpenItems::default()).unwrap();
        let acted_as = BTreeMap::from([(ana.actor_id.clone(), ana.role)]);
        let stands = BTreeMap::from([(ana.actor_id.clone(), (ana.role, ana.actor_id))]);
        let history = History { definition, item: item.clone(), stands, acted_as, record: Vec::new() };
        (history, item)
    }

    fn rule(&self, action: &str) -> Option<&Rule> {
        self.definition.all_rules().iter().find(|rule| *rule.action == *action)
    }

    fn follow(&mut self, request: Request, caller: Caller, transition: Transition) {
        let before = self.item.clone();
        let after = before.after(&transition);
        assert_eq!(after.version, before.version + 1);
        assert!(transition.at() >= before.updated_at, "time ran backwards");
        assert_eq!(after.workflow, before.workflow);
        if let Some(actor) = transition.actor() {
            for one in [&actor.actor_id, actor.person()] {
                let part = *self.acted_as.entry(one.clone()).or_insert(actor.role);
                assert_eq!(part, actor.role, "{one} acted in two roles");
            }
        }
        self.words(&transition);
        let effect = |name: &str| self.definition.rules().state(name).unwrap().kind == Kind::Effect;
        if effect(&after.state) && !effect(&before.state) {
            self.may_take_effect(&transition, &before);
        }
        self.votes_count(&transition, &before, &after);
        self.record.push((request, caller, transition));
        self.item = after;
    }

    fn words(&mut self, transition: &Transition) {
        let Some(actor) = transition.actor() else { return };
        if &**transition.action() == "edit" {
            self.stands.clear();
        }
        let rule = self.rule(transition.action()).cloned();
        if rule.as_ref().is_some_and(|rule| rule.takes_back_vote) {
            self.stands.remove(&actor.actor_id);
            return;
        }
        if rule.as_ref().is_none_or(|rule| rule.holds.is_none()) {
            self.stands.insert(actor.actor_id.clone(), (actor.role, actor.person().clone()));
        }
    }

    /// Invariant 2, and that a hold holds.
    fn may_take_effect(&self, transition: &Transition, before: &Item) {
        assert!(transition.actor().is_some(), "time brought about an effect");
        assert!(!before.held, "held, yet it ran");
        let required = self.definition.rules().required_roles;
        let mut people = BTreeSet::new();
        for role in required.iter() {
            let granted = self.stands.values().find(|(part, _)| *part == role);
            people.insert(&granted.unwrap_or_else(|| panic!("an effect without {role}")).1);
        }
        assert_eq!(people.len(), required.len() as usize, "one person stood for two roles");
    }

    /// Each person once, on the current content, and enough of them.
    fn votes_count(&self, transition: &Transition, before: &Item, after: &Item) {
        let voters: BTreeSet<_> = after.votes.iter().map(|vote| &vote.actor_id).collect();
        let people: BTreeSet<_> =
            after.votes.iter().map(|vote| vote.operated_by.as_ref().unwrap_or(&vote.actor_id)).collect();
        assert_eq!((voters.len(), people.len()), (after.votes.len(), after.votes.len()), "someone counts twice");
        assert!(
            after.votes.iter().all(|vote| vote.content_digest == after.content_digest),
            "a vote outlived its content"
        );
        let cast = |change: &Change| matches!(change, Change::VoteCast(_));
        if transition.from() != Some(transition.to()) && transition.changes().iter().any(cast) {
            let rule = self.rule(transition.action()).unwrap();
            let actor = transition.actor().unwrap();
            let is_other = |vote: &Vote| vote.actor_id != actor.actor_id && vote.person() != actor.person();
            let counts = |vote: &&Vote| vote.action == rule.action && is_other(vote);
            let needed = if before.payload.value()["risk"] == "high" && rule.quorum_if.is_some() {
                3
            } else {
                rule.quorum.unwrap()
            };
            assert!(before.votes.iter().filter(counts).count() + 1 >= needed as usize, "too few votes");
            assert!(needed >= 1);
        }
    }

    /// A verifier reaches the same verdicts from what was recorded.
    fn replay(&self, mut item: Item) {
        for (request, caller, recorded) in &self.record {
            let again = decide(&self.definition, &item, request, caller, recorded.at()).unwrap();
            assert_eq!(again, *recorded);
            item = item.after(&again);
        }
        assert_eq!(item, self.item);
    }
}

/// Someone of the cast, mostly with a role that fits; now and then in a role other than their own, as after a change to
/// the role map.
fn caller(choices: &mut Choices<'_>, fitting: RoleSet) -> Caller {
    let fits: Vec<_> = PEOPLE.into_iter().filter(|(_, role)| fitting.contains(*role)).collect();
    let (name, own_role) = match fits.get(choices.below(fits.len() + 1)) {
        Some(fit) => *fit,
        None => PEOPLE[choices.below(PEOPLE.len())],
    };
    let role = if choices.one_in(9) { choices.role() } else { own_role };
    // Anyone may turn out to be a machine, of anyone: role maps change.
    let operator = choices.one_in(4).then(|| PEOPLE[choices.below(PEOPLE.len())].0);
    let operated_by = operator.filter(|operator| *operator != name).map(|operator| operator.parse().unwrap());
    Caller::Actor(Actor { operated_by, ..Actor::new(name.parse().unwrap(), role) })
}

fn request(choices: &mut Choices<'_>, history: &History, now: Time) -> (Request, Caller) {
    let item = &history.item;
    match choices.below(16) {
        1 => return (Request::Timer, Caller::Timer),
        2 => {
            let payload = json!({"note": choices.below(3), "risk": if choices.one_in(2) { "high" } else { "low" }});
            let content_digest = ContentDigest::of("t", &payload, &item.version.to_string());
            let (title, payload) = EditRequest::edited(item, None, Some(&payload));
            let content = Some(Content::judge(&history.definition, &title, &payload, content_digest));
            let request = EditRequest { content, made_from: item.content_digest.clone(), if_match: None };
            return (Request::Edit(request), caller(choices, RoleSet::one(Role::Initiator)));
        }
        _ => {}
    }
    // Mostly what could work here, so that histories make progress.
    let all = history.definition.all_rules();
    let here: Vec<_> = all.iter().filter(|rule| rule.leads_from(&item.state)).collect();
    let rule = here.get(choices.below(here.len() + 1)).copied().unwrap_or(&all[choices.below(all.len())]);
    let inputs = rule.sets_window.is_some().then(|| json!({"not_after": now.plus(Duration::from_secs(100))}));
    let request = ActionRequest {
        action: rule.action.to_string(),
        content_digest: Some(item.content_digest.to_string()),
        comment: Some("c".to_owned()),
        inputs,
        if_match: None,
    };
    (Request::Act(request), caller(choices, rule.roles))
}

fn drive(bytes: &[u8]) -> Option<bool> {
    let mut choices = Choices(bytes.iter());
    let definition = proved(&mut choices)?;
    let (mut history, created) = History::begin(definition, if choices.one_in(2) { "high" } else { "low" });
    let mut now = Time::EPOCH;
    let mut took_effect = false;
    while choices.left() {
        now = now.plus(Duration::from_secs([0, 1, 0, 2, 0, 1, 0, 70][choices.below(8)]));
        let (request, caller) = request(&mut choices, &history, now);
        if let Ok(transition) = decide(&history.definition, &history.item, &request, &caller, now) {
            offered(&history, &request, &caller, now);
            took_effect |= &**transition.to() == "effect";
            history.follow(request, caller, transition);
        }
    }
    history.replay(created);
    Some(took_effect)
}

/// Whatever is accepted was among the actions offered to the caller.
fn offered(history: &History, request: &Request, caller: &Caller, now: Time) {
    let action = match request {
        Request::Act(request) => request.action.as_str(),
        Request::Edit(_) => "edit",
        Request::Timer => return,
    };
    let Caller::Actor(actor) = caller else { return };
    let may = actions_for(&history.definition, &history.item, actor, now);
    assert!(may.iter().any(|may| **may == *action), "{action} was accepted but not offered");
}

proptest! {
    // PROPTEST_CASES asks for more, never for fewer.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(10_000)))]
    #[test]
    fn no_definition_that_passes_the_prover_ever_breaks_an_invariant(bytes in proptest::collection::vec(any::<u8>(), 40..300)) {
        drive(&bytes);
    }
}

/// The test above would prove nothing if hardly any definition passed or hardly any item took effect.
#[test]
fn generated_definitions_mostly_pass_and_their_items_often_take_effect() {
    let mut random = 1_u64;
    let mut verdicts = BTreeMap::new();
    for _ in 0..1_000 {
        let bytes: Vec<u8> = (0..300)
            .map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                random.to_be_bytes()[0]
            })
            .collect();
        *verdicts.entry(drive(&bytes)).or_insert(0) += 1;
    }
    assert!(verdicts.get(&None).copied().unwrap_or(0) < 400, "{verdicts:?}");
    assert!(verdicts.get(&Some(true)).copied().unwrap_or(0) > 100, "{verdicts:?}");
}
