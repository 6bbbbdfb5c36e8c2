//! Backups of a running service, what is restored from them, and every way in which an old one could become a fork.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use serde_json::{Value, json};

use crate::operations::second_place::{copy_database, verifier_key, work};
use crate::support::harness::{Finished, Installation, Server};
use crate::support::team::{Person, payload, person, team, token};

const CONFIG: &str = "listen = \"127.0.0.1:0\"\n[credentials]\nfile = \"credentials.json\"\nrole_map = \"map.json\"\n[workflows]\ndir = \"flows\"\n";

/// A team with a role map and a directory of definitions.
fn furnished() -> Installation {
    let installation = team();
    installation.write("pilot.toml", CONFIG);
    let map: Vec<_> =
        crate::support::team::TEAM.iter().map(|(name, role)| json!({"actor_id": name, "role": role})).collect();
    installation
        .write("map.json", &json!({"schema_version": 1, "approved_by": ["Ina", "Jo"], "actors": map}).to_string());
    fs::create_dir(installation.path("flows")).unwrap();
    installation
}

fn backup(installation: &Installation, out: &str) -> Finished {
    installation.pilot(&["backup", "--config", "pilot.toml", "--out", out])
}

fn restore(installation: &Installation, arguments: &[&str]) -> Finished {
    installation.pilot(&[&["restore", "--config", "pilot.toml"], arguments].concat())
}

/// The details of every entry of a kind.
fn entries(server: &Server, kind: &str) -> Vec<Value> {
    let events = person(server, "ada").get("/v1/events?limit=200").json();
    let entries = events["events"].as_array().unwrap().clone();
    entries.into_iter().filter(|event| event.to_string().contains(kind)).collect()
}

fn is_whole(installation: &Installation) {
    installation.pilot(&["log", "fsck", "--config", "pilot.toml"]).expect(0);
}

#[test]
fn a_backup_of_a_busy_service_is_whole_and_restores_a_service_on_another_machine() {
    let installation = furnished();
    let server = installation.serve();
    work(&server, 20);
    let finished = thread::scope(|scope| {
        let write = |mut ana: Person| (0..40).for_each(|_| drop(ana.creates("controlled-operation", &payload("low"))));
        let writers: Vec<_> =
            (0..3).map(|_| person(&server, "ana")).map(|ana| scope.spawn(move || write(ana))).collect();
        let finished = backup(&installation, "b1").expect(0);
        for writer in writers {
            writer.join().unwrap();
        }
        finished
    });
    assert!(finished.stdout.contains("a verified backup of"), "{finished:#?}");
    let manifest: Value = serde_json::from_str(&installation.read("b1/manifest.json")).unwrap();
    let names: Vec<_> =
        manifest["files"].as_array().unwrap().iter().map(|file| file["name"].as_str().unwrap()).collect();
    let expected = ["log.checkpoint", "log.checkpoint.revocations", "pilot.db", "pilot.toml", "role-map.json"];
    assert_eq!(names, expected, "no key and no credentials");
    for name in names {
        assert_eq!(fs::metadata(installation.path("b1").join(name)).unwrap().permissions().mode() & 0o777, 0o600);
    }
    server.stop().expect(0);
    backup(&installation, "b1").expect(2).says(&["already exists"]);
    // The last of them is restored on another machine, with the key and the checkpoint from their own places.
    installation.pilot(&["backup", "--out", "b2", "--with-key"]).expect(0);
    let other = furnished();
    fs::remove_file(other.path("map.json")).unwrap();
    let (from, seen) = (installation.path("b2").display().to_string(), installation.path("data/log.checkpoint"));
    let refused = restore(&other, &[&from]).expect(1);
    refused.says(&["nothing outside of it shows how far the log had grown", "--checkpoint", "--accept-loss"]);
    let restored = restore(&other, &[&from, "--checkpoint", seen.to_str().unwrap()]).expect(0);
    assert!(restored.stdout.contains("Nothing is missing: it continues the checkpoint of"), "{restored:#?}");
    assert!(restored.stdout.contains("map.json: restored"), "{restored:#?}");
    assert_eq!(verifier_key(&other), verifier_key(&installation));
    let server = other.serve();
    work(&server, 1);
    let told = entries(&server, "ledger.restored");
    assert_eq!(told.len(), 1);
    assert!(told[0].to_string().contains("it continues the checkpoint"), "{told:?}");
    server.stop().expect(0);
    is_whole(&other);
}

#[test]
fn an_old_backup_is_not_restored_under_the_same_key_and_a_loss_is_accepted_with_a_new_one() {
    let installation = team();
    let server = installation.serve();
    work(&server, 2);
    backup(&installation, "old").expect(0);
    work(&server, 5);
    let busy = restore(&installation, &["old", "--replace"]).expect(2);
    busy.says(&["another service keeps its checkpoint there"]);
    server.stop().expect(0);
    restore(&installation, &["old"]).expect(2).says(&["a database already exists", "--replace"]);
    let (database, key) = (fs::read(installation.path("data/pilot.db")).unwrap(), verifier_key(&installation));
    let refused = restore(&installation, &["old", "--replace"]).expect(1);
    refused.says(&["nothing was restored", "5 acknowledged entries are missing", "--accept-loss"]);
    assert!(fs::read(installation.path("data/pilot.db")).unwrap() == database, "nothing was touched");
    let left: Vec<_> = fs::read_dir(installation.path("data")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("restoring")), "{left:?}");
    let leaky = format!("the token was {}", token("ana"));
    restore(&installation, &["old", "--replace", "--accept-loss", &leaky]).expect(1).says(&["contains a clear token"]);
    restore(&installation, &["old", "--replace", "--accept-loss", " "]).expect(2).says(&["say why"]);

    let lost = restore(&installation, &["old", "--replace", "--accept-loss", "the disk died"]).expect(0);
    let new = verifier_key(&installation);
    assert_eq!(new.name, format!("{}.r2", key.name));
    assert!(lost.stdout.contains("THE LOG HAS A NEW KEY") && lost.stdout.contains(&new.to_string()), "{lost:#?}");
    let names: Vec<_> =
        fs::read_dir(installation.path("data")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let kept = |prefix: &str| names.iter().any(|name| name.to_string_lossy().starts_with(prefix));
    assert!(kept("pilot.db.replaced-") && kept("log.key.retired-"), "what was there is kept: {names:?}");
    let server = installation.serve();
    let told = entries(&server, "ledger.restored");
    for word in ["the disk died", "5 acknowledged entries are missing", "olga", "previous_checkpoint", &key.name] {
        assert!(told[0].to_string().contains(word), "{word}: {told:?}");
    }
    work(&server, 1);
    server.stop().expect(0);
    is_whole(&installation);
}

#[test]
fn a_lost_second_place_is_put_back_or_given_up_deliberately() {
    let installation = team();
    let server = installation.serve();
    work(&server, 2);
    server.stop().expect(0);
    let key = verifier_key(&installation);
    fs::remove_file(installation.path("data/log.checkpoint")).unwrap();
    installation.serve_in_vain().expect(2);
    restore(&installation, &[]).expect(2);
    restore(&installation, &["--accept-loss", "the disk of the checkpoint died"]).expect(0);
    assert_ne!(verifier_key(&installation), key);
    let server = installation.serve();
    assert_eq!(entries(&server, "ledger.restored").len(), 1);
    assert_eq!(entries(&server, "item.created").len(), 2, "everything that was there is there");
    server.stop().expect(0);
    is_whole(&installation);
}

#[test]
fn a_damaged_backup_is_named_and_not_restored() {
    let installation = team();
    let server = installation.serve();
    work(&server, 3);
    server.stop().expect(0);
    backup(&installation, "good").expect(0);
    let all = ["good/pilot.db", "good/log.checkpoint", "good/pilot.toml"];
    for name in all {
        let path = installation.path(name);
        let bytes = fs::read(&path).unwrap();
        let mut changed = bytes.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 1;
        fs::write(&path, &changed).unwrap();
        let file = name.trim_start_matches("good/");
        restore(&installation, &["good", "--replace"]).expect(1).says(&[&format!("{file} is missing or changed")]);
        fs::write(&path, &bytes).unwrap();
    }
    installation.write("good/extra", "x");
    restore(&installation, &["good", "--replace"]).expect(1).says(&["extra was not part of it"]);
    fs::remove_file(installation.path("good/extra")).unwrap();
    restore(&installation, &["nowhere", "--replace"]).expect(2).says(&["is this a directory made by `pilot backup`?"]);
    restore(&installation, &["good", "--replace"]).expect(0);
    is_whole(&installation);
    installation.serve().stop().expect(0);
}

#[test]
fn a_ledger_with_faults_is_not_backed_up_as_if_it_were_whole() {
    let installation = team();
    let server = installation.serve();
    work(&server, 3);
    server.stop().expect(0);
    let database = rusqlite::Connection::open(installation.path("data/pilot.db")).unwrap();
    database.execute_batch("UPDATE item SET state = 'succeeded'").unwrap();
    drop(database);
    backup(&installation, "bad").expect(1).says(&["the copy has faults", "no backup was made"]);
    assert!(!installation.path("bad").exists() && !installation.path("bad.partial").exists());
}

#[test]
fn an_old_copy_of_everything_is_exposed_by_a_witness() {
    let installation = team();
    installation.serve().stop().expect(0);
    let printed = installation.pilot(&["log", "witness", "--state", "w", "--print-key"]).expect(0).stdout;
    let (port, log) = (crate::support::harness::Port::reserve(), verifier_key(&installation).to_string());
    let listen = port.address().to_string();
    let witness = installation.command(&["log", "witness", "--listen", &listen, "--state", "w", "--log", &log]);
    let witness = installation.start(witness);
    let config = format!(
        "listen = \"127.0.0.1:0\"\n[log]\nwitnesses = [{{ url = \"http://{listen}\", key = \"{}\" }}]\nrequire_witnesses = 1\n",
        printed.trim()
    );
    installation.write("pilot.toml", &config);
    let server = installation.serve();
    work(&server, 1);
    server.stop().expect(0);
    backup(&installation, "old").expect(0);
    // The database and the second place together, as a snapshot of the machine would bring them back.
    copy_database(&installation.path("data"), &installation.path("snapshot"));
    fs::copy(installation.path("data/log.checkpoint"), installation.path("snapshot/log.checkpoint")).unwrap();
    let server = installation.serve();
    let id = crate::support::team::cleared(&server);
    assert_eq!(person(&server, "eli").decides(&id, "start").status, 201, "the witness has seen it all");
    server.stop().expect(0);
    copy_database(&installation.path("snapshot"), &installation.path("data"));
    fs::copy(installation.path("snapshot/log.checkpoint"), installation.path("data/log.checkpoint")).unwrap();
    let server = installation.serve();
    server.wait_for_log("A DIFFERENT HISTORY");
    let id = crate::support::team::cleared(&server);
    assert_eq!(person(&server, "eli").decides(&id, "start").verdict(), "503 unavailable", "and no effect begins");
    server.stop().expect(0);
    // Nor does a restore go below what the witness knows, though the file beside the database would let it.
    fs::copy(installation.path("snapshot/log.checkpoint"), installation.path("data/log.checkpoint")).unwrap();
    let refused = restore(&installation, &["old", "--replace"]).expect(1);
    refused.says(&["nothing was restored", "witness", "entries are missing here"]);
    witness.stop().expect(0);
}

#[test]
fn a_support_bundle_shows_what_helps_and_no_token() {
    let installation = team();
    let port = crate::support::harness::Port::reserve();
    installation.write("pilot.toml", &format!("listen = \"127.0.0.1:0\"\n[ops]\nlisten = \"{}\"\n", port.address()));
    let server = installation.serve();
    person(&server, "ana").creates("controlled-operation", &payload("low"));
    let zoe = ["--schema-version", "1", "--actor", "zoe", "--role", "auditor"];
    let generated = installation.pilot(&[&["credential", "new", "--file", "other.json"], &zoe[..]].concat());
    let generated =
        generated.expect(0).stdout.split_whitespace().find(|word| word.starts_with("pilot_")).unwrap().to_owned();
    let (ana, ben) = (token("ana"), token("ben"));
    let log = format!(
        "{{\"message\": \"a line with {ana} in it\"}}\nGET /v1/session?token={ben} 400\nAuthorization: Bearer {generated}\nall is well\n"
    );
    installation.write("service.log", &log);
    let arguments = ["support-bundle", "--out", "bundle.txt", "--log-file", "service.log"];
    installation.pilot(&arguments).expect(0);
    let bundle = installation.read("bundle.txt");
    for canary in [&ana, &ben, &generated] {
        assert!(!bundle.contains(canary.as_str()), "{canary} is in the bundle");
    }
    for (name, _) in crate::support::team::TEAM {
        assert!(
            !bundle.contains(&crate::support::harness::digest(token(name).as_bytes())),
            "a digest is in the bundle"
        );
    }
    for word in [
        "==== version",
        "SQLite 3.",
        "listen = \"127.0.0.1:0\"",
        "everything is consistent",
        "pilot_ledger_entries 2",
        "pilot.db",
        "all is well",
        "a line with",
        "\u{2014} pilot.local/",
    ] {
        assert!(bundle.contains(word), "{word}: {bundle}");
    }
    assert_eq!(crate::support::harness::mode(&installation.path("bundle.txt")), 0o600);
    installation.pilot(&arguments).expect(2).says(&["already exists"]);
    server.stop().expect(0);
    // A service that does not start is when it is needed most.
    installation.write("credentials.json", "{}");
    installation.pilot(&["support-bundle", "--out", "second.txt", "--no-fsck"]).expect(0);
    let bundle = installation.read("second.txt");
    assert!(bundle.contains("generated tokens only") && bundle.contains("schema_version"), "{bundle}");
}

#[test]
fn a_manifest_that_says_other_than_its_files_is_refused_and_what_it_says_is_named() {
    let installation = furnished();
    let server = installation.serve();
    work(&server, 2);
    server.stop().expect(0);
    installation.pilot(&["backup", "--out", "b1", "--with-key"]).expect(0);
    backup(&installation, "b2").expect(0);
    let other = team();
    other.serve().stop().expect(0);
    for name in ["b1", "b2"] {
        let path = format!("{name}/manifest.json");
        let sound: Value = serde_json::from_str(&installation.read(&path)).unwrap();
        for (member, value, word) in [
            ("entries", json!(7), "entries is 7, but the database has 3"),
            ("root", json!("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), "root is not the root of the database"),
            ("root", Value::Null, "root is not the root"),
            ("signed_entries", json!(2), "signed_entries is not the 3 of log.checkpoint"),
            ("signed_entries", Value::Null, "signed_entries is not the 3"),
            ("verifier_key", json!(verifier_key(&other).to_string()), "verifier_key does not match the signature"),
            ("verifier_key", json!("nonsense"), "verifier_key is not valid"),
        ] {
            let mut changed = sound.clone();
            changed[member] = value;
            installation.write(&path, &changed.to_string());
            let refused = restore(&installation, &[name, "--replace"]).expect(1);
            refused.says(&["manifest.json does not match its files", word]);
        }
        installation.write(&path, &sound.to_string());
        let restored = restore(&installation, &[name, "--replace", "--output", "json"]).expect(0).json();
        assert_eq!((&restored["is_whole"], &restored["new_verifier_key"]), (&json!(true), &Value::Null), "{restored}");
        // The restore is an entry itself; the next round begins where this one did.
        assert_eq!(restored["restored_entries"], 3, "{restored}");
        fs::copy(installation.path("b1/log.checkpoint"), installation.path("data/log.checkpoint")).unwrap();
    }
}

#[test]
fn a_backup_made_by_a_newer_program_is_refused_and_not_called_damaged() {
    let installation = furnished();
    installation.serve().stop().expect(0);
    backup(&installation, "b1").expect(0);
    let mut manifest: Value = serde_json::from_str(&installation.read("b1/manifest.json")).unwrap();
    manifest["schema_version"] = json!(2);
    manifest["entries"] = json!("in a form nobody here knows");
    installation.write("b1/manifest.json", &manifest.to_string());
    let refused = restore(&installation, &["b1", "--replace"]).expect(1);
    refused.says(&["newer version of pilot", "schema_version 2"]);
    assert!(!refused.stderr.contains("damaged"), "{refused:?}");
}
