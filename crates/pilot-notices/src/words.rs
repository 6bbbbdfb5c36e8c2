//! The words of a message, which are the same in every chat and in a mail. What people wrote is in them as it can be
//! shown on one line, but not yet escaped: each form has its own rules for that.

use pilot_core::role::Role;
use pilot_core::visible::visible_line;

use crate::message::{Line, Message, Occasion, Person, Task, Why};

/// How many characters of a title are shown.
pub(crate) const TITLE_MAX: usize = 200;
const NAME_MAX: usize = 60;
/// How many actions of an item are shown, and how many people for each.
const TASKS_MAX: usize = 4;
const PEOPLE_MAX: usize = 5;
/// No chat accepts a longer one in a message.
const LINK_MAX: usize = 1_000;

pub(crate) const OPEN: &str = "Open in Pilot";
pub(crate) const NOT_HERE: &str = "You decide in Pilot, not by replying to this message.";

/// Who reads it: everybody in a chat room, or the one person it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Room,
    Person,
}

/// A sentence is made of these, because each form has its own way to mention a person.
#[derive(Debug)]
pub(crate) enum Part<'a> {
    Words(String),
    Person(&'a Person),
}

/// Somebody's text on one line, with nothing hidden in it, and at most so many characters of it.
pub(crate) fn shown(text: &str, most: usize) -> String {
    // A hidden character becomes several, so there is never a need to look at more than this.
    let head: String = text.trim().chars().take(most + 1).collect();
    let visible = visible_line(&head);
    if visible.chars().count() <= most {
        return visible.into_owned();
    }
    let mut cut: String = visible.chars().take(most.saturating_sub(1)).collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

pub(crate) fn name(person: &Person) -> String {
    Some(shown(&person.name, NAME_MAX)).filter(|name| !name.is_empty()).unwrap_or_else(|| "someone".to_owned())
}

/// The title, or the name of the workflow if there is no title to show. Never empty, which chats do not accept.
pub(crate) fn title(line: &Line) -> String {
    let candidates = [line.title.as_deref(), Some(&line.workflow)].into_iter().flatten();
    let mut shown = candidates.map(|text| shown(text, TITLE_MAX)).filter(|text| !text.is_empty());
    shown.next().unwrap_or_else(|| line.item.as_str().to_owned())
}

/// News about one item: its headline is what is asked, which then need not be said again.
pub(crate) fn only(message: &Message) -> Option<&Line> {
    match message.lines.as_slice() {
        [line] if message.more == 0 && message.occasion == Occasion::News => Some(line),
        _ => None,
    }
}

/// What stands above everything: what is asked about a single item, or how many items there are.
pub(crate) fn headline(message: &Message, reader: Reader) -> String {
    only(message).map_or_else(|| counted(message, reader), asked)
}

fn counted(message: &Message, reader: Reader) -> String {
    let count = message.lines.len() + message.more;
    let ended = message.lines.iter().filter(|line| line.why == Why::Ended).count();
    let (operations, wait, have) =
        if count == 1 { ("operation", "waits", "has") } else { ("operations", "wait", "have") };
    let for_you = if reader == Reader::Person { " for you" } else { "" };
    let what = match ended {
        0 => format!("{count} {operations} {wait}{for_you}"),
        _ if ended == message.lines.len() => format!("{count} {operations} {have} ended"),
        _ => format!("News about {count} {operations}"),
    };
    let summary = if message.occasion == Occasion::Summary { "Daily summary: " } else { "" };
    let urgent = message.lines.iter().filter(|line| line.is_urgent).count();
    let urgent = if urgent == 0 { String::new() } else { format!(", {urgent} urgent") };
    format!("{summary}{what}{urgent}")
}

/// What is asked about one item, and how much time is left for it.
pub(crate) fn asked(line: &Line) -> String {
    let actions = actions(line);
    let what = match &line.why {
        Why::Waits if actions.is_empty() => "Action needed".to_owned(),
        Why::Waits => format!("Action needed: {actions}"),
        Why::Reminder { left } => format!("Reminder: {}", left_to(left, &actions)),
        Why::Escalated { left: Some(left) } => format!("Nobody has acted yet: {}", left_to(left, &actions)),
        Why::Escalated { left: None } if actions.is_empty() => "Nobody has acted yet".to_owned(),
        Why::Escalated { left: None } => format!("Nobody has acted yet. Action needed: {actions}"),
        Why::Ended => format!("Ended: {}", spaced(&line.state)),
    };
    if line.is_urgent { format!("URGENT · {what}") } else { what }
}

/// The same among other items, unless the tasks already say it.
pub(crate) fn asked_among_others(line: &Line) -> Option<String> {
    let is_said = line.why == Why::Waits && !line.is_urgent && !line.tasks.is_empty();
    (!is_said).then(|| asked(line))
}

fn left_to(left: &str, actions: &str) -> String {
    let left = shown(left, NAME_MAX);
    if actions.is_empty() { format!("{left} left") } else { format!("{left} left to {actions}") }
}

/// The beginning of a mail's subject about one item. The title follows.
pub(crate) fn subject_head(line: &Line) -> String {
    let what = match &line.why {
        Why::Waits => "Waits for you".to_owned(),
        Why::Reminder { left } => format!("Reminder, {} left", shown(left, NAME_MAX)),
        Why::Escalated { left: Some(left) } => format!("Nobody has acted yet, {} left", shown(left, NAME_MAX)),
        Why::Escalated { left: None } => "Nobody has acted yet".to_owned(),
        Why::Ended => format!("Ended, {}", spaced(&line.state)),
    };
    if line.is_urgent { format!("URGENT: {what}") } else { what }
}

/// `approve`, or `clear or reject`.
fn actions(line: &Line) -> String {
    let mut actions: Vec<_> = line.tasks.iter().map(|task| spaced(&task.action)).collect();
    actions.dedup();
    if actions.len() > TASKS_MAX {
        actions.truncate(TASKS_MAX - 1);
        actions.push("something else".to_owned());
    }
    listed(&actions, "or")
}

/// `mark_failed` as it is spoken.
fn spaced(name: &str) -> String {
    shown(&name.replace('_', " "), NAME_MAX)
}

fn listed(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// `Controlled operation · risk high · created by ana`.
pub(crate) fn facts(line: &Line) -> String {
    let mut facts = vec![shown(&line.workflow, NAME_MAX)];
    facts.retain(|workflow| !workflow.is_empty());
    facts.extend(line.risk.as_deref().map(|risk| format!("risk {}", spaced(risk))));
    facts.push(format!("created by {}", shown(&line.created_by, NAME_MAX)));
    // Without a link, this is what one has to look for.
    if link(line.link.as_deref()).is_none() {
        facts.push(line.item.as_str().to_owned());
    }
    facts.join(" · ")
}

pub(crate) fn until(line: &Line) -> Option<String> {
    line.until.as_deref().map(|until| format!("Until {}", shown(until, NAME_MAX)))
}

/// For each action: `2 approvers must approve: ben, cara, dan or 4 others`.
pub(crate) fn tasks(line: &Line) -> Vec<Vec<Part<'_>>> {
    line.tasks.iter().take(TASKS_MAX).map(sentence).collect()
}

fn sentence(task: &Task) -> Vec<Part<'_>> {
    let who = doers(task.role, task.needed);
    let people = task.who.get(..PEOPLE_MAX).unwrap_or(&task.who);
    let others = task.others + task.who.len() - people.len();
    let mut parts = vec![Part::Words(format!("{who} must {}", spaced(&task.action)))];
    // If nobody is left over, it is not a choice.
    let everybody = others == 0 && usize::try_from(task.needed).is_ok_and(|needed| needed >= people.len());
    let last = if everybody { " and " } else { " or " };
    for (place, person) in people.iter().enumerate() {
        let between = match place {
            0 => ": ",
            _ if others == 0 && place + 1 == people.len() => last,
            _ => ", ",
        };
        parts.push(Part::Words(between.to_owned()));
        parts.push(Part::Person(person));
    }
    match (others, people.is_empty()) {
        (0, _) => {}
        (1, false) => parts.push(Part::Words(" or 1 other".to_owned())),
        (1, true) => parts.push(Part::Words(": 1 person can".to_owned())),
        (_, false) => parts.push(Part::Words(format!(" or {others} others"))),
        (_, true) => parts.push(Part::Words(format!(": {others} people can"))),
    }
    parts
}

/// `An approver`, or `2 security admins`.
fn doers(role: Role, needed: u32) -> String {
    let one = match role {
        Role::Initiator => "An initiator",
        Role::Approver => "An approver",
        Role::SecurityAdmin => "A security admin",
        Role::Executor => "An executor",
        Role::Auditor => "An auditor",
    };
    match (needed, one.split_once(' ')) {
        (2.., Some((_, role))) => format!("{needed} {role}s"),
        _ => one.to_owned(),
    }
}

/// Our own address of an item or a list, unless it has a character that would end a link somewhere.
pub(crate) fn link(link: Option<&str>) -> Option<&str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#@!$&+,;=%".contains(&byte);
    link.filter(|link| link.starts_with("https://") || link.starts_with("http://"))
        .filter(|link| link.len() <= LINK_MAX && link.bytes().all(fits))
}

/// What follows the items: how many more there are, or that there is a list of all.
pub(crate) fn rest(message: &Message) -> Option<String> {
    match message.more {
        0 if message.lines.len() > 1 && link(message.link.as_deref()).is_some() => Some("Everything that waits".into()),
        0 => None,
        more => Some(format!("{more} more")),
    }
}

#[cfg(test)]
mod tests;
