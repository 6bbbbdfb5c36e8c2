//! `pilot log fsck` holds a ledger against its key and the second place, as a start does.

use std::fs;

use crate::operations::second_place::{copy_database, work};
use crate::support::harness::{Installation, set_mode};
use crate::support::team::team;

/// A stopped service with three items, and beside it the ledger as it was after the first.
fn aged() -> Installation {
    let installation = team();
    let server = installation.serve();
    work(&server, 1);
    server.stop().expect(0);
    copy_database(&installation.path("data"), &installation.path("old"));
    fs::copy(installation.path("data/log.checkpoint"), installation.path("old/log.checkpoint")).unwrap();
    let server = installation.serve();
    work(&server, 2);
    server.stop().expect(0);
    installation
}

/// Both say so, and the bundle for whoever helps does too.
#[track_caller]
fn finds(installation: &Installation, words: &[&str]) {
    let found = installation.pilot(&["log", "fsck"]).expect(1);
    let faults = installation.pilot(&["log", "fsck", "--output", "json"]).expect(1).json()["faults"].to_string();
    let _ = fs::remove_file(installation.path("bundle.txt"));
    installation.pilot(&["support-bundle", "--out", "bundle.txt"]).expect(0);
    let bundle = installation.read("bundle.txt");
    for word in words {
        assert!(found.stdout.contains(word), "{word:?} is missing in {found:#?}");
        assert!(faults.contains(word) && bundle.contains(word), "{word:?} is missing in {faults} or in {bundle}");
    }
    assert!(!found.stdout.contains("everything is consistent"), "{found:#?}");
    installation.serve_in_vain().expect(2);
}

#[track_caller]
fn finds_nothing(installation: &Installation) {
    let found = installation.pilot(&["log", "fsck"]).expect(0);
    assert!(found.stdout.contains("everything is consistent"), "{found:#?}");
}

#[test]
fn an_older_ledger_than_the_one_that_was_signed_is_a_fault() {
    let installation = aged();
    finds_nothing(&installation);
    copy_database(&installation.path("old"), &installation.path("data"));
    finds(&installation, &["data/log.checkpoint", "covers 5 entries, but the ledger has 2: 3 are missing"]);
    // Another place for the checkpoint is looked at, too.
    fs::rename(installation.path("data/log.checkpoint"), installation.path("elsewhere")).unwrap();
    installation.write("pilot.toml", "listen = \"127.0.0.1:0\"\n[log]\ncheckpoint = \"elsewhere\"\n");
    finds(&installation, &["checkpoint elsewhere", "3 are missing"]);
}

#[test]
fn another_history_than_the_one_that_was_signed_is_a_fault() {
    let installation = aged();
    let signed = installation.read("data/log.checkpoint");
    copy_database(&installation.path("old"), &installation.path("data"));
    // As a snapshot of the machine would bring both back.
    installation.write("data/log.checkpoint", &installation.read("old/log.checkpoint"));
    let server = installation.serve();
    work(&server, 3);
    server.stop().expect(0);
    installation.write("data/log.checkpoint", &signed);
    finds(&installation, &["data/log.checkpoint", "has a different root from the ledger at 5 entries"]);
}

#[test]
fn a_key_that_is_missing_unreadable_or_anothers_is_a_fault() {
    let installation = aged();
    let key = installation.read("data/log.key");
    fs::remove_file(installation.path("data/log.key")).unwrap();
    finds(&installation, &["log key data/log.key", "is missing, but the ledger is not empty"]);
    installation.write("data/log.key", "PRIVATE+KEY+nonsense");
    finds(&installation, &["log key data/log.key", "cannot be used"]);
    installation.write("data/log.key", &key);
    set_mode(&installation.path("data/log.key"), 0o644);
    finds(&installation, &["log key data/log.key", "cannot be used"]);
    let other = team();
    other.serve().stop().expect(0);
    fs::remove_file(installation.path("data/log.key")).unwrap();
    fs::copy(other.path("data/log.key"), installation.path("data/log.key")).unwrap();
    finds(&installation, &["data/log.checkpoint", "is not signed by this log's key (it was signed by another key)"]);
}

#[test]
fn a_checkpoint_that_is_changed_unreadable_or_missing_is_a_fault() {
    let installation = aged();
    let note = installation.read("data/log.checkpoint");
    installation.write("data/log.checkpoint", &note.replacen("\n5\n", "\n4\n", 1));
    finds(&installation, &["data/log.checkpoint", "is not signed by this log's key"]);
    installation.write("data/log.checkpoint", "");
    finds(&installation, &["data/log.checkpoint", "is not signed by this log's key"]);
    fs::remove_file(installation.path("data/log.checkpoint")).unwrap();
    finds(&installation, &["data/log.checkpoint", "is missing, but this ledger has kept its checkpoint there"]);
    fs::create_dir(installation.path("data/log.checkpoint")).unwrap();
    let found = installation.pilot(&["log", "fsck"]).expect(1);
    assert!(found.stdout.contains("data/log.checkpoint: cannot be read"), "{found:#?}");
}
