//! What time does to items: expiry, the end of a window, a lost lease. It goes through `decide` like everything else.

use std::sync::Arc;
use std::time::Duration;

use pilot_core::decide::{self, Caller, Request};
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::ItemId;
use pilot_store::{Outcome, Situation, Subject, Write};

use crate::app::App;
use crate::ledger::{self, StoredAnswer, record};

const LOOK: Duration = Duration::from_millis(250);
const AT_ONCE_MAX: usize = 256;

/// Runs beside the service. After a downtime it finds everything that became due meanwhile, the earliest first.
pub async fn run(app: Arc<App>) {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        while expire_due(&app).await == AT_ONCE_MAX {}
    }
}

/// Moves the items that are due, and says how many there were.
pub async fn expire_due(app: &Arc<App>) -> usize {
    let due = match app.store.due(app.clock.now(), AT_ONCE_MAX).await {
        Ok(due) => due,
        Err(error) => {
            tracing::error!(cause = %error, "deadlines cannot be looked up");
            return 0;
        }
    };
    let mut moved = 0;
    for id in due {
        match expire(app, id).await {
            Ok(()) => moved += 1,
            Err(cause) => tracing::error!(cause, "an item that is due could not be moved"),
        }
    }
    moved
}

async fn expire(app: &Arc<App>, id: ItemId) -> Result<(), String> {
    let deciding = Arc::clone(app);
    let decide = move |situation: &Situation<'_>| {
        let (item, definition) = ledger::subject(&deciding, situation)?;
        let transition = decide::decide(&definition, item, &Request::Timer, &Caller::Timer, situation.now)?;
        let item = item.after(&transition);
        let entry = Entry::of_transition(EntryType::ItemTransition, situation.index, &transition, &item);
        let answer = StoredAnswer { status: 200, location: None, version: None, body: String::new() };
        Ok(record(&definition, entry, Vec::new(), item, &answer))
    };
    let write = Write { subject: Subject::Item(id), key: None, decide: Box::new(decide) };
    match app.store.settle(write).await {
        // Refused: somebody moved it in the meantime, so nothing is due any more.
        Ok(Outcome::Recorded { .. } | Outcome::Refused(_)) => Ok(()),
        Ok(other) => Err(format!("{other:?}")),
        Err(error) => Err(error.to_string()),
    }
}
