//! A disk that is full, cannot be written, or belongs to someone else already.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rusqlite::Connection;

use crate::client::{AUDITOR, Acknowledged, Answered, Client, Work, installation};
use crate::harness::{Installation, now};
use crate::ledger::{Seen, is_whole};

/// A small file system of its own in the place of the data directory.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(installation: &Installation, size: &str) -> SmallDisk {
        let place = installation.path("data");
        std::fs::create_dir(&place).unwrap();
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size},mode=0700"), "tmpfs"]).arg(&place));
        SmallDisk(place)
    }

    fn remount(&self, how: &str) {
        run(Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(&self.0));
    }

    /// Takes all the room there is, to the last byte.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = std::fs::File::create(&path).unwrap();
        for chunk in [vec![0; 65_536], vec![0; 4_096], vec![0; 1]] {
            while file.write_all(&chunk).is_ok() {}
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[track_caller]
fn run(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?} needs root: {status}");
}

fn settle(client: &mut Client, work: &mut Work, acknowledged: &mut Vec<Acknowledged>) -> bool {
    match client.ask(&work.next) {
        Answered::Done(done, body) => {
            work.advance(&done, &body);
            acknowledged.push(done);
            true
        }
        Answered::Unavailable => false,
        Answered::Unknown => panic!("the service is gone"),
    }
}

#[test]
fn a_full_disk_stops_writing_and_nothing_else_and_writing_goes_on_when_there_is_room() {
    let installation = installation();
    let disk = SmallDisk::mount(&installation, "12m");
    let server = installation.serve();
    let mut client = Client::connect(server.address);
    let (mut work, mut acknowledged, mut slowest) = (Work::new(0, "full"), Vec::new(), Duration::ZERO);
    for round in 0..5 {
        // At another place in the write-ahead log, and in an item's life, each time.
        for _ in 0..30 + 7 * round {
            assert!(settle(&mut client, &mut work, &mut acknowledged), "there is room");
        }
        let filler = disk.fill();
        let mut refused = 0;
        for _ in 0..5_000 {
            refused += u32::from(!settle(&mut client, &mut work, &mut acknowledged));
            if refused == 3 {
                break;
            }
        }
        assert_eq!(refused, 3, "a full disk must be noticed");
        for path in ["/v1/items", "/v1/log/checkpoint", "/v1/events"] {
            assert_eq!(client.get(path, AUDITOR).unwrap().status, 200, "{path} while the disk is full");
        }
        std::fs::remove_file(filler).unwrap();
        let freed = now();
        while !settle(&mut client, &mut work, &mut acknowledged) {
            assert!(freed.elapsed() < Duration::from_secs(5), "writing has not come back");
        }
        slowest = slowest.max(freed.elapsed());
    }
    let mut seen = Seen::default();
    seen.read(&server);
    seen.holds(&acknowledged);
    server.stop().expect(0);
    is_whole(&installation);
    let server = installation.serve();
    seen.read(&server);
    seen.holds(&acknowledged);
    println!("{} acknowledged around five full disks, writing back after at most {slowest:?}", acknowledged.len());
    drop(server);
}

#[test]
fn a_start_on_a_full_disk_is_refused_and_harms_nothing() {
    let installation = installation();
    let disk = SmallDisk::mount(&installation, "4m");
    let server = installation.serve();
    let (mut work, mut acknowledged) = (Work::new(0, "start"), Vec::new());
    let mut client = Client::connect(server.address);
    (0..50).for_each(|_| assert!(settle(&mut client, &mut work, &mut acknowledged)));
    drop(server);
    let filler = disk.fill();
    let refused = installation.serve_in_vain().expect(3);
    refused.says(&["full"]);
    std::fs::remove_file(filler).unwrap();
    let (server, mut seen) = (installation.serve(), Seen::default());
    seen.read(&server);
    seen.holds(&acknowledged);
    server.stop().expect(0);
    is_whole(&installation);
}

#[test]
fn a_store_that_cannot_be_written_is_refused_at_the_start() {
    let installation = installation();
    let disk = SmallDisk::mount(&installation, "4m");
    installation.serve().stop().expect(0);
    disk.remount("ro");
    let refused = installation.serve_in_vain();
    assert!(matches!(refused.code, 2 | 3), "{refused:#?}");
    refused.says(&["pilot.lock", "Read-only"]);
    disk.remount("rw");
    is_whole(&installation);
}

#[test]
fn a_store_on_a_read_only_file_system_is_checked_and_backed_up_or_it_is_said_what_to_do() {
    let installation = installation();
    let disk = SmallDisk::mount(&installation, "4m");
    installation.serve().stop().expect(0);
    disk.remount("ro");
    is_whole(&installation);
    installation.pilot(&["backup", "--out", "copy"]).expect(0);
    disk.remount("rw");
    // A service that was killed leaves entries in the log beside the database, which nobody can read in without writing.
    let server = installation.serve();
    server.signal(rustix::process::Signal::KILL);
    server.ends();
    disk.remount("ro");
    for arguments in [&["log", "fsck"][..], &["backup", "--out", "another"]] {
        let refused = installation.pilot(arguments).expect(3);
        refused.says(&["pilot.db: is on a read-only file system", "copy it together with its -wal file"]);
    }
    disk.remount("rw");
    is_whole(&installation);
}

#[test]
fn a_second_service_on_the_same_store_is_refused() {
    let installation = installation();
    let server = installation.serve();
    installation.serve_in_vain().expect(2).says(&["another process has this store open"]);
    server.stop().expect(0);
    installation.serve().stop().expect(0);
}

fn database(installation: &Installation) -> PathBuf {
    installation.path("data/pilot.db")
}

fn change(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn a_ledger_that_does_not_add_up_is_not_served_and_fsck_says_why() {
    let free = "DROP TRIGGER entry_is_never_updated; DROP TRIGGER entry_is_never_deleted;";
    let changed = "UPDATE entry SET data = CAST(replace(data, 'submitted', 'submitteD') AS BLOB) WHERE idx = 2";
    for (sql, place) in [
        (format!("{free} {changed}"), "entry 2"),
        (format!("{free} DELETE FROM entry WHERE idx = 2"), "entry 2: is missing"),
        (format!("{free} DELETE FROM entry WHERE idx = (SELECT max(idx) FROM entry)"), "tree"),
        ("DELETE FROM fact WHERE name = 'head'".to_owned(), "tree"),
        ("INSERT INTO tile VALUES (0, 0, zeroblob(8192))".to_owned(), "tile 0/0"),
    ] {
        let installation = installation();
        let server = installation.serve();
        let (mut client, mut work) = (Client::connect(server.address), Work::new(0, "damage"));
        (0..9).for_each(|_| assert!(settle(&mut client, &mut work, &mut Vec::new())));
        server.stop().expect(0);
        is_whole(&installation);
        change(&database(&installation), &sql);
        installation.serve_in_vain().expect(2).says(&["damaged", "pilot log fsck"]);
        let found = installation.pilot(&["log", "fsck", "--config", "pilot.toml"]).expect(1);
        assert!(found.stdout.contains(place), "{place}: {found:#?}");
        let found = installation.pilot(&["log", "fsck", "--config", "pilot.toml", "--output", "json"]).expect(1);
        assert!(!found.json()["faults"].as_array().unwrap().is_empty(), "{found:#?}");
    }
}

#[test]
fn a_file_that_is_no_database_or_has_broken_pages_is_refused() {
    let installation = installation();
    installation.serve().stop().expect(0);
    let whole = std::fs::read(database(&installation)).unwrap();
    let mut broken = whole.clone();
    broken[100..whole.len()].fill(0xA5);
    for bytes in [b"not a database, though long enough to be taken for one by its size alone".repeat(20), broken] {
        std::fs::write(database(&installation), bytes).unwrap();
        let refused = installation.serve_in_vain();
        assert!(matches!(refused.code, 2 | 3), "{refused:#?}");
        installation.pilot(&["log", "fsck", "--config", "pilot.toml"]).expect(1);
    }
    std::fs::remove_file(database(&installation)).unwrap();
    installation.pilot(&["log", "fsck", "--config", "pilot.toml"]).expect(3);
}

#[test]
fn a_store_of_a_newer_program_is_refused() {
    let installation = installation();
    installation.serve().stop().expect(0);
    change(&database(&installation), "PRAGMA user_version = 99");
    installation.serve_in_vain().expect(2).says(&["newer version"]);
    installation.pilot(&["log", "fsck", "--config", "pilot.toml"]).expect(3);
}
