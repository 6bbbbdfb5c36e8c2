//! Whether every item moved by its rules: `decide`, asked again for each entry.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use pilot_core::actor::Actor;
use pilot_core::entry::EntryType;
use pilot_core::item::{Item, ItemId};
use pilot_core::workflow::{Definition, Rule};

use super::contents::{Contents, Held};
use super::outline::Outline;
use super::role_maps::Starts;
use super::verdict::{Check, Control, Fault, Finding, ItemVerdict, Outcome};
use crate::bundle::Scope;
use crate::replay::{Documents, Stray, follow};

/// An item's entries in order.
pub type History<'c, 'b> = Vec<&'c Held<'b>>;

/// The items a bundle is about, by their first entry: for a period, those with an entry in it.
pub fn histories<'c, 'b>(contents: &'c Contents<'b>) -> Vec<(ItemId, History<'c, 'b>)> {
    let is_inside = |index: u64| match contents.manifest.scope {
        Scope::Item(_) => true,
        Scope::Period { first, end, .. } => (first..end).contains(&index),
    };
    let mut all: BTreeMap<&ItemId, History<'c, 'b>> = BTreeMap::new();
    for held in &contents.entries {
        if let Some(item) = &held.entry.item {
            all.entry(item).or_default().push(held);
        }
    }
    let touched = all.into_iter().filter(|(_, history)| history.iter().any(|held| is_inside(held.entry.index)));
    let mut touched: Vec<_> = touched.map(|(id, history)| (id.clone(), history)).collect();
    touched.sort_by_key(|(_, history)| history.first().map(|held| held.entry.index));
    touched
}

/// The documents of an entry that the bundle holds.
pub fn documents<'b>(contents: &Contents<'b>, held: &Held<'_>) -> Documents<'b> {
    let entry = &held.entry;
    let brings = matches!(entry.r#type, EntryType::ItemCreated | EntryType::ItemEdited);
    let find = |digest: Option<&_>| digest.and_then(|digest| contents.documents.get(digest)).copied();
    Documents {
        content: find(entry.content.as_ref().filter(|_| brings)),
        comment: find(entry.comment.as_ref()),
        inputs: find(entry.inputs.as_ref()),
    }
}

/// Which documents the bundle should hold: those of the items it is about.
pub fn documents_named<'c>(
    histories: &'c [(ItemId, History<'_, '_>)],
) -> BTreeSet<&'c pilot_core::document::ContentDigest> {
    let entries = histories.iter().flat_map(|(_, history)| history.iter().map(|held| &held.entry));
    entries.flat_map(|entry| [&entry.content, &entry.comment, &entry.inputs]).flatten().collect()
}

/// How far the rules could be asked again.
struct Replay {
    item: Option<Item>,
    /// Whether every entry was followed.
    whole: bool,
    fault: Option<(u64, Stray)>,
    quorums: Vec<String>,
    windows: Vec<String>,
}

pub fn judge(
    contents: &Contents<'_>,
    id: &ItemId,
    history: &[&Held<'_>],
    starts: &Starts<'_>,
    faults: &mut Vec<Fault>,
) -> Option<ItemVerdict> {
    let first = history.first()?;
    let digest = first.entry.definition.as_deref().unwrap_or_default();
    let Some(definition) = contents.definitions.get(digest) else {
        let fault =
            Fault::new(Check::Completeness, "definition", format!("the definition {digest} is not in the bundle"));
        faults.push(fault.in_file(first.file).at_entry(first.entry.index).of_item(id));
        return None;
    };
    let (outline, sketched) = sketch(definition, history);
    let mut replay = replay(contents, definition, history);
    // The earlier fault is the one to name; of two at one place, the one the rules themselves give.
    // Only a gap goes before them: what follows one, the rules cannot but refuse.
    let fault = match (replay.fault.take(), sketched) {
        (Some(ruled), Some(sketched)) if sketched.0 < ruled.0 || is_gap(&sketched.1) => Some(sketched),
        (ruled, sketched) => ruled.or(sketched),
    };
    let role_map = starts.check(id, history, faults);
    let broken = fault.as_ref().map(|(_, stray)| (Control::of_rule(stray.rule()), stray.to_string()));
    if let Some((index, stray)) = &fault {
        let file = history.iter().find(|held| held.entry.index == *index).map_or("", |held| held.file);
        let check = if is_gap(stray) { Check::Completeness } else { Check::Legality };
        faults.push(Fault::new(check, stray.rule(), stray.to_string()).in_file(file).at_entry(*index).of_item(id));
    }
    let mut controls = controls(outline.as_ref(), &replay, broken.as_ref());
    controls.push(role_map);
    let outcome = |wanted: Outcome| controls.iter().any(|control| control.outcome == wanted);
    let people = outline.iter().flat_map(|outline| &outline.people);
    Some(ItemVerdict {
        id: id.clone(),
        workflow: definition.name().clone(),
        workflow_version: definition.version(),
        title: replay.item.as_ref().map(|item| item.title.to_string()),
        state: outline.as_ref().map_or_else(|| "unknown".into(), |outline| outline.state.clone()),
        version: outline.as_ref().map_or(0, |outline| outline.version),
        entries: history.len(),
        people: people.map(|(actor_id, role)| Actor { actor_id: actor_id.clone(), role: *role }).collect(),
        replayed: replay.whole,
        outcome: match (outcome(Outcome::Fails), outcome(Outcome::NotChecked)) {
            (true, _) => Outcome::Fails,
            (false, true) => Outcome::NotChecked,
            (false, false) => Outcome::Holds,
        },
        controls,
    })
}

fn is_gap(stray: &Stray) -> bool {
    stray.rule() == "version_gap"
}

fn sketch(definition: &Definition, history: &[&Held<'_>]) -> (Option<Outline>, Option<(u64, Stray)>) {
    let Some((first, rest)) = history.split_first() else { return (None, None) };
    let mut outline = match Outline::begin(definition, &first.entry) {
        Ok(outline) => outline,
        Err(stray) => return (None, Some((first.entry.index, stray))),
    };
    for held in rest {
        if let Err(stray) = outline.step(definition, &held.entry) {
            return (Some(outline), Some((held.entry.index, stray)));
        }
    }
    (Some(outline), None)
}

fn replay(contents: &Contents<'_>, definition: &Definition, history: &[&Held<'_>]) -> Replay {
    let mut replay = Replay { item: None, whole: true, fault: None, quorums: Vec::new(), windows: Vec::new() };
    for held in history {
        let entry = &held.entry;
        match follow(definition, replay.item.as_ref(), entry, documents(contents, held)) {
            Ok(after) => {
                if let Some(before) = &replay.item {
                    let facts = Facts { definition, before, after: &after };
                    replay.quorums.extend(facts.quorum());
                    replay.windows.extend(facts.window());
                }
                replay.item = Some(after);
            }
            Err(stray) => {
                replay.whole = false;
                replay.fault = (stray != Stray::Erased).then_some((entry.index, stray));
                return replay;
            }
        }
    }
    replay
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
        Some(format!("{} {} of {needed} ({})", rule.action, names.len(), names.join(", ")))
    }

    fn window(&self) -> Option<String> {
        let rule = self.rules(|rule| rule.inside_window)?;
        let window = self.before.window.as_ref()?;
        Some(format!("{} at {} in {} to {}", rule.action, self.after.updated_at, window.not_before, window.not_after))
    }
}

/// Every control but the role map.
fn controls(outline: Option<&Outline>, replay: &Replay, broken: Option<&(Control, String)>) -> Vec<Finding<Control>> {
    let left_out = "content left out";
    let mut findings = Vec::new();
    for control in Control::ALL.into_iter().filter(|control| *control != Control::RoleMap) {
        let (Some(outline), None) = (outline, broken) else {
            findings.push(match broken {
                Some((which, what)) if *which == control => Finding::fails(control, what.clone()),
                _ => Finding::not_checked(control, "not asked beyond the fault"),
            });
            continue;
        };
        findings.push(match control {
            Control::People => Finding::holds(control, people_words(outline)),
            Control::Content => Finding::holds(control, format!("decided on {}", short(outline.content.as_str()))),
            Control::Times => Finding::holds(control, "never backwards"),
            Control::Steps if replay.whole => Finding::holds(control, "each step decided again by the rules"),
            Control::Steps => Finding::not_checked(
                control,
                format!("by the entries alone they are in order; the whole of the rules: {left_out}"),
            ),
            Control::Quorum if replay.whole && replay.quorums.is_empty() => {
                Finding::holds(control, "nothing was voted through")
            }
            Control::Quorum if replay.whole => Finding::holds(control, replay.quorums.join("; ")),
            Control::Quorum => quorum_by_entries(outline, left_out),
            Control::Window if outline.windowed == 0 => Finding::holds(control, "nothing was executed"),
            Control::Window if replay.windows.len() == outline.windowed => {
                Finding::holds(control, replay.windows.join("; "))
            }
            Control::Window => Finding::not_checked(control, left_out),
            Control::RoleMap => continue,
        });
    }
    findings
}

fn quorum_by_entries(outline: &Outline, left_out: &str) -> Finding<Control> {
    let mut words = String::new();
    for carried in &outline.carried {
        let _ = write!(words, "{} {} of at least {}; ", carried.action, carried.have, carried.at_least);
    }
    let words = words.trim_end_matches("; ");
    match (words.is_empty(), outline.carried.iter().all(|carried| carried.is_exact)) {
        (true, _) => Finding::holds(Control::Quorum, "nothing was voted through"),
        (false, true) => Finding::holds(Control::Quorum, words.replace("at least ", "")),
        (false, false) => {
            Finding::not_checked(Control::Quorum, format!("{words}; whether more were needed: {left_out}"))
        }
    }
}

fn people_words(outline: &Outline) -> String {
    let people: Vec<_> = outline.people.iter().map(|(actor_id, role)| format!("{actor_id} ({role})")).collect();
    people.join(", ")
}

/// Enough of a digest to tell it from others on a page.
pub fn short(digest: &str) -> String {
    digest.chars().take("sha256:".len() + 12).collect::<String>() + "…"
}

/// Where a workflow allows each person one open item, no two were open at once. Only a ledger from its beginning tells.
pub fn one_at_a_time(contents: &Contents<'_>, histories: &[(ItemId, History<'_, '_>)], faults: &mut Vec<Fault>) {
    let mut last_end: BTreeMap<(String, String), Option<u64>> = BTreeMap::new();
    for (id, history) in histories {
        let Some(first) = history.first() else { continue };
        let definition = contents.definitions.get(first.entry.definition.as_deref().unwrap_or_default());
        let Some(definition) = definition.filter(|definition| definition.rules().one_open_per_creator) else {
            continue;
        };
        let ends = |held: &&&Held<'_>| held.entry.to.as_ref().is_some_and(|to| definition.rules().is_terminal(to));
        let ended = history.iter().find(ends).map(|held| held.entry.index);
        let creator = first.entry.actor_id.as_ref().map(ToString::to_string).unwrap_or_default();
        let whose = (creator, definition.name().to_string());
        let overlaps = last_end.get(&whose).is_some_and(|end| end.is_none_or(|end| end > first.entry.index));
        if overlaps {
            let what = format!("{} has another {} that is still open; it must end first", whose.0, whose.1);
            let fault = Fault::new(Check::Legality, "state_conflict", what);
            faults.push(fault.in_file(first.file).at_entry(first.entry.index).of_item(id));
        }
        let latest = match (last_end.get(&whose), ended) {
            (Some(None), _) | (_, None) => None,
            (Some(Some(earlier)), Some(ended)) => Some(*earlier.max(&ended)),
            (None, Some(ended)) => Some(ended),
        };
        last_end.insert(whose, latest);
    }
}
