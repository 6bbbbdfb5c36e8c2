//! The least that recording transitions can cost on this disk: plain rusqlite writes the rows that the store writes for
//! one, without rules, tree or HTTP, for `bench transitions` to compare with.
//!
//! `raw_commit DIRECTORY group|single SECONDS [CALLERS]` prints `transitions N`, `seconds S`, `p50_micros M` and
//! `p99_micros M`. With `group`, one transaction takes whatever has queued up; with `single`, each takes one.
#![allow(clippy::print_stdout, reason = "the benchmark reads the figures from standard output")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::error::Error;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::oneshot;

type Anything = Box<dyn Error + Send + Sync>;

const SCHEMA: &str = concat!(
    include_str!("../src/schema/sqlite.sql"),
    include_str!("../src/schema/document.sql"),
    include_str!("../src/schema/item.sql")
);
/// As the store sets them.
const SETTINGS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; \
                        PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY;";
const CALLERS: usize = 64;
const ITEMS_PER_CALLER: usize = 4;
const GROUP_MAX: usize = 512;
const CHECKPOINT_ENTRIES: i64 = 12_000;
const TILE_ENTRIES: i64 = 256;
/// The sizes of what the service writes for an approval and for taking it back, which has a comment.
const APPROVAL: [u8; 401] = [b'e'; 401];
const REVOCATION: [u8; 493] = [b'e'; 493];
const COMMENT: [u8; 85] = [b'c'; 85];
/// Of the item in JSON, with and without a vote.
const ITEM_BYTES: [usize; 2] = [314, 275];
const TILE: [u8; 32 * 256] = [b't'; 32 * 256];

struct Job {
    item: usize,
    reply: oneshot::Sender<()>,
}

fn main() -> Result<(), Anything> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, mode, seconds, rest @ ..] = arguments.as_slice() else {
        return Err("usage: raw_commit DIRECTORY group|single SECONDS [CALLERS]".into());
    };
    let group_max = match mode.as_str() {
        "group" => GROUP_MAX,
        "single" => 1,
        _ => return Err("the mode is `group` or `single`".into()),
    };
    let callers = rest.first().map_or(Ok(CALLERS), |callers| callers.parse())?;
    let length = Duration::from_secs(seconds.parse()?);
    let writer = Writer::open(&Path::new(directory).join(format!("raw-{mode}.db")), callers * ITEMS_PER_CALLER)?;
    let (jobs, queue) = mpsc::sync_channel(4_096);
    let writing = std::thread::spawn(move || writer.run(&queue, group_max));
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    let start = Instant::now();
    let mut micros = runtime.block_on(call(jobs, callers, start + length));
    let seconds = start.elapsed().as_secs_f64();
    writing.join().map_err(|_| "the writer panicked")??;
    micros.sort_unstable();
    let percentile = |percent: usize| micros.get(micros.len() * percent / 100).copied().unwrap_or(0);
    println!("transitions {}\nseconds {seconds:.3}", micros.len());
    println!("p50_micros {}\np99_micros {}", percentile(50), percentile(99));
    Ok(())
}

/// Each caller waits for its answer before it asks again. Gives the time each answer took.
async fn call(jobs: mpsc::SyncSender<Job>, callers: usize, end: Instant) -> Vec<u64> {
    let caller = |number: usize| {
        let jobs = jobs.clone();
        tokio::spawn(async move {
            let mut micros = Vec::new();
            for turn in 0.. {
                let (reply, answer) = oneshot::channel();
                let asked = Instant::now();
                let item = number * ITEMS_PER_CALLER + turn % ITEMS_PER_CALLER;
                if asked > end || jobs.try_send(Job { item, reply }).is_err() || answer.await.is_err() {
                    break;
                }
                micros.push(u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX));
            }
            micros
        })
    };
    let callers: Vec<_> = (0..callers).map(caller).collect();
    drop(jobs);
    let mut all = Vec::new();
    for caller in callers {
        all.extend(caller.await.unwrap_or_default());
    }
    all
}

struct Writer {
    connection: Connection,
    /// What stands for an item in JSON, approved and submitted.
    item: [String; 2],
    /// Of each item, its version and its last entry.
    items: Vec<(i64, i64)>,
    size: i64,
    checkpointed: i64,
}

impl Writer {
    fn open(path: &Path, items: usize) -> Result<Writer, Anything> {
        let connection = Connection::open(path)?;
        connection.execute_batch(SETTINGS)?;
        connection.set_prepared_statement_cache_capacity(64);
        let item = ITEM_BYTES.map(|bytes| "i".repeat(bytes));
        let [_, submitted] = &item;
        connection.execute_batch(&format!("BEGIN; {SCHEMA} COMMIT; BEGIN;"))?;
        for number in 0..items {
            connection.execute(
                "INSERT INTO item (id, created_entry, version, state, workflow, created_by, title, open, waits_for, due_at, last_entry, content_entry, data) \
                 VALUES (?1, ?2, 1, 'submitted', 'controlled-operation', 'ana', 'An operation to measure', 1, 2, 1, 0, 0, ?3)",
                (key(number), i64::try_from(number)?, submitted),
            )?;
        }
        connection.execute_batch("COMMIT")?;
        Ok(Writer { connection, item, items: vec![(1, 0); items], size: 0, checkpointed: 0 })
    }

    fn run(mut self, queue: &mpsc::Receiver<Job>, group_max: usize) -> Result<(), Anything> {
        while let Ok(first) = queue.recv() {
            let mut group = vec![first];
            group.extend(queue.try_iter().take(group_max - 1));
            self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            for job in &group {
                self.write(job.item)?;
            }
            self.connection.prepare_cached("COMMIT")?.execute([])?;
            for job in group {
                let _ = job.reply.send(());
            }
            if self.size - self.checkpointed > CHECKPOINT_ENTRIES {
                self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
                self.checkpointed = self.size;
            }
        }
        Ok(())
    }

    fn write(&mut self, number: usize) -> rusqlite::Result<()> {
        let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| self.connection.prepare_cached(sql)?.execute(values);
        let index = self.size;
        let (version, last_entry) = self.items.get(number).copied().unwrap_or_default();
        let is_approval = version % 2 == 1;
        let [approved, submitted] = &self.item;
        let (state, waits_for, item, entry): (_, _, _, &[u8]) =
            if is_approval { ("approved", 4, approved, &APPROVAL) } else { ("submitted", 2, submitted, &REVOCATION) };
        run("INSERT INTO entry (idx, prev, data) VALUES (?1, ?2, ?3)", &[&index, &last_entry, &entry])?;
        if !is_approval {
            run("INSERT INTO document (entry, kind, data) VALUES (?1, 1, ?2)", &[&index, &COMMENT])?;
        }
        run(
            "UPDATE item SET version = ?2, state = ?3, waits_for = ?4, due_at = ?5, last_entry = ?6, data = ?7 \
             WHERE id = ?1 AND version = ?8 AND last_entry = ?9",
            &[&key(number), &(version + 1), &state, &waits_for, &(index + 2), &index, item, &version, &last_entry],
        )?;
        if index % TILE_ENTRIES == TILE_ENTRIES - 1 {
            run("INSERT INTO tile (level, idx, hashes) VALUES (0, ?1, ?2)", &[&(index / TILE_ENTRIES), &TILE])?;
        }
        if let Some(item) = self.items.get_mut(number) {
            *item = (version + 1, index);
        }
        self.size += 1;
        Ok(())
    }
}

fn key(number: usize) -> [u8; 16] {
    let mut key = [0; 16];
    let (_, low) = key.split_at_mut(8);
    low.copy_from_slice(&(number as u64).to_be_bytes());
    key
}
