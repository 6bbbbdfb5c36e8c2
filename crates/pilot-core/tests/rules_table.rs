//! Every role × action × state × relation of both built-in definitions, against tables written by hand from the
//! contract. Nothing here is derived from the definitions, and nothing here asks the engine how it came to a verdict.

use std::collections::{BTreeMap, BTreeSet};

use pilot_core::actor::{Actor, ActorId};
use pilot_core::decide::{ActionRequest, Caller, Content, EditRequest, IfMatch, Request, actions_for, decide};
use pilot_core::document::ContentDigest;
use pilot_core::item::{Item, Lease, Vote, Window, WorkflowRef};
use pilot_core::payload::Payload;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::Definition;
use pilot_core::workflow::builtin::builtin;
use serde_json::json;

/// action | state>state … | roles | owner or excluded | H: a hold blocks it
const CONTROLLED: &str = "
edit            | draft>draft returned>returned                                                   | initiator | creator | H
submit          | draft>submitted returned>submitted                                              | initiator | creator | H
approve         | submitted>approved                                                              | approver  | vote    | H
reject          | submitted>rejected                                                              | approver  |         |
return          | submitted>returned approved>returned                                            | approver security_admin | |
withdraw        | draft>withdrawn returned>withdrawn submitted>withdrawn approved>withdrawn cleared>withdrawn | initiator | creator |
revoke_approval | approved>submitted cleared>submitted                                            | approver  | voter   |
clear           | approved>cleared                                                                | security_admin | | H
refuse          | approved>rejected                                                               | security_admin | |
revoke          | cleared>revoked                                                                 | security_admin | |
start           | cleared>executing                                                               | executor  |         | H
heartbeat       | executing>executing rolling_back>rolling_back                                   | executor  | holder  |
succeed         | executing>succeeded rolling_back>rolled_back                                    | executor  | holder  |
fail            | executing>failed rolling_back>failed                                            | executor  | holder  |
unknown         | executing>indeterminate rolling_back>indeterminate                              | executor  | holder  |
retry           | failed>executing                                                                | executor  |         | H
roll_back       | failed>rolling_back succeeded>rolling_back                                      | executor  |         | H
reconcile       | indeterminate>succeeded                                                         | approver security_admin | not executor |
accept          | succeeded>closed rolled_back>closed                                             | approver  |         | H
dispute         | succeeded>indeterminate rolled_back>indeterminate                               | approver  |         |
";

const EMERGENCY: &str = "
edit            | draft>draft returned>returned                                                   | initiator | creator | H
submit          | draft>submitted returned>submitted                                              | initiator | creator | H
reject          | submitted>rejected                                                              | approver  |         |
return          | submitted>returned                                                              | approver security_admin | |
withdraw        | draft>withdrawn returned>withdrawn submitted>withdrawn cleared>withdrawn        | initiator | creator |
clear           | submitted>cleared                                                               | security_admin | | H
refuse          | submitted>rejected                                                              | security_admin | |
revoke          | cleared>revoked                                                                 | security_admin | |
start           | cleared>executing                                                               | executor  |         | H
heartbeat       | executing>executing rolling_back>rolling_back                                   | executor  | holder  |
succeed         | executing>succeeded rolling_back>rolled_back                                    | executor  | holder  |
fail            | executing>failed rolling_back>failed                                            | executor  | holder  |
unknown         | executing>indeterminate rolling_back>indeterminate                              | executor  | holder  |
retry           | failed>executing                                                                | executor  |         | H
roll_back       | failed>rolling_back succeeded>rolling_back                                      | executor  |         | H
reconcile       | indeterminate>succeeded                                                         | approver security_admin | not executor |
ratify          | succeeded>ratified failed>ratified rolled_back>ratified                         | approver  | vote    | H
condemn         | succeeded>succeeded failed>failed rolled_back>rolled_back                       | approver  | condemn |
dispute         | succeeded>indeterminate rolled_back>indeterminate                               | approver  |         |
";

const ENDS: [&str; 7] = ["closed", "rejected", "withdrawn", "revoked", "expired", "ratified", "condemned"];
const RAN: [&str; 6] = ["executing", "succeeded", "failed", "rolling_back", "rolled_back", "indeterminate"];
const ALL_ROLES: &str = "initiator approver security_admin executor auditor";

struct Row {
    action: &'static str,
    moves: BTreeMap<&'static str, &'static str>,
    roles: Vec<Role>,
    relation: &'static str,
    blocked: bool,
}

fn rows(table: &'static str) -> Vec<Row> {
    table.trim().lines().map(row).collect()
}

fn row(line: &'static str) -> Row {
    let mut cells = line.split('|').map(str::trim);
    let mut next = || cells.next().unwrap_or_default();
    Row {
        action: next(),
        moves: next().split_whitespace().map(|step| step.split_once('>').unwrap()).collect(),
        roles: next().split_whitespace().map(|role| role.parse().unwrap()).collect(),
        relation: next(),
        blocked: next() == "H",
    }
}

/// One case: who asks, as what, for what, of an item in which state.
#[derive(Clone, Copy)]
struct Cell<'a> {
    person: &'a str,
    role: Role,
    state: &'a str,
    held: bool,
    emergency: bool,
}

/// Who took part in an item that is in this state, as told by the contract's table.
fn part(cell: Cell<'_>) -> Option<Role> {
    let later = |state| RAN.contains(&state) || ENDS.contains(&state);
    match cell.person {
        "ana" => Some(Role::Initiator),
        "ben" if cell.state != "draft" => Some(Role::Approver),
        "sam" if cell.state == "cleared" || later(cell.state) => Some(Role::SecurityAdmin),
        "eve" if later(cell.state) => Some(Role::Executor),
        _ => None,
    }
}

fn ben_voted(cell: Cell<'_>) -> bool {
    if cell.emergency {
        ["succeeded", "failed", "rolled_back"].contains(&cell.state)
    } else {
        !["draft", "returned"].contains(&cell.state)
    }
}

fn leased(cell: Cell<'_>) -> bool {
    ["executing", "rolling_back"].contains(&cell.state)
}

/// The verdict by the contract's order of checks: a state when the item moves, else the code of the refusal.
fn expected(row: &Row, cell: Cell<'_>) -> String {
    let refused = |code: &str| code.to_owned();
    if !row.roles.contains(&cell.role) {
        return refused("role_forbidden");
    }
    if part(cell).is_some_and(|part| part != cell.role) {
        return refused("separation_of_duties");
    }
    let stranger = match row.relation {
        "creator" => cell.person != "ana",
        "voter" => ben_voted(cell) && cell.person != "ben",
        "holder" => leased(cell) && cell.person != "eve",
        _ => false,
    };
    if stranger {
        return refused("not_owner");
    }
    let in_round = row.moves.contains_key(cell.state) || row.moves.values().any(|to| *to == cell.state);
    if row.relation == "vote" && cell.person == "ben" && ben_voted(cell) && in_round && !ENDS.contains(&cell.state) {
        return refused("already_decided");
    }
    match row.moves.get(cell.state) {
        None => refused("state_conflict"),
        Some(_) if cell.held && row.blocked => refused("item_held"),
        Some(to) => (*to).to_owned(),
    }
}

fn expected_hold(action: &str, cell: Cell<'_>) -> String {
    let allowed: &[Role] = match action {
        "hold" => &[Role::Approver, Role::SecurityAdmin],
        _ => &[Role::SecurityAdmin],
    };
    if !allowed.contains(&cell.role) {
        return "role_forbidden".to_owned();
    }
    if part(cell).is_some_and(|part| part != cell.role) {
        return "separation_of_duties".to_owned();
    }
    if ENDS.contains(&cell.state) || cell.held == (action == "hold") {
        return "state_conflict".to_owned();
    }
    cell.state.to_owned()
}

fn now() -> Time {
    "2026-11-15T09:30:00Z".parse().unwrap()
}

fn id(name: &str) -> ActorId {
    name.parse().unwrap()
}

/// An item of high risk in the cell's state, half an hour old, with the votes, window and lease that belong there. In
/// `submitted` one of two votes is given; so it is for an emergency that has run.
fn item(definition: &Definition, cell: Cell<'_>) -> Item {
    let created: Time = "2026-11-15T09:00:00Z".parse().unwrap();
    let payload = json!({"incident": "i", "purpose": "p", "operation": "o", "risk": "high", "rollback_plan": "r"});
    let content_digest = ContentDigest::of("t", &payload, "n");
    let vote = |name: &str, action: &str| Vote {
        actor_id: id(name),
        operated_by: None,
        action: action.into(),
        content_digest: content_digest.clone(),
        at: created,
    };
    let mut votes = Vec::new();
    if ben_voted(cell) {
        votes.push(vote("ben", if cell.emergency { "ratify" } else { "approve" }));
        if !cell.emergency && cell.state != "submitted" {
            votes.push(vote("bob", "approve"));
        }
    }
    let took_part = ["ana", "ben", "sam", "eve"]
        .into_iter()
        .filter_map(|person| part(Cell { person, ..cell }).map(|role| (id(person), role)));
    let ran = RAN.contains(&cell.state) || ENDS.contains(&cell.state);
    Item {
        id: "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap(),
        workflow: WorkflowRef::from(definition),
        title: "t".into(),
        payload: Payload::of(&payload),
        state: cell.state.into(),
        version: 7,
        created_at: created,
        created_by: Actor::new(id("ana"), Role::Initiator),
        updated_at: created,
        entered_at: created,
        held: cell.held,
        window: (ran || cell.state == "cleared").then(|| Window::new(created, "2026-11-15T12:00:00Z".parse().unwrap())),
        lease: leased(cell).then(|| Lease { holder: id("eve"), expires_at: "2026-11-15T09:40:00Z".parse().unwrap() }),
        votes,
        attempts: u32::from(ran),
        participants: took_part.collect::<BTreeMap<_, _>>().into(),
        operators: BTreeSet::new(),
        executors: if ran { BTreeSet::from([id("eve")]) } else { BTreeSet::new() },
        content_digest,
    }
}

fn request(definition: &Definition, action: &str, item: &Item) -> Request {
    if action == "edit" {
        let (title, payload) = EditRequest::edited(item, Some("u"), None);
        let content = Content::judge(definition, &title, &payload, ContentDigest::of(&title, &payload, "m"));
        return Request::Edit(EditRequest {
            content: Some(content),
            made_from: item.content_digest.clone(),
            if_match: None,
        });
    }
    Request::Act(ActionRequest {
        action: action.to_owned(),
        content_digest: Some(item.content_digest.to_string()),
        comment: Some("because".to_owned()),
        inputs: match action {
            "clear" => Some(json!({"not_after": "2026-11-15T12:00:00Z"})),
            "reconcile" => Some(json!({"outcome": "succeeded"})),
            _ => None,
        },
        if_match: Some(IfMatch::one(7)),
    })
}

fn verdict(definition: &Definition, action: &str, cell: Cell<'_>) -> String {
    let item = item(definition, cell);
    let caller = Caller::Actor(Actor::new(id(cell.person), cell.role));
    match decide(definition, &item, &request(definition, action, &item), &caller, now()) {
        Ok(transition) => transition.to().to_string(),
        Err(refusal) => refusal.code().to_string(),
    }
}

/// How many cells were compared; every one must agree.
fn compare(definition: &Definition, table: &'static str, emergency: bool) -> usize {
    let rows = rows(table);
    let states: Vec<String> = definition.rules().states.iter().map(|state| state.name.to_string()).collect();
    let mut compared = 0;
    for state in &states {
        for person in ["ana", "ben", "sam", "eve", "new"] {
            for role in ALL_ROLES.split(' ').map(|role| role.parse().unwrap()) {
                for held in [false, true] {
                    let cell = Cell { person, role, state, held, emergency };
                    compared += compare_cell(definition, &rows, cell);
                }
            }
        }
    }
    compared
}

fn compare_cell(definition: &Definition, rows: &[Row], cell: Cell<'_>) -> usize {
    let Cell { person, role, state, held, .. } = cell;
    let mut possible = BTreeSet::new();
    let verdicts = rows.iter().map(|row| (row.action, expected(row, cell)));
    let verdicts = verdicts.chain(["hold", "release"].map(|action| (action, expected_hold(action, cell))));
    let mut compared = 0;
    for (action, wanted) in verdicts {
        let got = verdict(definition, action, cell);
        assert_eq!(got, wanted, "{person} as {role} asks to {action} an item that is {state}, held: {held}");
        if definition.rules().state(&wanted).is_some() {
            possible.insert(action.to_owned());
        }
        compared += 1;
    }
    let actor = Actor::new(id(person), role);
    let shown = actions_for(definition, &item(definition, cell), &actor, now());
    let shown: BTreeSet<String> = shown.iter().map(ToString::to_string).collect();
    assert_eq!(shown, possible, "what {person} as {role} may do in {state}, held: {held}");
    assert_eq!(verdict(definition, "launch", cell), "unknown_action");
    compared
}

#[test]
fn the_controlled_operation_is_what_the_contract_says_in_every_cell() {
    let [controlled, _] = builtin();
    assert_eq!(compare(&controlled, CONTROLLED, false), 16 * 5 * 5 * 2 * 22);
}

#[test]
fn the_emergency_operation_is_what_the_contract_says_in_every_cell() {
    let [_, emergency] = builtin();
    assert_eq!(compare(&emergency, EMERGENCY, true), 16 * 5 * 5 * 2 * 21);
}

#[test]
fn no_action_of_a_definition_is_missing_from_its_table() {
    for (definition, table) in builtin().iter().zip([CONTROLLED, EMERGENCY]) {
        let written: BTreeSet<&str> = rows(table).iter().map(|row| row.action).chain(["hold", "release"]).collect();
        let defined: BTreeSet<&str> = definition.actions().iter().map(|action| &*action.name).chain(["edit"]).collect();
        assert_eq!(written, defined);
    }
}
