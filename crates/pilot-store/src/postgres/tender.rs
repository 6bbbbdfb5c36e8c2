//! What a node does besides writing: tells the others that it wrote, removes what is no longer needed, and watches that
//! nobody waits too long.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pilot_core::time::Time;

use tokio::time::Instant;

use super::failure;
use super::group::oldest_key;
use super::node::Node;
use super::session::Session;
use super::team::STALE;
use crate::Duty;

/// Hints that come together are sent as one.
const TOGETHER: Duration = Duration::from_millis(10);
const TENDED: Duration = Duration::from_mins(1);
/// How many old keys are removed at a time.
const KEYS_FORGOTTEN_MAX: i64 = 1_000;
const ITEMS_PUT_TO_SLEEP_MAX: i64 = 1_000;
/// Rows that a writer has locked are left for later, so that nobody waits for this.
const SLEEP: &str = "UPDATE item SET wakes_at = due_at WHERE id IN (SELECT id FROM item \
     WHERE wakes_at <= $1 AND due_at > $1 LIMIT $2 FOR UPDATE SKIP LOCKED)";
const LOOK: Duration = Duration::from_millis(100);

/// Hints are sent on a connection of their own, after the commit: within the transaction, a notification would take a
/// lock over the whole server for as long as the commit waits.
pub(super) async fn run(node: Arc<Node>) {
    let mut session: Option<Session> = None;
    let mut tended_at = Instant::now();
    loop {
        let is_written = tokio::time::timeout(TENDED, node.written.notified()).await.is_ok();
        if is_written {
            tokio::time::sleep(TOGETHER).await;
        }
        let tends = tended_at.elapsed() >= TENDED && node.team.borrow().fence(Duty::Timers, &node.id).is_some();
        let tells = is_written && !node.team.borrow().is_alone(&node.id);
        if !tends && !tells {
            continue;
        }
        if session.as_ref().is_none_or(Session::is_closed) {
            session = Session::open_for_node(&node.address, None).await.ok();
        }
        let Some(connected) = &session else { continue };
        let size = node.durable.borrow().size().to_string();
        if tells && connected.query("SELECT pg_notify('pilot', $1)", &[&size]).await.is_err() {
            // Only a hint: the others look by themselves.
            session = None;
            continue;
        }
        if tends {
            tended_at = Instant::now();
            if let Err(error) = tend(connected).await {
                let cause = failure::describe(&error);
                tracing::warn!(cause, "old idempotency keys could not be removed; it will be tried again");
                session = None;
            }
        }
    }
}

/// Removes keys that are no longer remembered, and nodes that were not heard of for an hour; and lets items sleep whose
/// deadline has moved to a later time.
async fn tend(session: &Session) -> Result<(), tokio_postgres::Error> {
    let row = session.query_opt("SELECT last_at FROM head WHERE id = 0", &[]).await?;
    let Some(last_at) = row.map(|row| row.try_get(0)).transpose()? else { return Ok(()) };
    let oldest = oldest_key(Time::from_unix_micros(last_at));
    let sql = "DELETE FROM idempotency WHERE scope IN (SELECT scope FROM idempotency WHERE at < $1 LIMIT $2)";
    while session.execute(sql, &[&oldest, &KEYS_FORGOTTEN_MAX]).await? == KEYS_FORGOTTEN_MAX.unsigned_abs() {}
    let sql = "DELETE FROM node WHERE seen < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - $1";
    session.execute(sql, &[&3_600_000_000_i64]).await?;
    while session.execute(SLEEP, &[&last_at, &ITEMS_PUT_TO_SLEEP_MAX]).await? == ITEMS_PUT_TO_SLEEP_MAX.unsigned_abs() {
    }
    Ok(())
}

/// Tells those who have waited too long.
pub(super) async fn watch(node: Arc<Node>) {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        match node.desk.tell_overdue(Instant::now()) {
            Some(longest) => {
                let millis = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX).max(1);
                if node.hanging.swap(millis, Ordering::AcqRel) == 0 {
                    node.hangs.fetch_add(1, Ordering::Relaxed);
                    tracing::error!("the database does not confirm writes; those that wait too long are told so");
                }
            }
            // Those who waited too long were told, so nobody waits now; that is not a sign of recovery.
            None if node.age() > STALE => {}
            None => {
                if node.hanging.swap(0, Ordering::AcqRel) != 0 {
                    tracing::info!("the database confirms writes again");
                }
            }
        }
    }
}
