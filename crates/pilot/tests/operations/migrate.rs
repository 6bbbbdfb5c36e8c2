//! A ledger moves from the embedded store to PostgreSQL and back, with the program as operators have it.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use pilot_testing::postgres::{Access, Cluster, Database, ServerKey, Settings, psql};
use pilot_testing::{Dice, asked, fresh_seed};
use serde_json::{Value, json};

use crate::operations::second_place::work;
use crate::support::harness::{Finished, Installation};
use crate::support::team::{person, submitted, team};

const FILE: &str = "sqlite:data/pilot.db";

fn migrate(installation: &Installation, from: &str, to: &str) -> Finished {
    installation.pilot(&["store", "migrate", "--from", from, "--to", to])
}

/// The same installation, with the database as its store.
fn now_in(installation: &Installation, database: &Database) {
    let config = installation.read("pilot.toml");
    installation.write("pilot.toml", &format!("{config}[store]\nurl = \"{}\"\n", database.url()));
}

fn fsck(installation: &Installation) -> Value {
    let report = installation.pilot(&["log", "fsck", "--output", "json"]).expect(0).json();
    assert_eq!(report["faults"], json!([]));
    report
}

/// A stopped service that has written this many items, one of which has ended. Returns that one.
fn written(items: usize) -> (Installation, String) {
    let installation = team();
    let server = installation.serve();
    work(&server, items);
    let ended = submitted(&server, "low");
    assert_eq!(person(&server, "ana").decides(&ended, "withdraw").status, 201);
    server.stop().expect(0);
    (installation, ended)
}

#[test]
fn a_ledger_is_moved_checked_backed_up_erased_from_and_moved_back() {
    let (installation, ended) = written(30);
    let before = fsck(&installation);
    let database = Cluster::shared().fresh_database();
    let server = installation.serve();
    migrate(&installation, FILE, database.url()).expect(1).says(&["another process has this store open"]);
    server.stop().expect(0);

    let moved = migrate(&installation, FILE, database.url()).expect(0);
    let root = fsck(&installation)["root"].as_str().unwrap().to_owned();
    assert!(moved.stdout.contains(&format!("both sides have the root {root}")), "{moved:#?}");
    assert!(moved.stdout.contains(&format!("url = \"{}\"", database.url())), "{moved:#?}");
    let again = ["store", "migrate", "--from", FILE, "--to", database.url(), "--output", "json"];
    let again = installation.pilot(&again).expect(0).json();
    assert_eq!((&again["root"], &again["was_finished"]), (&json!(root), &json!(true)));
    let (other, _) = written(1);
    migrate(&other, FILE, database.url()).expect(1).says(&["the database is not empty", "create an empty database"]);

    let embedded = fsck(&installation);
    let config = installation.read("pilot.toml");
    now_in(&installation, &database);
    assert_eq!(fsck(&installation), embedded);
    assert!(embedded["entries"].as_u64() > before["entries"].as_u64(), "a start is an entry");
    let backup = installation.pilot(&["backup", "--out", "b1"]).expect(0);
    assert!(backup.stdout.contains("a verified backup of"), "{backup:#?}");
    let server = installation.serve();
    work(&server, 1);
    server.stop().expect(0);
    installation.pilot(&["support-bundle", "--out", "bundle.txt"]).expect(0);
    let bundle = installation.read("bundle.txt");
    assert!(bundle.contains("PostgreSQL 1") && bundle.contains("everything is consistent"), "{bundle}");
    let erase = ["evidence", "erase", "--item", &ended, "--why", "asked for"];
    let erased = installation.pilot(&erase).expect(0);
    assert!(erased.stdout.contains("were erased"), "{erased:#?}");
    assert_eq!(fsck(&installation)["erased"], json!(1));
    let refused = installation.pilot(&["restore", "b1"]).expect(2);
    refused.says(&["the database is not empty", "point store.url at it"]);

    migrate(&installation, database.url(), FILE).expect(1).says(&["already exists"]);
    fs::rename(installation.path("data/pilot.db"), installation.path("data/aside.db")).unwrap();
    let back = migrate(&installation, database.url(), FILE).expect(0);
    assert!(back.stdout.contains("url = \"sqlite:data/pilot.db\""), "{back:#?}");
    installation.write("pilot.toml", &config);
    assert_eq!(fsck(&installation)["erased"], json!(1));
    let server = installation.serve();
    work(&server, 1);
    server.stop().expect(0);
    fsck(&installation);
}

#[test]
fn a_backup_is_restored_into_an_empty_database() {
    let (installation, _) = written(3);
    installation.pilot(&["backup", "--out", "b1"]).expect(0);
    let entries = fsck(&installation)["entries"].as_u64().unwrap();
    let database = Cluster::shared().fresh_database();
    now_in(&installation, &database);
    let restored = installation.pilot(&["restore", "b1"]).expect(0);
    assert!(restored.stdout.contains("Nothing is missing"), "{restored:#?}");
    assert_eq!(fsck(&installation)["entries"], json!(entries + 1));
}

#[test]
fn a_ledger_is_moved_over_tls_with_a_password_from_a_file() {
    let cluster = Cluster::start(&Settings { access: Access::Tls(ServerKey::Ecdsa), ..Settings::default() });
    let (installation, _) = written(3);
    let embedded = fsck(&installation);
    let database = cluster.fresh_database();
    let (url, ca) = (cluster.url_for("postgres", database.name()), cluster.tls().ca.display().to_string());
    installation.write("password", cluster.password());
    let arguments = ["store", "migrate", "--from", FILE, "--to", &url, "--password-file", "password"];
    installation.pilot(&arguments).expect(3).says(&["cannot be reached"]);
    let moved = installation.pilot(&[&arguments[..], &["--ca-file", &ca]].concat()).expect(0);
    moved.never_says(cluster.password());
    let config = installation.read("pilot.toml");
    let store = format!("[store]\nurl = \"{url}\"\npassword_file = \"password\"\nca_file = \"{ca}\"\n");
    installation.write("pilot.toml", &format!("{config}{store}"));
    assert_eq!(fsck(&installation), embedded);
}

#[test]
fn what_cannot_be_moved_is_refused_and_no_password_is_repeated() {
    let (installation, _) = written(1);
    let database = Cluster::shared().fresh_database();
    let url = database.url();
    let secret = url.replace("postgres@", "postgres:hunter2@");
    let refused = migrate(&installation, FILE, &secret).expect(2);
    refused.says(&["--to: has a password in it", "--password-file"]);
    refused.never_says("hunter2");
    for (from, to) in [(FILE, FILE), (url, url)] {
        migrate(&installation, from, to).expect(2).says(&["from sqlite:PATH to postgres://"]);
    }
    migrate(&installation, FILE, "mysql://ana:hunter2@h/d").expect(2).never_says("hunter2");
    migrate(&installation, "sqlite:nowhere.db", url).expect(3).says(&["nowhere.db: cannot be read"]);
    migrate(&installation, FILE, "postgres://nobody@127.0.0.1:9/none").expect(3).says(&["cannot be reached"]);
    migrate(&installation, FILE, "postgres://nobody@127.0.0.1").expect(1).says(&["--to"]);
    migrate(&installation, url, "sqlite:data/new.db").expect(1).says(&["no ledger in it"]);
    assert!(!installation.path("data/new.db").exists());
    psql(url, "CREATE TABLE unrelated (x integer)").unwrap();
    migrate(&installation, FILE, url).expect(0);
}

#[test]
fn a_move_that_is_killed_at_any_moment_is_finished_by_the_next() {
    let seed = asked("PILOT_SEED").unwrap_or_else(fresh_seed);
    println!("PILOT_SEED={seed}");
    let mut dice = Dice::new(seed);
    let (installation, _) = written(300);
    let embedded = fsck(&installation);
    let database = Cluster::shared().fresh_database();
    let mut kills = 0_u64;
    loop {
        let mut command: Command = installation.command(&["store", "migrate", "--from", FILE, "--to", database.url()]);
        let mut moving = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Longer and longer, so that one of them gets to the end.
        thread::sleep(Duration::from_millis(dice.below(20 + 10 * kills)));
        moving.kill().unwrap();
        kills += 1;
        // On a signal there is no code.
        match moving.wait().unwrap().code() {
            None => {}
            Some(0) => break,
            Some(code) => {
                let why = migrate(&installation, FILE, database.url());
                panic!("after {kills} kills it ended with {code}; the next: {why:#?}");
            }
        }
    }
    println!("finished after {kills} attempts");
    let again = migrate(&installation, FILE, database.url()).expect(0);
    assert!(again.stdout.contains("had already been copied"), "{again:#?}");
    now_in(&installation, &database);
    assert_eq!(fsck(&installation), embedded);
}
