//! A disk that is full, cannot be written, or belongs to someone else already.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rusqlite::Connection;

use crate::durability::client::{AUDITOR, Acknowledged, Answered, Client, Work, installation};
use crate::durability::ledger::{Seen, is_whole};
use crate::support::harness::{Installation, now};

/// A small file system of its own in the place of the data directory.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    pub fn mount(installation: &Installation, size: &str) -> SmallDisk {
        SmallDisk::mount_at(installation.path("data"), size)
    }

    pub fn mount_at(place: PathBuf, size: &str) -> SmallDisk {
        std::fs::create_dir(&place).unwrap();
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size},mode=0700"), "tmpfs"]).arg(&place));
        SmallDisk(place)
    }

    fn remount(&self, how: &str) {
        run(Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(&self.0));
    }

    /// Takes all the room there is, to the last byte.
    pub fn fill(&self) -> PathBuf {
        self.fill_up_to(0)
    }

    /// Takes all but so many bytes.
    pub fn fill_up_to(&self, left: u64) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = std::fs::File::create(&path).unwrap();
        for chunk in [vec![0; 65_536], vec![0; 4_096], vec![0; 1]] {
            while self.free() >= left + chunk.len() as u64 && file.write_all(&chunk).is_ok() {}
        }
        path
    }

    fn free(&self) -> u64 {
        let disk = rustix::fs::statvfs(&self.0).unwrap();
        disk.f_bavail * disk.f_frsize
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
        Answered::Unknown => panic!("the service has ended"),
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
        assert_eq!(server.get("/readyz", &[]).status, 503, "a load balancer is told");
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

/// Asks until the answer is of this kind, and counts how often it was not.
fn settle_until(is_done: bool, client: &mut Client, work: &mut Work, acknowledged: &mut Vec<Acknowledged>) -> usize {
    let begun = now();
    let mut others = 0;
    while settle(client, work, acknowledged) != is_done {
        others += 1;
        assert!(begun.elapsed() < Duration::from_secs(5), "still answered otherwise, {others} times");
    }
    others
}

#[test]
fn a_reserve_is_left_on_the_disk_from_which_everything_can_still_be_signed_and_exported() {
    let installation = installation();
    let disk = SmallDisk::mount(&installation, "64m");
    let server = installation.serve();
    let (mut client, mut work, mut acknowledged) = (Client::connect(server.address), Work::new(0, "near"), Vec::new());
    (0..20).for_each(|_| assert!(settle(&mut client, &mut work, &mut acknowledged)));
    // Of 64 MiB four are kept.
    let filler = disk.fill_up_to(4_000_000);
    server.wait_for_log("the disk is nearly full");
    (0..20).for_each(|_| assert!(!settle(&mut client, &mut work, &mut acknowledged)));
    assert!(disk.free() > 3_900_000, "{} bytes are left", disk.free());
    assert_eq!(server.get("/readyz", &[]).status, 503);
    let mut seen = Seen::default();
    seen.read(&server);
    seen.holds(&acknowledged);
    let everything = ["--from", "2020-01-01T00:00:00Z", "--to", "2120-01-01T00:00:00Z", "--out", "everything.zip"];
    let url = server.url();
    installation.pilot_as(AUDITOR, &[&["evidence", "export", "--url", &url], &everything[..]].concat()).expect(0);
    server.stop().expect(0).says(&["the disk is nearly full"]);
    // The log is in the database now, which made some room. A start has enough, and still accepts nothing.
    std::fs::remove_file(filler).unwrap();
    let filler = disk.fill_up_to(4_000_000);
    let server = installation.serve();
    let mut client = Client::connect(server.address);
    assert!(!settle(&mut client, &mut work, &mut acknowledged));
    server.wait_for_log("the disk is nearly full");
    std::fs::remove_file(filler).unwrap();
    settle_until(true, &mut client, &mut work, &mut acknowledged);
    assert_eq!(server.get("/readyz", &[]).status, 200);
    seen.read(&server);
    seen.holds(&acknowledged);
    server.wait_for_log("there is space again");
    server.stop().expect(0);
    is_whole(&installation);
}

#[test]
fn while_the_second_place_cannot_be_written_nothing_is_accepted() {
    let installation = installation();
    let place = SmallDisk::mount_at(installation.path("place"), "64k");
    let config = installation.read("pilot.toml") + "[log]\ncheckpoint = \"place/log.checkpoint\"\n";
    installation.write("pilot.toml", &config);
    let server = installation.serve();
    let (mut client, mut work, mut acknowledged) = (Client::connect(server.address), Work::new(0, "place"), Vec::new());
    (0..5).for_each(|_| assert!(settle(&mut client, &mut work, &mut acknowledged)));
    let filler = place.fill();
    let before = settle_until(false, &mut client, &mut work, &mut acknowledged);
    assert!(before > 0, "what was accepted before shows that it is full");
    (0..20).for_each(|_| assert!(!settle(&mut client, &mut work, &mut acknowledged)));
    assert_eq!(server.get("/readyz", &[]).status, 503);
    assert_eq!(client.get("/v1/items", AUDITOR).unwrap().status, 200, "reading goes on");
    std::fs::remove_file(filler).unwrap();
    settle_until(true, &mut client, &mut work, &mut acknowledged);
    assert_eq!(server.get("/readyz", &[]).status, 200);
    let mut seen = Seen::default();
    seen.read(&server);
    seen.holds(&acknowledged);
    server.stop().expect(0);
    is_whole(&installation);
}

#[test]
fn a_start_on_a_full_disk_is_refused_and_harms_nothing() {
    let installation = installation();
    let disk = SmallDisk::mount(&installation, "4m");
    let server = installation.serve();
    let (mut work, mut acknowledged) = (Work::new(0, "start"), Vec::new());
    let mut client = Client::connect(server.address);
    (0..50).for_each(|_| assert!(settle(&mut client, &mut work, &mut acknowledged)));
    // After a crash there would be room: a start carries the log over first, and the log makes room.
    server.stop().expect(0);
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

/// Overwrites the page where the table of items begins: no start needs it.
fn break_items(path: &Path) {
    let sql = "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = 'item'";
    let places = Connection::open(path).unwrap().query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)));
    let (page, size): (u32, u32) = places.unwrap();
    let (page, size) = (usize::try_from(page).unwrap(), usize::try_from(size).unwrap());
    let mut bytes = std::fs::read(path).unwrap();
    bytes[(page - 1) * size..page * size].fill(0xA5);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn damage_that_a_reader_meets_ends_the_service_and_says_what_to_do() {
    let damages: [fn(&Path); 3] = [
        |path| change(path, "UPDATE item SET data = 'x'"),
        |path| change(path, "UPDATE item SET data = CAST(x'00ff' AS TEXT)"),
        break_items,
    ];
    for (number, damage) in damages.iter().enumerate() {
        let installation = installation();
        let server = installation.serve();
        let (mut client, mut work) = (Client::connect(server.address), Work::new(0, "damage"));
        (0..5).for_each(|_| assert!(settle(&mut client, &mut work, &mut Vec::new())));
        server.stop().expect(0);
        damage(&database(&installation));
        let server = installation.serve();
        let mut client = Client::connect(server.address);
        assert_eq!(
            client.get("/v1/session", AUDITOR).unwrap().status,
            200,
            "damage {number} does not hinder the start"
        );
        let answer = client.get("/v1/items", AUDITOR).unwrap();
        assert_eq!(answer.status, 503, "damage {number}: {}", answer.text());
        let ended = server.ends().expect(3);
        ended.says(&["damaged", "pilot log fsck", "restore from a backup"]);
        installation.pilot(&["log", "fsck", "--config", "pilot.toml"]).expect(1);
    }
}
