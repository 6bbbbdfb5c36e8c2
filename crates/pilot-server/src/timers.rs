//! What time does to items: expiry, the end of a window, a lost lease. It goes through `decide` like everything else.

use std::sync::Arc;
use std::time::Duration;

use pilot_core::item::ItemId;
use pilot_core::time::Time;
use pilot_store::{Outcome, Store, StoreError, Subject, Write};

use crate::app::App;
use crate::clock::{Change, Watch};
use crate::moves;
use crate::workflows::Workflows;

const LOOK: Duration = Duration::from_millis(250);
const AT_ONCE_MAX: usize = 256;
/// The exit code for what the environment (here: the disk) has done to us.
const DAMAGED: i32 = 3;

/// Runs beside the service. After a downtime it finds everything that became due meanwhile, the earliest first.
pub async fn run(app: Arc<App>) {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut watch = Watch::default();
    loop {
        ticks.tick().await;
        stop_if_damaged(&app);
        look_at_the_machine(&app, &mut watch);
        while expire_due(&*app.store, &app.workflows, app.ledger_clock.now()).await == AT_ONCE_MAX {}
    }
}

/// A ledger that contradicts itself must not be served any longer, nor signed: an operator has to look.
fn stop_if_damaged(app: &App) {
    if let Err(error @ StoreError::Damaged(_)) = app.store.check() {
        tracing::error!(cause = %error, "the process stops; run `pilot log fsck`, and restore from a backup");
        app.log.flush();
        std::process::exit(DAMAGED);
    }
}

/// Nobody has to notice by an odd date that the machine's clock and the ledger have parted.
fn look_at_the_machine(app: &App, watch: &mut Watch) {
    let behind = app.ledger_clock.machine_behind();
    let seconds = behind.as_secs();
    match watch.look(behind) {
        Some(Change::FellBehind) => tracing::warn!(
            seconds,
            "the machine's clock is {seconds} s behind the ledger, whose time never goes back: new entries, windows, \
             leases and deadlines go by the ledger's time. See that the machine's time is right; if the ledger is ahead \
             of it, restart the service when the machine's clock has passed the last entry"
        ),
        Some(Change::CaughtUp) => tracing::info!("the machine's clock and the ledger's time are together again"),
        None => {}
    }
}

/// Moves the items that are due, and says how many there were.
pub async fn expire_due(store: &dyn Store, workflows: &Arc<Workflows>, now: Time) -> usize {
    let due = match store.due(now, AT_ONCE_MAX).await {
        Ok(due) => due,
        Err(error) => {
            tracing::error!(cause = %error, "deadlines cannot be looked up");
            return 0;
        }
    };
    let mut moved = 0;
    for id in due {
        match expire(store, workflows, id).await {
            Ok(()) => moved += 1,
            Err(cause) => tracing::error!(cause, "an item that is due could not be moved"),
        }
    }
    moved
}

async fn expire(store: &dyn Store, workflows: &Arc<Workflows>, id: ItemId) -> Result<(), String> {
    let decide = moves::expire(Arc::clone(workflows));
    let write = Write::new(Subject::Item(id), None, decide);
    match store.settle(write).await {
        // Refused: somebody moved it in the meantime, so nothing is due any more.
        Ok(Outcome::Recorded { .. } | Outcome::Refused(_)) => Ok(()),
        Ok(other) => Err(format!("{other:?}")),
        Err(error) => Err(error.to_string()),
    }
}
