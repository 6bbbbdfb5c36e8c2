//! `fsck`: the ledger is copied into a private file and read there, like any other; and what only this engine stores is
//! compared with the entries. It changes nothing.

use std::fs;
use std::path::{Path, PathBuf};

use pilot_core::entry::Entry;
use pilot_evidence::merkle::Edge;
use tokio_postgres::Row;

use super::address::Access;
use super::failure::failed;
use super::runtime;
use super::session::Session;
use super::snapshot::{HeadRow, Snapshot};
use crate::archive::{Head, Progress, Report};
use crate::row::from_key;
use crate::sqlite::{Lock, fsck, lock};
use crate::{Result, StoreError, transfer};

/// A fault of one kind is often one of millions.
const FAULTS_MAX: i64 = 100;

/// The hash of an entry is that of a zero byte and its data.
const LEAVES: &str = "SELECT idx FROM entry WHERE leaf <> sha256('\\x00'::bytea || data) ORDER BY idx LIMIT $1";
const ITEMS: &str = "SELECT coalesce(i.id, e.item), i.entries, i.created_entry, i.last_entry, \
     e.count, e.lowest, e.highest, e.first, e.last FROM item i FULL JOIN \
     (SELECT item, count(*) AS count, min(nth) AS lowest, max(nth) AS highest, min(idx) AS first, max(idx) AS last \
      FROM entry WHERE item IS NOT NULL GROUP BY item) e ON e.item = i.id \
     WHERE i.id IS NULL OR e.item IS NULL OR i.entries <> e.count OR e.lowest <> 1 OR e.highest <> e.count \
     OR i.created_entry <> e.first OR i.last_entry <> e.last ORDER BY 1 LIMIT $1";

/// An item that wakes up after its deadline would miss it.
const LATE: &str = "SELECT id FROM item WHERE due_at IS NOT NULL AND (wakes_at IS NULL OR wakes_at > due_at) \
     ORDER BY id LIMIT $1";

pub(super) fn examine(access: &Access, scratch: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
    let copy = PrivateCopy::begin(scratch)?;
    let own = runtime()?.block_on(read_all(access, &copy.path, progress))?;
    let mut report = fsck::fsck(&copy.path, progress)?;
    report.faults.extend(own.faults);
    Ok(report)
}

/// Copies the ledger, and returns what is wrong with what only this engine stores.
async fn read_all(access: &Access, to: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
    let snapshot = Snapshot::open(access).await?;
    let mut report = Report::default();
    let head = match snapshot.head_row().await {
        Ok(head) => Some(head),
        Err(StoreError::Damaged(what)) => {
            report.fault("table head", what);
            None
        }
        Err(error) => return Err(error),
    };
    let mut copying = |Progress { done, of, .. }: Progress| progress(Progress { step: "copy", done, of });
    let copy = transfer::copy_as_it_is(&snapshot, to, &mut copying).await?;
    // The head as it is stored, so that one that does not match is found.
    copy.finish(head.map_or_else(nothing, |row| row.head))?;
    if let Some(head) = head {
        check_head(&snapshot.session, &head, &mut report).await?;
    }
    progress(Progress { step: "hashes", done: 0, of: 1 });
    for row in &query(&snapshot.session, LEAVES).await? {
        let index: i64 = row.try_get(0).map_err(failed)?;
        report.fault(format!("table entry, entry {index}"), "its hash is not that of its data");
    }
    progress(Progress { step: "numbers", done: 0, of: 1 });
    for row in &query(&snapshot.session, ITEMS).await? {
        let (place, what) = item_fault(row)?;
        report.fault(place, what);
    }
    for row in &query(&snapshot.session, LATE).await? {
        let id = from_key(row.try_get(0).map_err(failed)?)?;
        report.fault(format!("table item, item {id}"), "its row would wake it up after its deadline");
    }
    Ok(report)
}

fn nothing() -> Head {
    Head { size: 0, root: Edge::default().root() }
}

async fn query(session: &Session, sql: &str) -> Result<Vec<Row>> {
    session.query(sql, &[&FAULTS_MAX]).await.map_err(failed)
}

async fn check_head(session: &Session, row: &HeadRow, report: &mut Report) -> Result<()> {
    let sql = "SELECT idx, data FROM entry ORDER BY idx DESC LIMIT 1";
    let last = session.query_opt(sql, &[]).await.map_err(failed)?;
    let last: Option<(i64, Vec<u8>)> = match last {
        Some(last) => Some((last.try_get(0).map_err(failed)?, last.try_get(1).map_err(failed)?)),
        None => None,
    };
    let entries = last.as_ref().map_or(0, |(index, _)| u64::try_from(index + 1).unwrap_or(0));
    let size = row.head.size;
    if size != entries {
        report.fault("table head", format!("it says that there are {size} entries, but there are {entries}"));
    }
    let at = last.and_then(|(_, bytes)| Entry::parse(&bytes).ok()).map(|entry| entry.at);
    if at.is_some_and(|at| at != row.last_at) {
        report.fault("table head", "its time is not that of the last entry");
    }
    if row.epoch < 0 || row.epoch > 0 && row.epoch.unsigned_abs() >= size {
        report.fault("table head", format!("it says that entry {} adopted the configuration", row.epoch));
    }
    Ok(())
}

/// What the columns of an item or of its entries say that cannot be. A row of [`ITEMS`].
fn item_fault(row: &Row) -> Result<(String, String)> {
    let number = |column: usize| row.try_get::<_, Option<i64>>(column).map_err(failed);
    let key: &[u8] = row.try_get(0).map_err(failed)?;
    let id = from_key(key).map_or_else(|_| "with an id that is not a UUID".to_owned(), |id| id.to_string());
    let (Some(entries), Some(created_entry), Some(last_entry)) = (number(1)?, number(2)?, number(3)?) else {
        return Ok((format!("table entry, item {id}"), "entries are about it, but it has no row".into()));
    };
    let place = format!("table item, item {id}");
    let (Some(count), Some(lowest), Some(highest)) = (number(4)?, number(5)?, number(6)?) else {
        return Ok((place, "no entry is about it".into()));
    };
    let (first, last) = (number(7)?.unwrap_or(-1), number(8)?.unwrap_or(-1));
    if lowest != 1 || highest != count {
        let what = format!("{count} entries are about it, but they are numbered from {lowest} to {highest}");
        return Ok((format!("table entry, item {id}"), what));
    }
    if entries != count {
        return Ok((place, format!("its row says that it has {entries} entries, but it has {count}")));
    }
    let what = format!("its row names entries {created_entry} and {last_entry}, but its own are {first} to {last}");
    Ok((place, what))
}

/// A file that only this check uses, removed at its end. A check that was killed leaves it to the next.
struct PrivateCopy {
    path: PathBuf,
    _lock: Lock,
}

impl PrivateCopy {
    fn begin(directory: &Path) -> Result<PrivateCopy> {
        let path = directory.join("fsck.db");
        let busy = |error| match error {
            StoreError::Refused(_) => StoreError::Unavailable(format!("{}: another check is running", path.display())),
            other => other,
        };
        let lock = lock(&path).map_err(busy)?;
        let copy = PrivateCopy { path, _lock: lock };
        copy.remove();
        Ok(copy)
    }

    fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Drop for PrivateCopy {
    fn drop(&mut self) {
        self.remove();
    }
}
