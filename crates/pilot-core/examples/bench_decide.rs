//! How long decisions and proofs take. `cargo xtask bench rules` runs it; by hand:
//! `cargo run --release -p pilot-core --example bench_decide`.
//!
//! One line a measurement: name, nanoseconds, limit, verdict. The process fails when a limit is exceeded.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for developers, stopping at the first surprise"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use pilot_core::actor::{Actor, ActorId};
use pilot_core::decide::{ActionRequest, Caller, Content, EditRequest, IfMatch, Request, actions_for, decide};
use pilot_core::document::ContentDigest;
use pilot_core::item::{Item, Lease, Vote, Window, WorkflowRef};
use pilot_core::payload::Payload;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::Definition;
use pilot_core::workflow::builtin::{CONTROLLED_OPERATION, builtin};
use pilot_core::workflow::report::report;
use serde_json::json;

const DECIDE_NS_MAX: u128 = 2_000;
const PROVE_NS_MAX: u128 = 1_000_000_000;
const ROUNDS: u32 = 20_000;

/// action, state, who asks, in which role.
const CASES: [(&str, &str, &str, Role); 12] = [
    ("approve", "submitted", "bea", Role::Approver),
    ("reject", "submitted", "bea", Role::Approver),
    ("return", "approved", "sam", Role::SecurityAdmin),
    ("withdraw", "submitted", "ana", Role::Initiator),
    ("clear", "approved", "sam", Role::SecurityAdmin),
    ("start", "cleared", "eve", Role::Executor),
    ("heartbeat", "executing", "eve", Role::Executor),
    ("succeed", "executing", "eve", Role::Executor),
    ("retry", "failed", "eve", Role::Executor),
    ("accept", "succeeded", "ben", Role::Approver),
    ("hold", "cleared", "sam", Role::SecurityAdmin),
    ("refused", "submitted", "ana", Role::Approver),
];

fn main() -> ExitCode {
    let [controlled, _] = builtin();
    let mut within = true;
    for (action, state, name, role) in CASES {
        let item = item(&controlled, state);
        let word = if action == "refused" { "approve" } else { action };
        let request = request(word, &item);
        let caller = Caller::Actor(Actor::new(id(name), role));
        let verdict = decide(&controlled, &item, &request, &caller, now());
        assert_eq!(verdict.is_ok(), action != "refused", "{action}: {verdict:?}");
        let ns = measure(ROUNDS, || decide(&controlled, black_box(&item), &request, &caller, now()));
        within &= line(&format!("decide/{action}"), ns, DECIDE_NS_MAX);
    }
    within &= submit(&controlled);
    let draft = item(&controlled, "submitted");
    let ben = Actor::new(id("ben"), Role::Approver);
    within &= line("actions_for", measure(ROUNDS, || actions_for(&controlled, black_box(&draft), &ben, now())), 20_000);
    within &= line("prove/controlled-operation", measure(20, || Definition::parse(CONTROLLED_OPERATION)), PROVE_NS_MAX);
    let largest = largest();
    within &= line("prove/largest", measure(3, || report(&largest, None)), PROVE_NS_MAX);
    if within { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Submitting reads the whole payload, editing merges it: both are bounded by its size, not by two microseconds.
fn submit(definition: &Definition) -> bool {
    let item = item(definition, "draft");
    let ana = Caller::Actor(Actor::new(id("ana"), Role::Initiator));
    let submit = request("submit", &item);
    let within =
        line("decide/submit", measure(ROUNDS, || decide(definition, &item, &submit, &ana, now())), DECIDE_NS_MAX);
    let content_digest = item.content_digest.clone();
    let edit = || {
        let (title, payload) = EditRequest::edited(&item, None, Some(&json!({"purpose": "q"})));
        let content = Some(Content::judge(definition, &title, &payload, content_digest.clone()));
        let edit = EditRequest { content, made_from: content_digest.clone(), if_match: None };
        decide(definition, &item, &Request::Edit(edit), &ana, now())
    };
    within & line("decide/edit", measure(ROUNDS, edit), 20_000)
}

fn line(name: &str, ns: u128, limit: u128) -> bool {
    println!("{name} {ns} limit {limit} {}", if ns <= limit { "ok" } else { "EXCEEDED" });
    ns <= limit
}

/// The best of several passes: what the code costs, without what else the machine was doing.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures elapsed time")]
fn measure<T>(rounds: u32, mut run: impl FnMut() -> T) -> u128 {
    let pass = |run: &mut dyn FnMut() -> T| {
        let start = Instant::now();
        for _ in 0..rounds {
            black_box(run());
        }
        start.elapsed().as_nanos() / u128::from(rounds)
    };
    (0..5).map(|_| pass(&mut run)).min().unwrap_or(0)
}

fn now() -> Time {
    Time::from_unix_micros(1_800_000_000)
}

fn id(name: &str) -> ActorId {
    name.parse().unwrap()
}

fn item(definition: &Definition, state: &str) -> Item {
    let payload =
        json!({"purpose": "p", "operation": "o", "risk": "high", "rollback_plan": "r", "targets": ["a", "b"]});
    let content_digest = ContentDigest::of("t", &payload, "n");
    let votes = if ["draft", "returned"].contains(&state) { &[][..] } else { &["ben"][..] };
    let vote = |name: &&str| Vote {
        actor_id: id(name),
        operated_by: None,
        action: "approve".into(),
        content_digest: content_digest.clone(),
        at: Time::EPOCH,
    };
    let later = Time::from_unix_micros(3_600_000_000);
    Item {
        id: "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap(),
        workflow: WorkflowRef::from(definition),
        title: "t".into(),
        payload: Payload::of(&payload),
        state: state.into(),
        version: 7,
        created_at: Time::EPOCH,
        created_by: Actor::new(id("ana"), Role::Initiator),
        updated_at: Time::EPOCH,
        entered_at: Time::EPOCH,
        held: false,
        window: (state != "approved").then_some(Window::new(Time::EPOCH, later)),
        lease: (state == "executing").then(|| Lease { holder: id("eve"), expires_at: later }),
        votes: votes.iter().map(vote).collect(),
        attempts: 1,
        participants: BTreeMap::from([(id("ana"), Role::Initiator), (id("ben"), Role::Approver)]).into(),
        operators: BTreeSet::new(),
        executors: BTreeSet::new(),
        content_digest,
    }
}

fn request(action: &str, item: &Item) -> Request {
    Request::Act(ActionRequest {
        action: action.to_owned(),
        content_digest: Some(item.content_digest.to_string()),
        comment: Some("looks right to me".to_owned()),
        inputs: (action == "clear").then(|| json!({"not_after": "1970-01-01T02:00:00Z"})),
        if_match: Some(IfMatch::one(7)),
    })
}

/// Everyone may go from everywhere to everywhere: the most situations a definition within the limits can have.
fn largest() -> String {
    let mut text = "schema_version = 1\nname = \"largest\"\nversion = 1\ntitle = \"t\"\ninitial = \"s0\"\n".to_owned();
    text.push_str("required_roles = [\"initiator\", \"approver\"]\n");
    for state in 0..50 {
        let kind = if state >= 45 { "effect" } else { "open" };
        let _ = writeln!(text, "[[state]]\nname = \"s{state}\"\nkind = \"{kind}\"\nwaits_for = [\"initiator\"]");
    }
    let all: Vec<String> = (0..50).map(|state| format!("\"s{state}\"")).collect();
    for rule in 0..200 {
        let special = ["quorum = 9", "takes_lease = \"1m\"", "sets_window = { max = \"1d\" }", "voids = [\"votes\"]"];
        let special = special.get(rule % 4).unwrap();
        let _ = writeln!(
            text,
            "[[transition]]\naction = \"a{rule}\"\nfrom = [{}]\nto = \"s{}\"\n{special}\n\
             roles = [\"initiator\", \"approver\", \"security_admin\", \"executor\"]",
            all.join(", "),
            rule % 50
        );
    }
    text
}
