//! A database that is not the one that was signed last is not served, and a key with two servers stops one of them.

use std::fs;
use std::path::Path;

use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::note::VerifierKey;

use crate::support::harness::{Finished, Installation, PATIENCE, Server, now};
use crate::support::team::{payload, person, team};

pub fn verifier_key(installation: &Installation) -> VerifierKey {
    let printed = installation.pilot(&["log", "key", "--config", "pilot.toml"]).expect(0).stdout;
    VerifierKey::parse(printed.trim()).unwrap()
}

/// Writes this many entries.
pub fn work(server: &Server, items: usize) {
    let mut ana = person(server, "ana");
    for _ in 0..items {
        ana.creates("controlled-operation", &payload("low"));
    }
}

fn kept(installation: &Installation) -> Checkpoint {
    Checkpoint::open(&installation.read("data/log.checkpoint"), &verifier_key(installation)).unwrap()
}

/// The database with everything in it, while no service runs.
pub fn copy_database(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in ["pilot.db", "pilot.db-wal", "pilot.db-shm"] {
        let _ = fs::remove_file(to.join(name));
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

/// A start that is refused, in words for an operator, without harm to what is there.
fn is_refused(installation: &Installation, words: &[&str]) -> Finished {
    let kept = fs::read(installation.path("data/log.checkpoint")).ok();
    let refused = installation.serve_in_vain().expect(2);
    refused.says(words);
    assert_eq!(fs::read(installation.path("data/log.checkpoint")).ok(), kept, "the second place is left alone");
    refused
}

#[test]
fn the_second_place_follows_the_ledger_within_a_second_though_nobody_asks() {
    let installation = team();
    let server = installation.serve();
    work(&server, 3);
    let acknowledged = now();
    while kept(&installation).size < 4 {
        assert!(acknowledged.elapsed() < PATIENCE, "the second place does not follow");
        std::thread::yield_now();
    }
    // Half a second by design; the rest is for a machine with other things to do.
    println!("the second place followed after {:?}", acknowledged.elapsed());
    work(&server, 1);
    server.stop().expect(0);
    assert_eq!(kept(&installation).size, 5, "the last entries are signed at the stop");
    let again = installation.serve();
    let note = String::from_utf8(person(&again, "ada").get("/v1/log/checkpoint").body).unwrap();
    assert_eq!(note, installation.read("data/log.checkpoint"), "what is served is kept first");
}

#[test]
fn an_old_database_beside_a_newer_checkpoint_is_refused() {
    let installation = team();
    let server = installation.serve();
    work(&server, 2);
    server.stop().expect(0);
    copy_database(&installation.path("data"), &installation.path("old"));
    let server = installation.serve();
    work(&server, 2);
    server.stop().expect(0);
    copy_database(&installation.path("data"), &installation.path("new"));
    copy_database(&installation.path("old"), &installation.path("data"));
    is_refused(&installation, &["3 acknowledged entries are missing", "old backup", "--accept-loss", "Do not delete"]);
    copy_database(&installation.path("new"), &installation.path("data"));
    installation.serve().stop().expect(0);
}

#[test]
fn a_database_with_another_history_is_refused_though_it_is_longer() {
    let installation = team();
    let server = installation.serve();
    work(&server, 2);
    server.stop().expect(0);
    copy_database(&installation.path("data"), &installation.path("old"));
    let first = installation.read("data/log.checkpoint");
    let server = installation.serve();
    work(&server, 2);
    server.stop().expect(0);
    let second = installation.read("data/log.checkpoint");
    // The same key goes on from the old database, as if nothing had been signed since.
    copy_database(&installation.path("old"), &installation.path("data"));
    installation.write("data/log.checkpoint", &first);
    let server = installation.serve();
    work(&server, 9);
    server.stop().expect(0);
    installation.write("data/log.checkpoint", &second);
    is_refused(&installation, &["does not continue the checkpoint of 6 entries", "two servers", "keep both databases"]);
}

#[test]
fn removing_the_second_place_or_the_database_is_no_way_around_it() {
    let installation = team();
    let server = installation.serve();
    work(&server, 2);
    server.stop().expect(0);
    let note = installation.read("data/log.checkpoint");
    fs::remove_file(installation.path("data/log.checkpoint")).unwrap();
    is_refused(&installation, &["log.checkpoint is missing", "put the newest signed checkpoint you have"]);
    installation.write("data/log.checkpoint", &note);
    installation.serve().stop().expect(0);
    for name in ["pilot.db", "pilot.db-wal", "pilot.db-shm"] {
        let _ = fs::remove_file(installation.path("data").join(name));
    }
    is_refused(&installation, &["the ledger has 0 entries", "checkpoint of 4"]);
    fs::remove_file(installation.path("data/log.key")).unwrap();
    is_refused(&installation, &["the log's signing key is missing"]);
}

#[test]
fn another_key_and_a_damaged_checkpoint_are_refused() {
    let (installation, other) = (team(), team());
    for installation in [&installation, &other] {
        installation.serve().stop().expect(0);
    }
    let note = installation.read("data/log.checkpoint");
    installation.write("data/log.checkpoint", &other.read("data/log.checkpoint"));
    is_refused(&installation, &["is not signed by this log's key", "it was signed by another key", "log.key"]);
    for damaged in ["", "x", &note.replacen("\n1\n", "\n2\n", 1), &note[..note.len() - 2]] {
        installation.write("data/log.checkpoint", damaged);
        is_refused(&installation, &["is not signed by this log's key"]);
    }
    installation.write("data/log.checkpoint", &note);
    installation.serve().stop().expect(0);
}

#[test]
fn a_ledger_from_before_the_second_place_begins_one_and_says_so() {
    let installation = team();
    let server = installation.serve();
    work(&server, 1);
    server.stop().expect(0);
    // As such a version left it: no file, and no word of one.
    fs::remove_file(installation.path("data/log.checkpoint")).unwrap();
    let database = rusqlite::Connection::open(installation.path("data/pilot.db")).unwrap();
    let forget = "UPDATE fact SET value = CAST(json_remove(CAST(substr(value, 2) AS TEXT), '$.second_place') AS BLOB) \
                  WHERE name = 'start'";
    assert_eq!(database.execute(forget, []).unwrap(), 1);
    drop(database);
    let finished = installation.serve().stop().expect(0);
    finished.says(&["log.checkpoint from now on"]);
    assert_eq!(kept(&installation).size, 3);
    fs::remove_file(installation.path("data/log.checkpoint")).unwrap();
    is_refused(&installation, &["log.checkpoint is missing"]);
}

#[test]
fn two_servers_on_one_key_and_one_second_place_cannot_both_go_on() {
    let (installation, twin) = (team(), team());
    let shared =
        format!("listen = \"127.0.0.1:0\"\n[log]\ncheckpoint = \"{}\"\n", installation.path("shared").display());
    installation.write("pilot.toml", &shared);
    twin.write("pilot.toml", &shared);
    installation.serve().stop().expect(0);
    copy_database(&installation.path("data"), &twin.path("data"));
    fs::copy(installation.path("data/log.key"), twin.path("data/log.key")).unwrap();
    let server = installation.serve();
    // On one machine the lock says so; from another, the file that has changed.
    twin.serve_in_vain().expect(2).says(&["another service keeps its checkpoint there"]);
    let (begun, mut note) = (now(), String::new());
    while !note.contains("\n2\n") {
        assert!(begun.elapsed() < PATIENCE, "the start is never signed: {note}");
        note = fs::read_to_string(installation.path("shared")).unwrap();
    }
    fs::write(installation.path("shared"), note.replacen("\n2\n", "\n3\n", 1)).unwrap();
    person(&server, "ana")
        .post("/v1/items", &serde_json::json!({"workflow": "controlled-operation", "title": "x", "payload": {}}));
    let ended = server.ends().expect(3);
    ended.says(&["was changed by someone else", "two servers on one key", "the process stops"]);
}

#[test]
fn a_root_that_the_entries_do_not_add_up_to_is_never_signed() {
    let installation = team();
    let server = installation.serve();
    work(&server, 1);
    let mut ada = person(&server, "ada");
    let good = ada.get("/v1/log/checkpoint");
    assert_eq!(good.status, 200);
    // A bit of an entry that was committed flips on disk before it is signed: here by a hand that goes past the service.
    let database = rusqlite::Connection::open(installation.path("data/pilot.db")).unwrap();
    database.busy_timeout(PATIENCE).unwrap();
    let flip = "CREATE TRIGGER flip AFTER INSERT ON entry BEGIN \
                UPDATE entry SET data = CAST(replace(data, 'ana', 'amy') AS BLOB) WHERE idx = NEW.idx; END;";
    database.execute_batch(&format!("DROP TRIGGER entry_is_never_updated; {flip}")).unwrap();
    let before = installation.read("data/log.checkpoint");
    person(&server, "ana")
        .post("/v1/items", &serde_json::json!({"workflow": "controlled-operation", "title": "x", "payload": {}}));
    let ended = server.ends().expect(3);
    ended.says(&["do not lead to the expected root", "nothing was signed"]);
    assert_eq!(installation.read("data/log.checkpoint"), before);
}
