//! Copies a whole ledger from one engine to another: every entry, document, tile, item, answer, fact and definition. A
//! page of rows is in memory at a time, and the copy's tree must be the source's.

use std::path::Path;

use serde::Deserialize;

use crate::archive::{Head, Progress};
use crate::postgres::{Access, Filling, Snapshot, runtime};
use crate::sqlite::{FreshFile, Pages};
use crate::tables::{ENTRY, TABLES, Table, Value};
use crate::{Result, StoreError};

/// What was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transferred {
    pub head: Head,
    /// An earlier run had copied all of it.
    pub was_finished: bool,
}

/// The fact that names the entry of the last start.
const START_FACT: &str = "start";

#[derive(Deserialize)]
struct Start {
    index: Option<u64>,
}

/// Copies a file into an empty database. No service can open the file meanwhile, nor the database before everything is
/// there. If this is interrupted, the same call goes on where it stopped.
pub fn to_postgres(from: &Path, access: &Access, progress: &mut dyn FnMut(Progress)) -> Result<Transferred> {
    let source = Pages::open(from)?;
    if source.head().size == 0 {
        let what = "the ledger has no entries, so there is nothing to copy";
        return Err(StoreError::Refused(format!("{}: {what}", from.display())));
    }
    runtime()?.block_on(fill(&source, access, progress))
}

async fn fill(source: &Pages, access: &Access, progress: &mut dyn FnMut(Progress)) -> Result<Transferred> {
    let head = source.head();
    let Some(target) = Filling::begin(access, head).await? else {
        return Ok(Transferred { head, was_finished: true });
    };
    for table in &TABLES {
        let of = source.count(table)?;
        fill_table(source, &target, table, of, progress).await?;
        target.expect_rows(table, of).await?;
    }
    target.verify(progress).await?;
    target.finish(source.last_at(), epoch(source)?).await?;
    Ok(Transferred { head, was_finished: false })
}

async fn fill_table(
    source: &Pages,
    target: &Filling,
    table: &Table,
    of: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let mut after = target.last_key(table).await?;
    // Entries have no gaps, so the last key says how many there are.
    let mut done = match &after {
        Some(key) if table.is(&ENTRY) => key.first().map_or(Ok(0), Value::number)?.unsigned_abs() + 1,
        _ => 0,
    };
    loop {
        progress(Progress { step: table.step, done, of });
        let rows = source.page(table, after.as_ref())?;
        let Some(last) = rows.last() else { return Ok(()) };
        (done, after) = (done + rows.len() as u64, Some(table.key_of(last)));
        target.write(table, rows).await?;
    }
}

/// The entry that adopted the configuration in force: that of the last start.
fn epoch(source: &Pages) -> Result<u64> {
    let Some(bytes) = source.fact(START_FACT)? else { return Ok(0) };
    let json = bytes.iter().position(|byte| *byte == b'{').and_then(|from| bytes.get(from..));
    let start: Option<Start> = json.and_then(|json| serde_json::from_slice(json).ok());
    let start = start.ok_or_else(|| StoreError::Damaged("what the last start left cannot be read".into()))?;
    Ok(start.index.unwrap_or(0))
}

/// Copies a database, as it is at one moment, into a new file, readable only by its owner and on disk when this
/// returns. Services may be writing.
pub fn to_file(access: &Access, to: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Transferred> {
    runtime()?.block_on(async {
        let source = Snapshot::open(access).await?;
        source.wait_until_durable(access).await?;
        let head = source.head_row().await?.head;
        let target = copy_as_it_is(&source, to, progress).await?;
        let found = target.root(head.size)?;
        if found != head {
            return Err(StoreError::Damaged(format!(
                "the entries do not match the head stored with them (root {}, head {}); run `pilot log fsck`",
                found.root.to_base64(),
                head.root.to_base64()
            )));
        }
        target.finish(head)?;
        Ok(Transferred { head, was_finished: false })
    })
}

/// Copies whatever is there, damaged or not. The file has yet to be finished.
pub(crate) async fn copy_as_it_is(
    source: &Snapshot,
    to: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<FreshFile> {
    let target = FreshFile::create(to)?;
    for table in &TABLES {
        let (mut done, mut after, of) = (0, None, source.count(table).await?);
        loop {
            progress(Progress { step: table.step, done, of });
            let rows = source.page(table, after.as_ref()).await?;
            let Some(last) = rows.last() else { break };
            (done, after) = (done + rows.len() as u64, Some(table.key_of(last)));
            target.insert(table, &rows)?;
        }
    }
    Ok(target)
}
