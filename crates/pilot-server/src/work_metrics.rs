//! What waits for people and how long they take, for monitoring. Counted in the background: a scrape never waits for it
//! and costs the same however large the ledger is.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pilot_core::time::Time;
use pilot_ledger::figures::{Decided, Figures, WAIT_BOUNDS, catch_up};
use pilot_ledger::workflows::Workflows;
use pilot_setup::backup_record::BackupRecord;
use pilot_store::Store;
use pilot_wire::exposition::{Exposition, Kind};

/// Monitoring asks every few seconds at most.
const PAUSE: Duration = Duration::from_secs(5);
/// States come from definitions. More than these are counted as one, so that no definition can flood the monitoring.
const STATES_MAX: usize = 64;
/// No state can have this name.
const OTHERS: &str = "(others)";

/// As of the last count.
#[derive(Default)]
pub(crate) struct WorkMetrics(Mutex<Option<Counted>>);

struct Counted {
    /// How many items are open in each state, and since when the oldest has been in it.
    states: BTreeMap<String, (u64, Time)>,
    decided: Decided,
    last_backup: Option<Time>,
}

/// Counts again and again what was written since the last time.
pub(crate) struct Counting {
    pub metrics: Arc<WorkMetrics>,
    pub figures: Arc<tokio::sync::Mutex<Figures>>,
    pub store: Arc<dyn Store>,
    pub workflows: Arc<Workflows>,
    pub backup_record: PathBuf,
}

impl Counting {
    pub(crate) async fn run(self) {
        loop {
            let path = self.backup_record.clone();
            let backup = tokio::task::spawn_blocking(move || BackupRecord::read(&path)).await.ok().flatten();
            let mut figures = self.figures.lock().await;
            // If the ledger cannot be read, others notice, and here it is tried again.
            if catch_up(&mut figures, &*self.store, &self.workflows).await.is_ok() {
                let states = by_state(figures.open().map(|(state, _, entered_at)| (state, entered_at)));
                let last_backup = backup.map(|backup| backup.at);
                let counted = Counted { states, decided: figures.decided(), last_backup };
                *self.metrics.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(counted);
            }
            drop(figures);
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn by_state<'s>(open: impl Iterator<Item = (&'s str, Time)>) -> BTreeMap<String, (u64, Time)> {
    let mut all = BTreeMap::<&str, (u64, Time)>::new();
    for (state, entered_at) in open {
        let (count, oldest) = all.entry(state).or_insert((0, entered_at));
        (*count, *oldest) = (*count + 1, (*oldest).min(entered_at));
    }
    let mut states = BTreeMap::<String, (u64, Time)>::new();
    for (place, (state, (more, since))) in all.into_iter().enumerate() {
        let name = if place < STATES_MAX { state } else { OTHERS };
        let (count, oldest) = states.entry(name.to_owned()).or_insert((0, since));
        (*count, *oldest) = (*count + more, (*oldest).min(since));
    }
    states
}

impl WorkMetrics {
    /// Nothing before the first count has ended: a figure that is still growing would be taken for work.
    pub(crate) fn write(&self, text: &mut Exposition) {
        let counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Counted { states, decided, last_backup }) = &*counted else { return };
        text.family("pilot_items", Kind::Gauge, "Open items, by state.");
        for (state, (count, _)) in states {
            text.sample("pilot_items", &[("state", state)], count);
        }
        let name = "pilot_items_oldest_since_seconds";
        text.family(name, Kind::Gauge, "Since when the oldest open item has been in a state, in seconds since 1970.");
        for (state, (_, oldest)) in states {
            text.sample(name, &[("state", state)], oldest.unix_micros() / 1_000_000);
        }
        let help = "Time from a submission to the first decision on it.";
        text.family("pilot_decision_seconds", Kind::Histogram, help);
        let mut below = 0;
        for (bound, count) in WAIT_BOUNDS.iter().zip(&decided.waits) {
            below += count;
            text.sample("pilot_decision_seconds_bucket", &[("le", bound)], below);
        }
        text.sample("pilot_decision_seconds_bucket", &[("le", &"+Inf")], decided.count());
        text.sample("pilot_decision_seconds_sum", &[], decided.seconds);
        text.sample("pilot_decision_seconds_count", &[], decided.count());
        if let Some(at) = last_backup {
            let help = "When the last backup was made, in seconds since 1970.";
            text.gauge("pilot_backup_last_success_seconds", help, at.unix_micros() / 1_000_000);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_beyond_the_limit_are_counted_as_one_and_the_oldest_counts() {
        let names: Vec<_> = (0..70).map(|number| format!("state-{number:02}")).collect();
        let at = |second: i64| Time::from_unix_micros(second * 1_000_000);
        let open =
            names.iter().zip(100..).flat_map(|(name, second)| [(name.as_str(), at(second)), (name, at(second + 50))]);
        let states = by_state(open);
        assert_eq!(states.len(), 65);
        assert_eq!(states["state-03"], (2, at(103)));
        assert_eq!(states[OTHERS], (12, at(164)));
    }
}
