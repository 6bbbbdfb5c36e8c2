//! Who was approved for which role, according to the role map that each start recorded in the ledger.

use std::collections::BTreeSet;
use std::io;

use pilot_core::actor::ActorId;
use pilot_core::entry::EntryType;
use pilot_core::entry::details::{Details, Started};
use pilot_core::item::ItemId;
use pilot_core::role_map::RoleMap;
use pilot_core::workflow::Name;

use super::contents::{Contents, Held, Mark};
use super::verdict::{Check, Control, Fault, Finding, short};

struct Start<'c> {
    index: u64,
    file: &'c str,
    /// The digest of the role map in force, if there was one.
    pinned: Option<String>,
    map: Option<&'c RoleMap>,
    /// The digests of the definitions that new items could be created under.
    definitions: Vec<Name>,
    /// The previous start, according to this one.
    previous: Option<u64>,
}

/// The starts of the service in a bundle, in order.
pub(crate) struct Starts<'c>(Vec<Start<'c>>);

impl<'c> Starts<'c> {
    pub(crate) fn of(contents: &'c Contents<'_>, faults: &mut Vec<Fault>) -> io::Result<Starts<'c>> {
        let mut starts = Starts(Vec::new());
        for start in contents.of_types(&[EntryType::ServiceStarted]) {
            let (mark, entry) = start?;
            // What is in force is never guessed: a start that cannot be read says nothing to rely on.
            let started = if let Some(Details::ServiceStarted(started)) = entry.details() {
                started
            } else {
                let what = "what this start says cannot be read, so neither can what was in force after it";
                let fault = Fault::new(Check::Completeness, "start", what);
                faults.push(fault.in_file(contents.file(mark)).at_entry(mark.index));
                Started::default()
            };
            starts.0.push(Start::of(contents, mark, started));
        }
        for start in &starts.0 {
            if let (Some(digest), None) = (&start.pinned, start.map) {
                let what = format!("it pins the role map {digest}, which is not in the bundle");
                let fault = Fault::new(Check::Completeness, "role_map", what);
                faults.push(fault.in_file(start.file).at_entry(start.index));
            }
        }
        let pinned: BTreeSet<_> = starts.0.iter().filter_map(|start| start.pinned.as_deref()).collect();
        for digest in contents.role_maps.keys().filter(|digest| !pinned.contains(digest.as_str())) {
            let fault = Fault::new(Check::Completeness, "role_map", "no start in this bundle pins it");
            faults.push(fault.in_file(crate::bundle::role_map_path(digest)));
        }
        Ok(starts)
    }

    /// The start in force at an entry. Every ledger begins with a start, so if the bundle has none, it withholds one.
    /// And if the next start names as its predecessor another one from before the entry, that one is withheld.
    fn in_force(&self, index: u64) -> Result<&Start<'c>, String> {
        let after = self.0.partition_point(|start| start.index < index);
        let found = after.checked_sub(1).and_then(|at| self.0.get(at));
        let start = found.ok_or("the start of the service that was in force is not in the bundle")?;
        match self.0.get(after).and_then(|next| next.previous) {
            Some(previous) if (start.index + 1..index).contains(&previous) => {
                Err(format!("the start of the service at entry {previous}, which was in force, is not in the bundle"))
            }
            _ => Ok(start),
        }
    }

    /// Checks every actor of an item against the role map in force at each entry, and its creation against the
    /// definitions.
    pub(crate) fn check(&self, id: &ItemId, history: &[Held<'_>], faults: &mut Vec<Fault>) -> Finding<Control> {
        let control = Control::RoleMap;
        let (mut maps, mut unknown, mut wrong, mut withheld) = (BTreeSet::new(), None, None, false);
        for held in history {
            let entry = &held.entry;
            let mut add = |check, rule, what: String| {
                wrong.get_or_insert_with(|| what.clone());
                let fault = Fault::new(check, rule, what);
                faults.push(fault.in_file(held.file).at_entry(entry.index).of_item(id));
            };
            let start = match self.in_force(entry.index) {
                Ok(start) => start,
                // Reported once per item: its other entries lack the same start.
                Err(_) if withheld => continue,
                Err(what) => {
                    withheld = true;
                    add(Check::Completeness, "start", what);
                    continue;
                }
            };
            let created_under = entry.definition.as_deref().filter(|_| entry.r#type == EntryType::ItemCreated);
            if created_under.is_some_and(|digest| !start.offers(digest)) {
                add(Check::Legality, "definition", "its definition was not in force when it was created".into());
            }
            let (Some(actor_id), Some(role)) = (&entry.actor_id, entry.role) else { continue };
            let Some(map) = start.map else {
                unknown = Some(format!("the start at entry {} pins no role map", start.index));
                continue;
            };
            maps.extend(start.pinned.as_deref());
            match map.find(actor_id).map(|mapped| &mapped.actor) {
                Some(approved) if approved.role != role => {
                    let what = format!("{actor_id} acts as {role}, but the role map in force says {}", approved.role);
                    add(Check::Legality, "role_map", what);
                }
                Some(approved) if approved.operated_by != entry.operated_by => {
                    let said = |operator: &Option<ActorId>| match operator {
                        Some(operator) => format!("operated by {operator}"),
                        None => "operated by nobody".to_owned(),
                    };
                    let (written, approved) = (said(&entry.operated_by), said(&approved.operated_by));
                    let what = format!("{actor_id} acts as {written}, but the role map in force says {approved}");
                    add(Check::Legality, "role_map", what);
                }
                Some(_) => {}
                None => {
                    let what = format!("{actor_id} acts as {role}, but the role map in force does not list them");
                    add(Check::Legality, "role_map", what);
                }
            }
        }
        match (wrong, unknown) {
            (Some(what), _) => Finding::fails(control, what),
            (None, Some(why)) => Finding::not_checked(control, why),
            (None, None) => {
                let maps: Vec<_> = maps.into_iter().map(short).collect();
                Finding::holds(control, format!("everyone as approved in {}", maps.join(", ")))
            }
        }
    }
}

impl<'c> Start<'c> {
    fn of(contents: &'c Contents<'_>, mark: &Mark, started: Started) -> Start<'c> {
        let pinned = started.role_map.map(|digest| digest.to_string());
        Start {
            index: mark.index,
            file: contents.file(mark),
            map: pinned.as_ref().and_then(|digest| contents.role_maps.get(digest)),
            pinned,
            definitions: started.definitions.into_iter().map(|definition| definition.digest).collect(),
            previous: started.previous,
        }
    }

    fn offers(&self, digest: &str) -> bool {
        self.definitions.iter().any(|known| **known == *digest)
    }
}

/// Starts without a role map, for someone who knows which ones may have been in force.
pub(super) fn without_map(contents: &Contents<'_>) -> io::Result<Vec<Fault>> {
    let mut faults = Vec::new();
    for start in contents.of_types(&[EntryType::ServiceStarted]) {
        let (mark, entry) = start?;
        let has_map = matches!(entry.details(), Some(Details::ServiceStarted(started)) if started.role_map.is_some());
        if !has_map {
            let fault = Fault::new(Check::Pins, "pinned_role_map", "from this start on no role map was in force");
            faults.push(fault.in_file(contents.file(mark)).at_entry(mark.index));
        }
    }
    Ok(faults)
}
