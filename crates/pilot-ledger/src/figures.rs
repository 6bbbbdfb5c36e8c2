//! Figures of the whole ledger, counted from its entries. Counting goes on where it ended, so an answer costs what was
//! written since the last one; the first after a start costs one reading of the ledger.

use std::collections::{BTreeMap, HashMap};

use pilot_core::actor::ActorId;
use pilot_core::entry::details::Attempts;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::ItemId;
use pilot_core::limits::PAGE_ITEMS_MAX;
use pilot_core::time::Time;
use pilot_core::workflow::Name;
use pilot_store::{Store, StoreError};
use serde_json::Value;

use crate::workflows::Workflows;

const DAY_SECONDS: i64 = 86_400;
/// How far back anyone can ask.
pub const DAYS_MAX: u64 = 90;

#[derive(Debug, Default)]
pub struct Figures {
    /// How many entries were counted, which is also the index of the next.
    counted: u64,
    /// Memory grows with the items that are open, and by a little for each day of the ledger.
    open: HashMap<ItemId, OpenItem>,
    /// By the number of the day since 1970. None is let go: a clock that was ahead for a while must not cost the others.
    days: BTreeMap<i64, Day>,
    decided: Decided,
}

/// Upper bounds, in seconds, of how long a submission waited for a decision.
pub const WAIT_BOUNDS: [u64; 10] = [60, 300, 900, 3_600, 14_400, 28_800, 86_400, 259_200, 604_800, 2_592_000];

/// How long all submissions of the ledger waited for their first decision.
#[derive(Debug, Clone, Copy, Default)]
pub struct Decided {
    /// How many waited up to each of the bounds, and not up to the one before; the last ones waited longer.
    pub waits: [u64; WAIT_BOUNDS.len() + 1],
    pub seconds: u64,
}

impl Decided {
    pub fn count(&self) -> u64 {
        self.waits.iter().sum()
    }

    fn add(&mut self, seconds: u64) {
        if let Some(count) = self.waits.get_mut(WAIT_BOUNDS.partition_point(|bound| *bound < seconds)) {
            *count += 1;
        }
        self.seconds = self.seconds.saturating_add(seconds);
    }
}

#[derive(Debug)]
struct OpenItem {
    state: Name,
    definition: Option<Name>,
    created_at: Time,
    entered_at: Time,
    /// When and by whom it was submitted, until someone else decides on it.
    submitted: Option<(Time, Option<ActorId>)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Day {
    pub decisions: u64,
    pub created: u64,
    /// Refused attempts by code.
    pub refused: BTreeMap<String, u64>,
    /// How many decisions took as long as this step of the scale.
    pub waits: BTreeMap<u16, u64>,
}

/// The day a time falls on, in UTC.
pub fn day_of(time: Time) -> i64 {
    time.unix_micros().div_euclid(1_000_000 * DAY_SECONDS)
}

impl Figures {
    pub fn counted(&self) -> u64 {
        self.counted
    }

    /// The next entry; any other changes nothing. `is_terminal` is asked with the digest of a definition and a state.
    pub fn count(&mut self, entry: &Entry, is_terminal: impl Fn(&str, &str) -> bool) {
        if entry.index != self.counted {
            return;
        }
        self.counted += 1;
        let day = day_of(entry.at);
        match entry.r#type {
            EntryType::ItemCreated => {
                self.days.entry(day).or_default().created += 1;
                self.begin(entry);
            }
            EntryType::ItemTransition => {
                if is_decision(entry) {
                    self.days.entry(day).or_default().decisions += 1;
                    self.wait(entry, day);
                }
                self.follow(entry, is_terminal);
            }
            EntryType::AccessRefused | EntryType::AccessTokenExposed => {
                let (code, attempts) = attempts(entry);
                *self.days.entry(day).or_default().refused.entry(code).or_default() += attempts;
            }
            _ => {}
        }
    }

    fn begin(&mut self, entry: &Entry) {
        if let (Some(id), Some(state)) = (&entry.item, &entry.to) {
            let definition = entry.definition.clone();
            let item = OpenItem {
                state: state.clone(),
                definition,
                created_at: entry.at,
                entered_at: entry.at,
                submitted: None,
            };
            self.open.insert(id.clone(), item);
        }
    }

    fn follow(&mut self, entry: &Entry, is_terminal: impl Fn(&str, &str) -> bool) {
        let (Some(id), Some(state)) = (&entry.item, &entry.to) else { return };
        let Some(item) = self.open.get_mut(id) else { return };
        if item.state != *state {
            item.state = state.clone();
            item.entered_at = entry.at;
        }
        if item.definition.as_deref().is_some_and(|definition| is_terminal(definition, state)) {
            self.open.remove(id);
        }
    }

    /// How long a submission waited for the first decision of someone else.
    fn wait(&mut self, entry: &Entry, day: i64) {
        let Some(item) = entry.item.as_ref().and_then(|id| self.open.get_mut(id)) else { return };
        if entry.action.as_deref() == Some("submit") {
            item.submitted = Some((entry.at, entry.actor_id.clone()));
        } else if item.submitted.as_ref().is_some_and(|(_, by)| *by != entry.actor_id) {
            let since = item.submitted.take().map_or(entry.at, |(at, _)| at);
            let seconds = entry.at.since(since).as_secs();
            self.decided.add(seconds);
            let step = step_of(seconds);
            *self.days.entry(day).or_default().waits.entry(step).or_default() += 1;
        }
    }

    /// Open items, each by its state, the time of its creation and the time at which it entered that state.
    pub fn open(&self) -> impl Iterator<Item = (&str, Time, Time)> {
        self.open.values().map(|item| (&*item.state, item.created_at, item.entered_at))
    }

    pub fn decided(&self) -> Decided {
        self.decided
    }

    pub fn day(&self, day: i64) -> Option<&Day> {
        self.days.get(&day)
    }
}

/// Counts what was written since the last time, page by page. If nobody waits for it any more, what was counted stays.
pub async fn catch_up(figures: &mut Figures, store: &dyn Store, workflows: &Workflows) -> Result<(), StoreError> {
    let size = store.head().borrow().size();
    let is_terminal = |digest: &str, state: &str| {
        workflows.of_digest(digest).is_some_and(|definition| definition.rules().is_terminal(state))
    };
    while figures.counted() < size {
        let before = figures.counted();
        for stored in store.entries(before, PAGE_ITEMS_MAX).await? {
            let entry = Entry::parse(&stored.bytes).map_err(|error| StoreError::Damaged(error.to_string()))?;
            figures.count(&entry, is_terminal);
        }
        if figures.counted() == before {
            break;
        }
        // Lets others run: a first count may be of millions.
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// What a person did to an item, and not a sign of life.
fn is_decision(entry: &Entry) -> bool {
    entry.actor_id.is_some() && entry.action.as_deref().is_some_and(|action| action != "heartbeat")
}

/// An entry about refusals stands for as many attempts as it counted.
fn attempts(entry: &Entry) -> (String, u64) {
    let read = entry.details.as_ref().map(|details| serde_json::from_value::<Attempts>(Value::clone(details)));
    match read {
        Some(Ok(attempts)) => (attempts.code, attempts.count),
        _ => (entry.r#type.as_str().to_owned(), 1),
    }
}

/// A scale of seconds on which each step is a tenth longer than the one before.
fn step_of(seconds: u64) -> u16 {
    let mut step = 0;
    while seconds_of(step) < seconds && step < u16::MAX {
        step += 1;
    }
    step
}

/// The longest time that belongs to a step.
pub fn seconds_of(step: u16) -> u64 {
    let mut seconds = 0_u64;
    for _ in 0..step {
        seconds = (seconds + 1).max(seconds.saturating_add(seconds / 10));
    }
    seconds
}

/// The step that this share of all waits, in percent, does not exceed.
pub fn percentile(waits: &BTreeMap<u16, u64>, percent: u64) -> Option<u16> {
    let total: u64 = waits.values().sum();
    let wanted = (total * percent).div_ceil(100).max(1);
    let mut seen = 0;
    waits.iter().find_map(|(step, count)| {
        seen += count;
        (seen >= wanted).then_some(*step)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_exact_for_seconds_and_within_a_tenth_beyond() {
        for seconds in [0, 1, 5, 10, 11, 59, 60, 3_600, 86_400, 30 * 86_400] {
            let read = seconds_of(step_of(seconds));
            assert!(read >= seconds && read <= seconds + seconds / 10 + 1, "{seconds} is read as {read}");
        }
        assert_eq!(seconds_of(step_of(7)), 7);
    }

    #[test]
    fn a_percentile_is_a_wait_that_occurred() {
        let waits = BTreeMap::from([(3, 5), (7, 4), (9, 1)]);
        assert_eq!([50, 90, 100].map(|percent| percentile(&waits, percent)), [Some(3), Some(7), Some(9)]);
        assert_eq!(percentile(&BTreeMap::new(), 50), None);
    }

    #[test]
    fn an_entry_dated_by_a_clock_that_was_ahead_costs_no_other_day() {
        let entry = |index: u64, at: &str| -> Entry {
            let item = format!("01890a5d-ac96-774b-bcce-b302099a805{index}");
            serde_json::from_value(serde_json::json!({
                "action": "create", "actor_id": "ana", "at": at, "definition": "d", "index": index, "item": item,
                "role": "initiator", "to": "draft", "type": "item.created", "v": 1, "version": 1
            }))
            .unwrap()
        };
        let mut figures = Figures::default();
        let times = ["2026-11-16T10:00:00Z", "2027-11-16T10:00:00Z", "2026-11-17T10:00:00Z"];
        for (index, at) in (0..).zip(times) {
            figures.count(&entry(index, at), |_, _| false);
            // The same entry once more is not the next.
            figures.count(&entry(index, at), |_, _| false);
        }
        let created = times.map(|at| figures.day(day_of(at.parse().unwrap())).map(|day| day.created));
        assert_eq!((created, figures.open().count(), figures.counted()), ([Some(1); 3], 3, 3));
    }

    #[test]
    fn days_end_at_midnight_in_utc() {
        let at = |text: &str| day_of(text.parse().unwrap());
        assert_eq!(at("2026-11-16T23:59:59.999999Z") + 1, at("2026-11-17T00:00:00Z"));
        assert_eq!(at("1970-01-01T00:00:00Z"), 0);
    }
}
