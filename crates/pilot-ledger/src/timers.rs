//! What the passing of time does to items: expiry, the end of a window, a lost lease. It goes through `decide` like
//! everything else.

use std::sync::Arc;
use std::time::Duration;

use pilot_core::item::ItemId;
use pilot_core::time::Time;
use pilot_store::{Duty, Outcome, Pending, Store, StoreError, Subject, Write};

use crate::clock::{Change, ClockKeeper, LedgerClock, Watch};
use crate::moves;
use crate::workflows::Workflows;

const LOOK: Duration = Duration::from_millis(250);
const AT_ONCE_MAX: usize = 256;

/// What the loop needs.
pub struct Timers {
    pub store: Arc<dyn Store>,
    pub workflows: Arc<Workflows>,
    pub clock: LedgerClock,
    pub clock_keeper: Arc<ClockKeeper>,
}

/// Runs as long as the service does. After a downtime it first handles everything that became due meanwhile, earliest
/// first. It returns only if the ledger is damaged, with the reason; then the ledger must no longer be served or
/// signed.
pub async fn run(timers: Timers) -> StoreError {
    let Timers { store, workflows, clock, clock_keeper } = timers;
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let (mut watch, mut was_damaged) = (Watch::default(), false);
    loop {
        ticks.tick().await;
        match store.check() {
            // At the second check, so that the caller who ran into the damage has been answered.
            Err(error @ StoreError::Damaged(_)) if was_damaged => return error,
            checked => was_damaged = matches!(checked, Err(StoreError::Damaged(_))),
        }
        look_at_the_machine(&clock, &mut watch);
        // While the clock is not trusted, what is due by it waits.
        while store.holds(Duty::Timers)
            && clock_keeper.doubt().is_none()
            && expire_due(&*store, &workflows, clock.now()).await == AT_ONCE_MAX
        {}
    }
}

/// Logs when the machine's clock and the ledger's time diverge, so that nobody has to notice it from an odd date.
fn look_at_the_machine(clock: &LedgerClock, watch: &mut Watch) {
    let behind = clock.machine_behind();
    let seconds = behind.as_secs();
    match watch.look(behind) {
        Some(Change::FellBehind) => tracing::warn!(
            seconds,
            "the machine's clock is {seconds} s behind the ledger, whose time never goes back: new entries, \
             windows, leases and deadlines use the ledger's time. Check that the machine's clock is right; if the \
             ledger is ahead of it, restart the service once the machine's clock has passed the last entry"
        ),
        Some(Change::CaughtUp) => tracing::info!("the machine's clock and the ledger's time agree again"),
        None => {}
    }
}

/// Moves the items that are due, and returns how many there were.
pub async fn expire_due(store: &dyn Store, workflows: &Arc<Workflows>, now: Time) -> usize {
    let due = match store.due(now, AT_ONCE_MAX).await {
        Ok(due) => due,
        Err(error) => {
            tracing::error!(cause = %error, "deadlines cannot be looked up");
            return 0;
        }
    };
    // All are queued before the first is awaited, so one sync serves all, and they stay in order.
    let handed_in: Vec<_> = due.into_iter().map(|id| expire(store, workflows, id)).collect();
    let mut moved = 0;
    for pending in handed_in {
        match pending.await {
            // Refused: someone moved it in the meantime, so nothing is due any more.
            Ok(Outcome::Recorded { .. } | Outcome::Refused(_)) => moved += 1,
            Ok(other) => tracing::error!(cause = ?other, "an item that is due could not be moved"),
            Err(error) => tracing::error!(cause = %error, "an item that is due could not be moved"),
        }
    }
    moved
}

fn expire<'s>(store: &'s dyn Store, workflows: &Arc<Workflows>, id: ItemId) -> Pending<'s, Outcome> {
    store.settle(Write::new(Subject::Item(id), None, moves::expire(Arc::clone(workflows))))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::sync::{Mutex, OnceLock};

    use pilot_core::actor::Actor;
    use pilot_core::decide::{Content, NewItem};
    use pilot_core::document::Document;
    use pilot_core::entry::{Entry, EntryType};
    use pilot_core::role::Role;
    use pilot_store::sqlite::Sqlite;
    use pilot_testing::Scratch;
    use serde_json::json;

    use super::*;

    const ITEMS: usize = 200;

    fn creation(workflows: &Workflows, number: usize) -> Write {
        let definition = Arc::clone(workflows.named("controlled-operation").unwrap());
        let actor = Actor::new("ana".parse().unwrap(), Role::Initiator);
        let (title, payload) = (format!("item {number}"), json!({}));
        let content = Document::content(&title, &payload, "nonce");
        let id = format!("01a1de8a-ca3b-7000-8000-{number:012x}").parse().unwrap();
        let judged = Content::judge(&definition, &title, &payload, content.digest.clone());
        let new = NewItem { id, content: judged };
        Write::new(Subject::NewItem { count_open: None }, None, moves::create(definition, actor, new, content))
    }

    #[tokio::test]
    async fn items_that_are_due_together_are_moved_in_order_each_once_and_in_few_commits() {
        let scratch = Scratch::new();
        let clock = Arc::new(AtomicI64::new(1_800_000_000_000_000));
        // The ledger's length at each write: within a group of writes it does not grow.
        let (lengths, head) = (Arc::new(Mutex::new(BTreeSet::new())), Arc::new(OnceLock::new()));
        let now = {
            let (clock, lengths, head) = (Arc::clone(&clock), Arc::clone(&lengths), Arc::clone(&head));
            move || {
                let length = head.get().map(|head: &tokio::sync::watch::Receiver<Arc<_>>| {
                    let edge: Arc<pilot_evidence::merkle::Edge> = Arc::clone(&head.borrow());
                    edge.size()
                });
                lengths.lock().unwrap().extend(length);
                Time::from_unix_micros(clock.load(Ordering::SeqCst))
            }
        };
        let store = Sqlite::open(&scratch.file("pilot.db"), Arc::new(now)).unwrap();
        let workflows = Arc::new(Workflows::load(None, &store).await.unwrap());
        for number in 0..ITEMS {
            store.settle(creation(&workflows, number)).await.unwrap();
            clock.fetch_add(1, Ordering::SeqCst);
        }
        head.set(store.head()).unwrap();
        let later = clock.fetch_add(31 * 86_400 * 1_000_000, Ordering::SeqCst) + 31 * 86_400 * 1_000_000;
        let later = Time::from_unix_micros(later);
        assert_eq!(expire_due(&store, &workflows, later).await, ITEMS);
        assert_eq!(expire_due(&store, &workflows, later).await, 0, "once is enough");
        let commits = lengths.lock().unwrap().len();
        assert!((1..=ITEMS / 10).contains(&commits), "{commits} commits for {ITEMS} items");
        let entries = store.entries(0, 3 * ITEMS).await.unwrap();
        let entries = entries.iter().map(|stored| serde_json::from_slice::<Entry>(&stored.bytes).unwrap());
        let (created, moved): (Vec<_>, Vec<_>) = entries.partition(|entry| entry.r#type == EntryType::ItemCreated);
        let items = |entries: &[Entry]| entries.iter().map(|entry| entry.item.clone()).collect::<Vec<_>>();
        assert_eq!(items(&moved), items(&created), "the earliest deadline first");
        drop(store);
    }
}
