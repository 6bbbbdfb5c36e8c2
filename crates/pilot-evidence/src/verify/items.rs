//! Whether every item moved by its rules: calls `decide` again for each entry.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use pilot_core::actor::Actor;
use pilot_core::decide::Unasked;
use pilot_core::entry::EntryType;
use pilot_core::item::{Item, ItemId};
use pilot_core::workflow::{Definition, Rule};

use super::contents::{Contents, Held, Mark};
use super::register::Credentials;
use super::role_maps::Starts;
use super::verdict::{Check, Control, Fault, Finding, ItemVerdict, Open, Outcome, short};
use crate::replay::{Step, Stray, follow};

/// An item, and its entries in order.
pub(crate) struct History<'c> {
    pub id: &'c ItemId,
    marks: Vec<&'c Mark>,
}

impl<'c> History<'c> {
    pub(crate) fn len(&self) -> usize {
        self.marks.len()
    }

    /// Reads the entries.
    pub(crate) fn read(&self, contents: &'c Contents<'_>) -> io::Result<Vec<Held<'c>>> {
        self.marks.iter().map(|mark| contents.held(mark)).collect()
    }
}

/// The items a bundle is about, ordered by their first entry: for a period, those with an entry in it.
pub(crate) fn histories<'c>(contents: &'c Contents<'_>) -> Vec<History<'c>> {
    // Items are numbered in the order of their first entries.
    let mut all: Vec<_> = contents.items.iter().map(|id| History { id, marks: Vec::new() }).collect();
    for mark in &contents.entries {
        if let Some(history) = mark.item.and_then(|number| all.get_mut(number as usize)) {
            history.marks.push(mark);
        }
    }
    all.retain(|history| history.marks.iter().any(|mark| contents.is_inside(mark.index)));
    all
}

/// What is wrong, and what could not be checked, over all items.
#[derive(Default)]
pub(crate) struct Findings {
    pub faults: Vec<Fault>,
    pub unasked: Vec<Open>,
}

/// The result of asking the rules again.
#[derive(Default)]
struct Replay {
    /// After the last entry that could be followed.
    item: Option<Item>,
    fault: Option<(u64, Stray)>,
    /// What only missing documents could answer, and at which entry.
    unasked: Vec<(u64, Unasked)>,
    quorums: Vec<String>,
    /// Moves that had to be within a window, as far as it is known.
    windows: Vec<String>,
}

pub(super) fn judge(
    contents: &Contents<'_>,
    id: &ItemId,
    history: &[Held<'_>],
    starts: &Starts<'_>,
    credentials: &Credentials,
    findings: &mut Findings,
) -> io::Result<Option<ItemVerdict>> {
    let Some(first) = history.first() else { return Ok(None) };
    let digest = first.entry.definition.as_deref().unwrap_or_default();
    let Some(definition) = contents.definitions.get(digest) else {
        let fault =
            Fault::new(Check::Completeness, "definition", format!("the definition {digest} is not in the bundle"));
        findings.faults.push(fault.in_file(first.file).at_entry(first.entry.index).of_item(id));
        return Ok(None);
    };
    let mut replay = replay(contents, definition, history)?;
    // After a gap, the rules can only refuse.
    let fault = match (gap(history), replay.fault.take()) {
        (Some(gap), Some(ruled)) if ruled.0 < gap.0 => Some(ruled),
        (gap, ruled) => gap.or(ruled),
    };
    let role_map = starts.check(id, history, &mut findings.faults);
    let broken = fault.as_ref().map(|(_, stray)| (Control::of_rule(stray.rule()), stray.to_string()));
    if let Some((index, stray)) = &fault {
        let file = history.iter().find(|held| held.entry.index == *index).map_or("", |held| held.file);
        let check = if stray.rule() == VERSION_GAP { Check::Completeness } else { Check::Legality };
        let fault = Fault::new(check, stray.rule(), stray.to_string());
        findings.faults.push(fault.in_file(file).at_entry(*index).of_item(id));
    }
    let open = |(entry, question): &(u64, Unasked)| Open { item: id.clone(), entry: *entry, question: *question };
    findings.unasked.extend(replay.unasked.iter().map(open));
    let mut controls = controls(&replay, broken.as_ref());
    controls.push(role_map);
    controls.push(credentials.check(id, history, &mut findings.faults));
    // An item's bundle never knows who had a credential: that is said once, for the whole bundle.
    let counts =
        |control: &&Finding<Control>| control.name != Control::Credentials || control.outcome != Outcome::NotChecked;
    let outcome = |wanted: Outcome| controls.iter().filter(counts).any(|control| control.outcome == wanted);
    let item = replay.item.as_ref();
    Ok(Some(ItemVerdict {
        id: id.clone(),
        workflow: definition.name().clone(),
        workflow_version: definition.version(),
        title: item.filter(|item| !item.payload.is_left_out()).map(|item| item.title.to_string()),
        state: item.map_or_else(|| "unknown".into(), |item| item.state.clone()),
        version: item.map_or(0, |item| item.version),
        entries: history.len(),
        people: item.into_iter().flat_map(Item::people).collect(),
        replayed: fault.is_none() && replay.unasked.is_empty(),
        outcome: match (outcome(Outcome::Fails), outcome(Outcome::NotChecked)) {
            (true, _) => Outcome::Fails,
            (false, true) => Outcome::NotChecked,
            (false, false) => Outcome::Holds,
        },
        controls,
    }))
}

const VERSION_GAP: &str = "version_gap";

/// Where an entry of an item is missing: the versions show it, whatever the rules say.
fn gap(history: &[Held<'_>]) -> Option<(u64, Stray)> {
    let (first, rest) = history.split_first()?;
    if first.entry.r#type != EntryType::ItemCreated {
        let what = format!("the history begins with {}, not with the creation", first.entry.r#type);
        return Some((first.entry.index, Stray::wrong(VERSION_GAP, what)));
    }
    let Some(mut version) = first.entry.version else {
        return Some((first.entry.index, Stray::wrong(VERSION_GAP, "it has no version".to_owned())));
    };
    for held in rest {
        version = version.saturating_add(u64::from(held.entry.r#type.is_version()));
        if held.entry.version != Some(version) {
            let found = held.entry.version.map_or_else(|| "none".to_owned(), |found| found.to_string());
            let what = format!("its version is {found}; {version} was expected");
            return Some((held.entry.index, Stray::wrong(VERSION_GAP, what)));
        }
    }
    None
}

fn replay(contents: &Contents<'_>, definition: &Definition, history: &[Held<'_>]) -> io::Result<Replay> {
    let mut replay = Replay::default();
    for held in history {
        let entry = &held.entry;
        let brought = contents.brought(entry)?;
        match follow(definition, replay.item.as_ref(), entry, brought.documents()) {
            Ok(Step { item: after, unasked }) => {
                if let Some(before) = &replay.item {
                    let facts = Facts { definition, before, after: &after };
                    replay.quorums.extend(facts.quorum());
                    replay.windows.extend(facts.window());
                }
                replay.unasked.extend(unasked.into_iter().map(|question| (entry.index, question)));
                replay.item = Some(after);
            }
            Err(stray) => {
                replay.fault = Some((entry.index, stray));
                break;
            }
        }
    }
    Ok(replay)
}

/// What a move shows about the controls.
struct Facts<'f> {
    definition: &'f Definition,
    before: &'f Item,
    after: &'f Item,
}

impl Facts<'_> {
    fn rules(&self, wanted: impl Fn(&Rule) -> bool) -> Option<&Rule> {
        let leads = |rule: &&Rule| {
            rule.leads_from(&self.before.state) && rule.to.as_ref() == Some(&self.after.state) && wanted(rule)
        };
        self.definition.rules().transitions.iter().find(leads).filter(|_| self.before.state != self.after.state)
    }

    fn quorum(&self) -> Option<String> {
        let rule = self.rules(|rule| rule.quorum.is_some() && self.after.votes_for(&rule.action).count() > 0)?;
        let names: Vec<_> = self.after.votes_for(&rule.action).map(|vote| vote.actor_id.as_str()).collect();
        let needed = rule.votes_needed(&self.before.payload)?;
        let at_least = if rule.unknown_quorum(&self.before.payload).is_some() { "at least " } else { "" };
        Some(format!("{} {} of {at_least}{needed} ({})", rule.action, names.len(), names.join(", ")))
    }

    fn window(&self) -> Option<String> {
        let rule = self.rules(|rule| rule.inside_window)?;
        let window = self.before.window.as_ref()?;
        let bounds = if window.is_left_out {
            "a window that was left out".to_owned()
        } else {
            format!("{} to {}", window.not_before, window.not_after)
        };
        Some(format!("{} at {} in {bounds}", rule.action, self.after.updated_at))
    }
}

impl Control {
    /// The control that an open question belongs to.
    const fn of_question(question: Unasked) -> Control {
        match question {
            Unasked::Quorum => Control::Quorum,
            Unasked::Window => Control::Window,
            Unasked::Content | Unasked::Payload | Unasked::Comment | Unasked::Inputs | Unasked::Deadline => {
                Control::Steps
            }
        }
    }
}

/// Every control except those that starts and credentials decide.
fn controls(replay: &Replay, broken: Option<&(Control, String)>) -> Vec<Finding<Control>> {
    let mut findings = Vec::new();
    let by_others = [Control::RoleMap, Control::Credentials];
    for control in Control::ALL.into_iter().filter(|control| !by_others.contains(control)) {
        let (Some(item), None) = (&replay.item, broken) else {
            findings.push(match broken {
                Some((which, what)) if *which == control => Finding::fails(control, what.clone()),
                _ => Finding::not_checked(control, "not checked beyond the fault"),
            });
            continue;
        };
        let words = match control {
            Control::People => people_words(item),
            Control::Content => format!("decided on {}", short(item.content_digest.as_str())),
            Control::Times => "never backwards".to_owned(),
            Control::Steps => "each step replayed by the rules".to_owned(),
            Control::Quorum if replay.quorums.is_empty() => "nothing was decided by votes".to_owned(),
            Control::Quorum => replay.quorums.join("; "),
            Control::Window if replay.windows.is_empty() => "nothing was executed".to_owned(),
            Control::Window => replay.windows.join("; "),
            Control::RoleMap | Control::Credentials => continue,
        };
        let asked_of = |question: &Unasked| Control::of_question(*question) == control;
        let open: BTreeSet<_> = replay.unasked.iter().map(|(_, question)| *question).filter(asked_of).collect();
        findings.push(if open.is_empty() {
            Finding::holds(control, words)
        } else {
            let open: Vec<_> = open.into_iter().map(Unasked::words).collect();
            Finding::not_checked(control, format!("{words}; {}: content left out", open.join(", ")))
        });
    }
    findings
}

fn people_words(item: &Item) -> String {
    let words = |actor: Actor| match &actor.operated_by {
        None => format!("{} ({})", actor.actor_id, actor.role),
        Some(operator) => format!("{} ({}, operated by {operator})", actor.actor_id, actor.role),
    };
    item.people().map(words).collect::<Vec<_>>().join(", ")
}

/// The items of workflows that allow each creator one open item, by creator and workflow.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct OpenItems(BTreeMap<(String, String), Theirs>);

#[derive(Debug, Clone, Default, PartialEq)]
struct Theirs {
    open: BTreeSet<ItemId>,
    /// Where the last of those that ended did so.
    last_end: Option<u64>,
}

impl OpenItems {
    /// Takes in the next item, in the order of creation. No two of these may have been open at the same time. Only a
    /// ledger from its beginning can show that, or what follows one.
    pub(crate) fn follow(
        &mut self,
        contents: &Contents<'_>,
        id: &ItemId,
        history: &[Held<'_>],
        faults: &mut Vec<Fault>,
    ) {
        let Some(first) = history.first() else { return };
        let definition = contents.definitions.get(first.entry.definition.as_deref().unwrap_or_default());
        let Some(definition) = definition.filter(|definition| definition.rules().one_open_per_creator) else { return };
        let ends = |held: &&Held<'_>| held.entry.to.as_ref().is_some_and(|to| definition.rules().is_terminal(to));
        let ended = history.iter().find(ends).map(|held| held.entry.index);
        let creator = first.entry.actor_id.as_ref().map(ToString::to_string).unwrap_or_default();
        let whose = (creator, definition.name().to_string());
        let theirs = self.0.entry(whose.clone()).or_default();
        let another_is_open = theirs.open.iter().any(|open| open != id);
        let is_new = contents.is_inside(first.entry.index);
        if is_new && (another_is_open || theirs.last_end.is_some_and(|end| end > first.entry.index)) {
            let what = format!("{} has another {} that is still open; it must end first", whose.0, whose.1);
            let fault = Fault::new(Check::Legality, "state_conflict", what);
            faults.push(fault.in_file(first.file).at_entry(first.entry.index).of_item(id));
        }
        match ended {
            Some(ended) => {
                theirs.open.remove(id);
                theirs.last_end = theirs.last_end.max(Some(ended));
            }
            None => {
                theirs.open.insert(id.clone());
            }
        }
    }
}
