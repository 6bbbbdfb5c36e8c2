//! An item on a page: content, state, votes, history, and what the reader can do.

use pilot_api::items::{ItemView, TransitionView};
use pilot_api::outlook::{BlockedView, EffectView, HoldView, OutlookView, TallyView, WaitingView};
use pilot_api::workflows::{RuleView, WorkflowView};
use pilot_core::time::Time;
use serde_json::Value;

use crate::items::FoundItem;
use crate::output::page::Page;

/// How much of a history is shown unless all of it is asked for.
const HISTORY_SHOWN: usize = 20;

pub(crate) struct Shown<'a> {
    pub item: &'a ItemView<'a>,
    pub outlook: Option<&'a OutlookView>,
    pub definition: &'a WorkflowView,
    pub history: &'a [TransitionView<'a>],
    /// All of the history.
    pub whole: bool,
}

impl<'a> Shown<'a> {
    pub(crate) fn new(
        found: &'a FoundItem,
        definition: &'a WorkflowView,
        history: &'a [TransitionView<'a>],
    ) -> Shown<'a> {
        Shown { item: &found.view, outlook: found.outlook.as_ref(), definition, history, whole: false }
    }
}

pub(crate) fn write_item(page: &mut Page, shown: &Shown<'_>) {
    page.heading(&shown.item.title);
    write_state(page, shown);
    page.blank();
    write_content(page, shown.item);
    page.blank();
    write_history(page, shown);
    write_progress(page, shown.history);
    page.blank();
    write_actions(page, shown);
    write_blocked(page, shown.outlook);
}

/// `2026-11-15 09:30:00`, in UTC.
pub(crate) fn short(time: Time) -> String {
    let text = time.to_string();
    text.get(..19).unwrap_or(&text).replacen('T', " ", 1)
}

fn write_state(page: &mut Page, shown: &Shown<'_>) {
    let Shown { item, definition, .. } = *shown;
    let describe = definition.state(&item.state).map_or("", |state| &*state.description);
    let pause = if describe.is_empty() { "" } else { ": " };
    page.pair("Id", item.id.as_str());
    page.pair(
        "Workflow",
        &format!("{} {}, version {} of the item", item.workflow.name, item.workflow.version, item.version),
    );
    page.pair("Created", &format!("{} UTC by {}", short(item.created_at), item.created_by.actor_id));
    page.pair("State", &format!("{}{pause}{describe}", item.state));
    if item.held {
        write_hold(page, shown.outlook.and_then(|outlook| outlook.hold.as_ref()));
    }
    if !item.waits_for.is_empty() {
        let roles: Vec<_> = item.waits_for.iter().map(ToString::to_string).collect();
        page.pair("Waits", &format!("for {}", roles.join(" or ")));
        shown.outlook.iter().flat_map(|outlook| &outlook.waiting).for_each(|waiting| write_waiting(page, waiting));
    }
    if let Some(votes) = &item.votes {
        let by: Vec<_> = votes.by.iter().map(|voter| voter.as_str()).collect();
        let by = if by.is_empty() { String::new() } else { format!(": {}", by.join(", ")) };
        page.pair("Votes", &format!("{} of {} for {}{by}", votes.have, votes.need, votes.action));
    }
    if let Some(window) = item.window.as_ref() {
        page.pair("Window", &format!("{} to {} UTC", short(window.not_before), short(window.not_after)));
    }
    if let Some(lease) = item.lease.as_ref() {
        page.pair("Lease", &format!("{} until {} UTC", lease.holder, short(lease.expires_at)));
    }
    if item.attempts > 0 {
        page.pair("Attempts", &item.attempts.to_string());
    }
    if let Some(due_at) = item.due_at {
        page.pair("Until", &format!("{} UTC, then it leaves this state by itself", short(due_at)));
    }
}

fn write_hold(page: &mut Page, hold: Option<&HoldView>) {
    let Some(HoldView { actor_id, role, at, comment }) = hold else {
        page.pair("Held", "yes: until it is released, it cannot go forward");
        return;
    };
    let since = short(*at);
    page.pair("Held", &format!("by {actor_id} ({role}) since {since} UTC; until it is released, it cannot go forward"));
    if let Some(comment) = comment {
        page.quote(comment);
    }
}

/// `ben or bea can approve; 2 are needed`
fn write_waiting(page: &mut Page, waiting: &WaitingView) {
    let WaitingView { action, role, actors, others, needed } = waiting;
    let mut names: Vec<_> = actors.iter().map(ToString::to_string).collect();
    match others {
        0 => {}
        1 => names.push("one other".into()),
        others => names.push(format!("{others} others")),
    }
    let who = match names.as_slice() {
        [] => format!("nobody ({role}) can {action} now"),
        [one] => format!("{one} can {action}"),
        [first @ .., last] => format!("{} or {last} can {action}", first.join(", ")),
    };
    let needed = if *needed > 1 { format!("; {needed} are needed") } else { String::new() };
    page.pair("", &format!("{who}{needed}"));
}

/// The content, and the digest that a decision names.
pub(crate) fn write_content(page: &mut Page, item: &ItemView<'_>) {
    page.heading("Content");
    let payload = item.payload.value();
    match payload.as_object() {
        Some(members) => members.iter().for_each(|(name, value)| write_member(page, name, value)),
        None => page.quote(&payload.to_string()),
    }
    page.pair("Digest", item.content_digest.as_str());
}

fn write_member(page: &mut Page, name: &str, value: &Value) {
    match value {
        Value::String(text) if !text.contains('\n') => page.quote(&format!("{name}: {text}")),
        Value::String(text) => {
            page.quote(&format!("{name}:"));
            page.quote(&text.lines().map(|line| format!("    {line}\n")).collect::<String>());
        }
        Value::Array(_) | Value::Object(_) => {
            let text = serde_json::to_string_pretty(value).unwrap_or_default();
            page.quote(&format!("{name}: {text}"));
        }
        other => page.quote(&format!("{name}: {other}")),
    }
}

fn write_history(page: &mut Page, shown: &Shown<'_>) {
    page.heading("History (UTC)");
    let told: Vec<_> = shown.history.iter().filter(|entry| shown.whole || entry.action != "heartbeat").collect();
    let hidden = if shown.whole { 0 } else { told.len().saturating_sub(HISTORY_SHOWN) };
    if hidden > 0 {
        page.line(&format!("… {hidden} earlier; --history shows them"));
    }
    for entry in told.into_iter().skip(hidden) {
        write_entry(page, entry);
    }
}

pub(crate) fn write_entry(page: &mut Page, entry: &TransitionView<'_>) {
    let who = entry.actor_id.as_ref().map_or("a timer", |actor| actor.as_str());
    let moved = match (&entry.from, &entry.to) {
        (Some(from), Some(to)) if from != to => format!(", {from} to {to}"),
        _ => String::new(),
    };
    page.line(&format!("{}  {who}: {}{moved}", short(entry.at), entry.action));
    if let Some(comment) = &entry.comment {
        page.quote(comment);
    }
    if let Some(Value::String(result)) = entry.inputs.as_ref().and_then(|inputs| inputs.get("result")) {
        page.quote(&format!("result: {result}"));
    }
    let artifacts = entry.inputs.as_ref().and_then(|inputs| inputs.get("artifacts")?.as_array());
    for artifact in artifacts.into_iter().flatten() {
        let text = |name: &str| artifact.get(name).and_then(Value::as_str).unwrap_or_default();
        let bytes = artifact.get("bytes").and_then(Value::as_u64);
        let bytes = bytes.map_or(String::new(), |bytes| format!(", {bytes} bytes"));
        page.quote(&format!("artifact {}{bytes} {}\nsha256 {}", text("name"), text("uri"), text("sha256")));
    }
}

/// The last thing the executor said about how far it is, while it is at it.
fn write_progress(page: &mut Page, history: &[TransitionView<'_>]) {
    let last = history.last().filter(|entry| entry.action == "heartbeat");
    let Some(beat) = last else { return };
    let progress = beat.inputs.as_ref().and_then(|inputs| inputs.get("progress")?.as_str());
    page.pair("Progress", &format!("{} UTC", short(beat.at)));
    page.quote(progress.unwrap_or("(nothing said)"));
}

fn write_actions(page: &mut Page, shown: &Shown<'_>) {
    let Shown { item, outlook, definition, .. } = *shown;
    if item.actions.is_empty() {
        page.heading("There is nothing you can do now");
        return;
    }
    page.heading("What you can do now");
    for action in &item.actions {
        page.line(&format!("  {}", effect(action, item, outlook, definition)));
    }
}

/// What others of the same role could do here, and why the reader cannot.
fn write_blocked(page: &mut Page, outlook: Option<&OutlookView>) {
    let blocked = outlook.map_or(&[][..], |outlook| &outlook.blocked);
    if blocked.is_empty() {
        return;
    }
    page.blank();
    page.heading("What you cannot do now");
    for BlockedView { action, detail, until, .. } in blocked {
        let until = until.map_or(String::new(), |until| format!("; possible from {} UTC", short(until)));
        page.line(&format!("  {action}: {detail}{until}"));
    }
}

/// What an action does, and what it needs.
pub(crate) fn effect(
    action: &str,
    item: &ItemView<'_>,
    outlook: Option<&OutlookView>,
    definition: &WorkflowView,
) -> String {
    let of_action = definition.transitions.iter().filter(|rule| rule.action == action);
    let here: Vec<_> = of_action.filter(|rule| rule.leads_from(&item.state)).collect();
    let Some(rule) = here.first() else {
        return match action {
            "edit" => "edit: change title and payload".into(),
            "hold" => "hold: stop it from going forward; needs a comment".into(),
            "release" => "release: end the hold; needs a comment".into(),
            other => other.to_owned(),
        };
    };
    let needs = needs(rule);
    let needs = if needs.is_empty() { String::new() } else { format!("; needs {}", needs.join(" and ")) };
    let told = outlook.and_then(|outlook| outlook.effects.get(action));
    let leads_to = told.map_or_else(|| leads_to(rule, &here, item), |effect| in_words(effect, item));
    format!("{action}: {leads_to}{needs}")
}

/// What the service says it will do.
fn in_words(effect: &EffectView, item: &ItemView<'_>) -> String {
    let to = effect.to.join(" or ");
    let end = if effect.ends { ", and is finished" } else { "" };
    match (effect.vote, effect.moves) {
        (Some(TallyView { count, needed }), true) => format!("your vote, {count} of {needed}; then {to}{end}"),
        (Some(TallyView { count, needed }), false) => format!("your vote, {count} of {needed}; stays {}", item.state),
        (None, true) => format!("becomes {to}{end}"),
        (None, false) => format!("stays {}", item.state),
    }
}

/// The same by the definition, for a service that does not say.
fn leads_to(rule: &RuleView, here: &[&RuleView], item: &ItemView<'_>) -> String {
    let mut to: Vec<_> = here.iter().filter_map(|rule| rule.to.as_deref()).collect();
    to.dedup();
    match (rule.quorum, to.as_slice()) {
        (Some(_), [to]) => {
            let (have, need) = item.votes.as_ref().map_or((0, 1), |votes| (votes.have, votes.need));
            format!("your vote, {} of {need}; then {to}", have + 1)
        }
        (_, []) => format!("stays {}", item.state),
        (_, to) => format!("becomes {}", to.join(" or ")),
    }
}

fn needs(rule: &RuleView) -> Vec<&'static str> {
    let needs = [
        (rule.content_digest_required, "the digest"),
        (rule.comment_required, "a comment"),
        (rule.sets_window.is_some(), "the end of a window"),
        (rule.when.is_some(), "an outcome"),
    ];
    needs.into_iter().filter_map(|(is_needed, what)| is_needed.then_some(what)).collect()
}
