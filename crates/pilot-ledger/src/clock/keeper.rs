//! Watches the clock while the service runs, and saves what it knows for the next start.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pilot_core::entry::Entry;
use pilot_core::entry::details::{ClockAccepted, Details};
use pilot_core::time::Time;
use pilot_store::{Outcome, Situation, Store, Subject, Write};
use pilot_wire::clock::Stopwatch;
use pilot_wire::exposition::Exposition;

use super::guard::ClockGuard;
use super::record::{self, Record};

const LOOK: Duration = Duration::from_millis(250);
/// How old the saved record may get.
const RECORDED: Duration = Duration::from_mins(1);

pub struct ClockKeeper {
    guard: Arc<ClockGuard>,
    path: PathBuf,
    boot_id: String,
    /// An operator's acceptance that took effect but is not in the ledger yet.
    taken: Mutex<Option<Record>>,
}

impl ClockKeeper {
    pub fn new(guard: Arc<ClockGuard>, path: PathBuf) -> ClockKeeper {
        ClockKeeper { guard, path, boot_id: record::boot_id(), taken: Mutex::default() }
    }

    /// Compares the clock with what the last run and the ledger know. Must be called before anything is dated.
    pub fn begin(&self, last_entry: Option<Time>, outage_max: Duration) {
        let record = self.found();
        self.guard.begin(record.as_ref(), &self.boot_id, last_entry, outage_max);
        if let Some(word) = record.filter(|record| record.accepted.is_some()) {
            self.take(word);
        }
    }

    /// How far the machine's clock is ahead, if it is not trusted.
    pub fn doubt(&self) -> Option<Duration> {
        self.guard.doubt()
    }

    pub fn metrics(&self, text: &mut Exposition) {
        self.guard.metrics(text);
    }

    /// A record that cannot be read counts as none; then the ledger's last entry is what is known.
    fn found(&self) -> Option<Record> {
        Record::read(&self.path).unwrap_or_else(|error| {
            tracing::warn!(cause = %error, "the clock record of the last run cannot be read");
            None
        })
    }

    fn take(&self, word: Record) {
        let by = word.accepted.as_ref().and_then(|accepted| accepted.by.as_deref()).unwrap_or("an operator");
        tracing::warn!(operator = by, wall = %word.wall, "`{by}` has accepted the machine's clock as it was at {}", word.wall);
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = Some(word);
    }

    /// Looks for an operator's acceptance, and applies it if it is about the clock as it is now.
    fn listen(&self) -> bool {
        let word = Record::read(&self.path).ok().flatten().filter(|record| record.accepted.is_some());
        let Some(word) = word.filter(|word| self.guard.accept_as(word, &self.boot_id)) else { return false };
        self.take(word);
        true
    }

    /// Saves what is known now, unless the clock is not trusted or this would overwrite an acceptance that is not in
    /// the ledger yet.
    pub fn leave(&self) -> std::io::Result<()> {
        let is_pending = self.taken.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        match self.guard.record(&self.boot_id).filter(|_| !is_pending) {
            Some(record) => record.write(&self.path),
            None => Ok(()),
        }
    }

    /// Returns whether an operator's acceptance was written to the ledger.
    async fn write_down(&self, store: &dyn Store) -> bool {
        let Some(word) = self.taken.lock().unwrap_or_else(PoisonError::into_inner).clone() else { return false };
        let by = word.accepted.as_ref().and_then(|accepted| accepted.by.clone());
        let details = Details::ClockAccepted(ClockAccepted { machine: word.wall, operator: by });
        let decide = move |situation: &Situation<'_>| {
            let entry = Entry::of_service(situation.index, situation.now, None, &details);
            Ok(pilot_store::Record::of(entry))
        };
        match store.settle(Write::new(Subject::Ledger, None, decide)).await {
            Ok(Outcome::Recorded { .. }) => {
                *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = None;
                true
            }
            // Retried at the next tick.
            other => {
                tracing::error!(cause = ?other, "the acceptance of the clock could not be written to the ledger");
                false
            }
        }
    }
}

/// Runs as long as the service does.
pub async fn run(keeper: Arc<ClockKeeper>, store: Arc<dyn Store>) {
    let (mut was_doubted, mut recorded, mut is_failing) = (false, None::<Stopwatch>, false);
    loop {
        keeper.guard.look();
        if keeper.doubt().is_some() {
            let listening = Arc::clone(&keeper);
            let _ = tokio::task::spawn_blocking(move || listening.listen()).await;
        }
        was_doubted = say(was_doubted, keeper.doubt());
        if !was_doubted && keeper.write_down(&*store).await {
            // Replaced at once, so that the next start does not apply the acceptance again.
            recorded = None;
        }
        if recorded.as_ref().is_none_or(|since| since.elapsed() >= RECORDED) {
            let leaving = Arc::clone(&keeper);
            let left = tokio::task::spawn_blocking(move || leaving.leave()).await;
            let failed = left.unwrap_or_else(|error| Err(std::io::Error::other(error))).err();
            if let Some(cause) = failed.as_ref().filter(|_| !is_failing) {
                let path = keeper.path.display();
                tracing::warn!(%cause, "{path}: cannot be written; after a restart of the machine its clock is compared with the last entry instead");
            }
            (recorded, is_failing) = (Some(Stopwatch::start()), failed.is_some());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Logs the beginning and the end of a doubt, once each.
fn say(was_doubted: bool, doubt: Option<Duration>) -> bool {
    match doubt {
        Some(ahead) if !was_doubted => {
            let seconds = ahead.as_secs();
            tracing::error!(
                seconds,
                "the machine's clock has jumped {seconds} s ahead of the time elapsed and is not trusted: writes \
                 are refused and nothing expires until it is right again. Find out what sets it. If it is right and \
                 was wrong before, run `pilot clock accept`"
            );
        }
        None if was_doubted => tracing::info!("the machine's clock is trusted again; writing resumes"),
        _ => {}
    }
    doubt.is_some()
}
