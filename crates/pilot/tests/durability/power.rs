//! The power fails. Whatever was not synced may be on the disk, or not, or in part, and in any order.
//!
//! The service is traced at work. From the trace, disks are made as a power cut could have left them at any moment, and
//! each must hold what was acknowledged by then.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pilot_evidence::merkle::{Edge, Hash};
use pilot_store::sqlite::fsck::log_damage;
use pilot_store::sqlite::head;
use pilot_testing::Dice;
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::durability::client::{Answered, Client, Work, installation};
use crate::durability::history::History;
use crate::durability::kill::rounds;
use crate::durability::ledger::{is_whole, read_checkpoint};
use crate::durability::trace;
use crate::support::harness::{Installation, Server, now};

const SMALL_STATES: usize = 1_600;
const LARGE_STATES: usize = 400;

/// What the ledger was in the end, and so at each size before.
struct Ledger {
    entries: Vec<Vec<u8>>,
    /// By size.
    roots: Vec<Hash>,
    indices: BTreeMap<(String, u64), usize>,
}

impl Ledger {
    fn read(installation: &Installation) -> Ledger {
        let entries = entries(&Connection::open(installation.path("data/pilot.db")).unwrap());
        let (mut edge, mut indices) = (Edge::default(), BTreeMap::new());
        let mut roots = vec![edge.root()];
        for (index, bytes) in entries.iter().enumerate() {
            edge.push(Hash::of_leaf(bytes), &mut Vec::new());
            roots.push(edge.root());
            let entry: Value = serde_json::from_slice(bytes).unwrap();
            if let (Some(item), Some(version)) = (entry["item"].as_str(), entry["version"].as_u64()) {
                indices.insert((item.to_owned(), version), index);
            }
        }
        Ledger { entries, roots, indices }
    }

    /// What is on this disk is the beginning of the ledger, with all that is owed; and it can be gone on from.
    fn begins_with(&self, disk: &Path, owed: usize, key: &str) -> usize {
        let data = disk.join("data");
        // A power cut is no damage: the service must not take it for that.
        assert_eq!(log_damage(&data.join("pilot.db")).unwrap(), None);
        let head = head::read(&data.join("pilot.db")).unwrap();
        let size = if data.join("pilot.db").exists() { self.database(&data) } else { 0 };
        assert!(size >= owed, "{owed} entries were acknowledged, and {size} are there");
        if let Some(head) = head {
            let told = usize::try_from(head.size).unwrap();
            assert!(told <= size, "{told} entries are spoken of, and {size} are there");
            assert_eq!(head.root, self.roots[told], "the head of size {told}");
        }
        let kept = fs::read_to_string(data.join("log.key")).unwrap_or_default();
        assert!(kept == key || size == 0, "a ledger of {size} entries has lost its key: {kept:?}");
        if let Ok(note) = fs::read_to_string(data.join("log.checkpoint")) {
            let (signed, root) = read_checkpoint(&note);
            let signed = usize::try_from(signed).unwrap();
            assert!(signed <= size, "a checkpoint of {signed} entries was kept, and {size} are there");
            assert_eq!(root, self.roots[signed].to_base64(), "the checkpoint of size {signed}");
        }
        size
    }

    fn database(&self, data: &Path) -> usize {
        let connection = Connection::open(data.join("pilot.db")).unwrap();
        let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
        let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'entry'";
        if connection.query_row(tables, [], |row| row.get::<_, i64>(0)).unwrap() == 0 {
            return 0;
        }
        let found = entries(&connection);
        assert!(self.entries.starts_with(&found), "something else than the beginning of the ledger");
        let head = "SELECT value FROM fact WHERE name = 'head'";
        let head = connection.query_row(head, [], |row| row.get::<_, Vec<u8>>(0)).unwrap_or_default();
        let root = self.roots[found.len()].0;
        assert!(found.is_empty() || head == [&(found.len() as u64).to_be_bytes()[..], &root].concat(), "the head");
        found.len()
    }
}

fn entries(connection: &Connection) -> Vec<Vec<u8>> {
    let mut statement = connection.prepare("SELECT idx, data FROM entry ORDER BY idx").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?))).unwrap();
    rows.enumerate()
        .map(|(expected, row)| {
            let (index, data) = row.unwrap();
            assert_eq!(usize::try_from(index), Ok(expected), "indices have a gap");
            data
        })
        .collect()
}

/// Cuts the power so many times, and looks at each disk; at some of them as an operator would, by starting the service.
fn cut_often(history: &History, ledger: &Ledger, key: &str, states: usize, starts: usize) {
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let (next, left) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let look = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= states {
                return;
            }
            let mut dice = Dice::new(seed.wrapping_add((number as u64) << 32));
            let cut = dice.below(history.end + 1);
            let (files, luck) = history.cut(cut, &mut dice);
            let owed = history.owed(cut, &ledger.indices);
            println!("state {number} of seed {seed}: cut at {cut} of {}, {luck:?}, {owed} entries owed", history.end);
            let disk = installation();
            lay_out(&disk, &files, &mut dice);
            let size = ledger.begins_with(&disk.path(""), owed, key);
            left.fetch_add(size - owed, Ordering::Relaxed);
            if number % (states / starts) == 0 {
                lay_out(&disk, &files, &mut dice);
                let server = disk.serve();
                let mut work = Work::new(0, "after");
                assert!(ask(&mut Client::connect(server.address), &mut work), "the service goes on");
                server.stop().expect(0);
                is_whole(&disk);
            }
        }
    };
    thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(look))));
    println!("{} steps, {} acknowledged", history.end, history.acknowledged.len());
    println!("{states} power cuts, {} entries were there though not acknowledged", left.into_inner());
}

/// The index of the write-ahead log is no part of what must be durable: sometimes there is rubbish in its place.
fn lay_out(disk: &Installation, files: &BTreeMap<PathBuf, Vec<u8>>, dice: &mut Dice) {
    let _ = fs::remove_dir_all(disk.path("data"));
    fs::create_dir(disk.path("data")).unwrap();
    for (path, bytes) in files {
        fs::write(disk.path("").join(path), bytes).unwrap();
        crate::support::harness::set_mode(&disk.path("").join(path), 0o600);
    }
    if dice.below(4) == 0 {
        let rubbish: Vec<u8> = (0..32_768).map(|_| dice.throw().to_le_bytes()[0]).collect();
        fs::write(disk.path("data/pilot.db-shm"), rubbish).unwrap();
    }
}

fn ask(client: &mut Client, work: &mut Work) -> bool {
    let Answered::Done(done, body) = client.ask(&work.next) else { return false };
    work.advance(&done, &body);
    true
}

/// So many people at once, each with so many requests.
fn work(server: &Server, name: &str, people: usize, requests: usize) {
    let address = server.address;
    let person = |number: usize| {
        let (mut client, mut work) = (
            Client::connect(address),
            Work::new(number % crate::durability::client::WRITERS, &format!("{name}{number}")),
        );
        for _ in 0..requests {
            // A disk of this machine that is slow to answer is asked again, with the same key.
            let done = loop {
                match client.ask(&work.next) {
                    Answered::Done(done, body) => break (done, body),
                    Answered::Unavailable => {}
                    Answered::Unknown => panic!("{:?} was not answered", work.next),
                }
            };
            work.advance(&done.0, &done.1);
        }
    };
    thread::scope(|scope| (0..people).for_each(|number| drop(scope.spawn(move || person(number)))));
}

/// All files of the data directory by their names below the installation, when nothing is under way.
fn data_files(installation: &Installation) -> BTreeMap<PathBuf, Vec<u8>> {
    let root = installation.path("");
    let files = installation.files().into_iter().filter(|path| path.starts_with(root.join("data")));
    let relevant = files.filter(|path| !path.to_string_lossy().ends_with("-shm"));
    relevant.map(|path| (path.strip_prefix(&root).unwrap().to_owned(), fs::read(path).unwrap())).collect()
}

/// The service has signed, and kept, a checkpoint of all it has.
fn wait_until_kept(installation: &Installation, server: &Server) {
    let begun = now();
    loop {
        let note =
            Client::connect(server.address).get("/v1/log/checkpoint", crate::durability::client::AUDITOR).unwrap().body;
        let (size, _) = read_checkpoint(&String::from_utf8(note).unwrap());
        let kept = fs::read_to_string(installation.path("data/log.checkpoint")).unwrap_or_default();
        if kept.lines().count() > 2 && read_checkpoint(&kept).0 == size {
            return;
        }
        assert!(begun.elapsed().as_secs() < 10, "the checkpoint is not kept");
        thread::yield_now();
    }
}

/// A tracer that follows a service from its first call on.
pub fn traced(installation: &Installation) -> Command {
    let mut command = Command::new("strace");
    // The tracer stands aside: the process that was started is the service.
    command.arg("-D").args(trace::OPTIONS).arg("-o").arg(installation.path("strace.log"));
    command.args(["-e", &format!("trace={}", trace::CALLS)]);
    command.arg(env!("CARGO_BIN_EXE_pilot")).args(["serve", "--config", "pilot.toml"]);
    installation.prepare(command)
}

/// What the tracer saw of a service that has ended.
pub fn whole_trace(installation: &Installation, of: u32) -> Vec<u8> {
    let begun = now();
    loop {
        let trace = fs::read(installation.path("strace.log")).unwrap();
        let last = trace.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        // Numbers of processes are padded.
        let words: Vec<_> = String::from_utf8_lossy(last).split_whitespace().map(str::to_owned).collect();
        if words == [&of.to_string(), "+++", "exited", "with", "0", "+++"] {
            return trace;
        }
        assert!(begun.elapsed().as_secs() < 10, "the tracer has not seen the end: {words:?}");
        thread::yield_now();
    }
}

#[test]
fn a_power_cut_at_any_moment_from_the_first_start_on_loses_nothing_acknowledged() {
    let installation = installation();
    let mut all = Vec::new();
    for (name, people, requests) in [("first", 8, 9), ("second", 4, 6)] {
        let server = installation.start(traced(&installation));
        let id = server.id();
        work(&server, name, people, requests);
        server.stop().expect(0);
        all.extend(whole_trace(&installation, id));
    }
    is_whole(&installation);
    let (key, ledger) = (installation.read("data/log.key"), Ledger::read(&installation));
    let history = History::new(BTreeMap::new(), trace::read(&all, &installation.path("")));
    assert_eq!(history.acknowledged.len(), 8 * 9 + 4 * 6);
    cut_often(&history, &ledger, &key, rounds(SMALL_STATES), 40);
}

fn attach(installation: &Installation, server: &Server) -> Child {
    let mut command = Command::new("strace");
    command.args(["-p", &server.id().to_string()]).args(trace::OPTIONS).arg("-o").arg(installation.path("strace.log"));
    command.args(["-e", &format!("trace={}", trace::CALLS)]);
    trace::attached(command)
}

/// It is another whenever the write-ahead log begins anew.
fn log_number(installation: &Installation) -> [u8; 4] {
    let log = fs::read(installation.path("data/pilot.db-wal")).unwrap();
    log[12..16].try_into().unwrap()
}

#[test]
fn a_power_cut_while_the_log_is_carried_into_the_database_loses_nothing_acknowledged() {
    let installation = installation();
    let server = installation.serve();
    // Not far from what makes the service carry it over.
    for batch in 0.. {
        if fs::metadata(installation.path("data/pilot.db-wal")).unwrap().len() > 40 << 20 {
            break;
        }
        work(&server, &format!("fill{batch}-"), 16, 12);
    }
    wait_until_kept(&installation, &server);
    let before = data_files(&installation);
    let mut tracer = attach(&installation, &server);
    let (old, mut requests) = (log_number(&installation), 0);
    // The bulk is carried by a thread of its own, which takes its time.
    while log_number(&installation) == old {
        work(&server, &format!("carry{requests}-"), 16, 6);
        requests += 16 * 6;
        assert!(requests < 100_000, "the log has never begun anew");
    }
    work(&server, "anew", 16, 6);
    wait_until_kept(&installation, &server);
    kill_process(Pid::from_raw(i32::try_from(tracer.id()).unwrap()).unwrap(), Signal::INT).unwrap();
    tracer.wait().unwrap();
    let steps = trace::read(&fs::read(installation.path("strace.log")).unwrap(), &installation.path(""));
    server.stop().expect(0);
    let (key, ledger) = (installation.read("data/log.key"), Ledger::read(&installation));
    let history = History::new(before, steps);
    assert_eq!(history.acknowledged.len(), requests + 16 * 6);
    cut_often(&history, &ledger, &key, rounds(LARGE_STATES), 5);
}
