//! An item on a page: content, state, votes, history, and what the reader can do.

use pilot_api::items::{ItemView, TransitionView};
use pilot_api::workflows::{RuleView, WorkflowView};
use pilot_core::time::Time;
use serde_json::Value;

use crate::output::page::Page;

/// How much of a history is shown unless all of it is asked for.
const HISTORY_SHOWN: usize = 20;

pub(crate) struct Shown<'a> {
    pub item: &'a ItemView<'a>,
    pub definition: &'a WorkflowView,
    pub history: &'a [TransitionView<'a>],
    /// All of the history.
    pub whole: bool,
}

pub(crate) fn write_item(page: &mut Page, shown: &Shown<'_>) {
    page.heading(&shown.item.title);
    write_state(page, shown.item, shown.definition);
    page.blank();
    write_content(page, shown.item);
    page.blank();
    write_history(page, shown);
    write_progress(page, shown.history);
    page.blank();
    write_actions(page, shown.item, shown.definition);
}

/// `2026-11-15 09:30:00`, in UTC.
pub(crate) fn short(time: Time) -> String {
    let text = time.to_string();
    text.get(..19).unwrap_or(&text).replacen('T', " ", 1)
}

fn write_state(page: &mut Page, item: &ItemView<'_>, definition: &WorkflowView) {
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
        page.pair("Held", "yes: until it is released, it cannot go forward");
    }
    if !item.waits_for.is_empty() {
        let roles: Vec<_> = item.waits_for.iter().map(ToString::to_string).collect();
        page.pair("Waits", &format!("for {}", roles.join(" or ")));
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

fn write_actions(page: &mut Page, item: &ItemView<'_>, definition: &WorkflowView) {
    if item.actions.is_empty() {
        page.heading("There is nothing you can do now");
        return;
    }
    page.heading("What you can do now");
    for action in &item.actions {
        page.line(&format!("  {}", effect(action, item, definition)));
    }
}

/// What an action does, and what it needs.
pub(crate) fn effect(action: &str, item: &ItemView<'_>, definition: &WorkflowView) -> String {
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
    format!("{action}: {}{needs}", leads_to(rule, &here, item))
}

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
