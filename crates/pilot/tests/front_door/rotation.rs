//! The rotation procedure, step by step, with a real restart wherever the procedure has one.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::harness::{Finished, Installation, Server, TOKEN, credential_file, mode};

const NEW: &str = "new.token";

fn begin(installation: &Installation) -> Finished {
    installation.pilot(&["rotation", "begin", "--config", "pilot.toml", "--actor", "ana", "--token-out", NEW])
}

fn verify(installation: &Installation, server: &Server, token: &str) -> Finished {
    let url = server.url();
    let verify = ["rotation", "verify", "--config", "pilot.toml", "--actor", "ana", "--operator", "oskar"];
    installation.pilot_as(token, &[&verify[..], &["--url", &url]].concat())
}

fn finish(installation: &Installation) -> Finished {
    installation.pilot(&["rotation", "finish", "--config", "pilot.toml", "--actor", "ana"])
}

fn abandon(installation: &Installation) -> Finished {
    installation.pilot(&["rotation", "abandon", "--config", "pilot.toml", "--actor", "ana"])
}

fn new_token(installation: &Installation) -> String {
    installation.read(NEW).trim_end().to_owned()
}

fn restart(server: Server, installation: &Installation) -> Server {
    server.stop().expect(0);
    installation.serve()
}

fn two_actors() -> Installation {
    Installation::with(&[
        ("ana", "initiator", TOKEN),
        ("ben", "approver", "a-hand-made-token-of-ben-with-more-than-32-bytes"),
    ])
}

#[test]
fn the_whole_procedure_replaces_a_token_and_records_every_step() {
    let installation = two_actors();
    let server = installation.serve();
    begin(&installation).expect(0);
    let new = new_token(&installation);
    assert_eq!(server.session(&new).status, 401, "before the restart");
    verify(&installation, &server, &new).expect(1).says(&["not accepted (401)", "restart the service"]);
    finish(&installation).expect(1).says(&["not been verified"]);

    let server = restart(server, &installation);
    for token in [TOKEN, &new] {
        assert_eq!(server.session(token).json(), serde_json::json!({"actor_id": "ana", "role": "initiator"}));
    }
    finish(&installation).expect(1).says(&["not been verified"]);
    verify(&installation, &server, TOKEN).expect(0);
    finish(&installation).expect(1).says(&["not been verified"]);
    verify(&installation, &server, &new).expect(0);
    finish(&installation).expect(0);
    finish(&installation).expect(1).says(&["already ended"]);
    assert_eq!(server.session(TOKEN).status, 200, "before the second restart");
    verify(&installation, &server, TOKEN).expect(1).says(&["still accepted"]);

    let server = restart(server, &installation);
    assert_eq!(server.session(TOKEN).verdict(), "401 credential_required");
    assert_eq!(server.session(&new).status, 200);
    verify(&installation, &server, TOKEN).expect(0);

    let report = installation.pilot(&["rotation", "report", "--config", "pilot.toml", "--output", "json"]).expect(0);
    let steps = report.json()["steps"].as_array().unwrap().clone();
    let shown: Vec<_> = steps.iter().map(step).collect();
    assert_eq!(
        shown,
        [
            "begin by olga: done",
            "verify_new by oskar: not_accepted",
            "verify_old_still_works by oskar: matches",
            "verify_new by oskar: matches",
            "finish by olga: done",
            "verify_old by oskar: still_accepted",
            "verify_old by oskar: refused",
        ]
    );
    let times: Vec<_> = steps.iter().map(|step| step["at"].as_str().unwrap().to_owned()).collect();
    assert!(times.is_sorted() && times.iter().all(|time| time.len() == 27 && time.ends_with('Z')), "{times:?}");
    let table = installation.pilot(&["rotation", "report", "--config", "pilot.toml", "--actor", "ana"]).expect(0);
    assert_eq!(table.stdout.lines().count(), 1 + steps.len());
    for shown in ["TIME", "OPERATOR", "ana", "olga", "oskar", "refused (401), as it must be", &times[0]] {
        assert!(table.stdout.contains(shown), "{shown}: {}", table.stdout);
    }
    let of_ben = installation.pilot(&["rotation", "report", "--config", "pilot.toml", "--actor", "ben"]).expect(0);
    assert_eq!(of_ben.stdout, "no rotation is recorded\n");
    let record = installation.read("data/rotation-record.jsonl");
    for secret in [
        TOKEN,
        &new,
        &crate::support::harness::digest(TOKEN.as_bytes()),
        &crate::support::harness::digest(new.as_bytes()),
    ] {
        assert!(!record.contains(secret) && !report.stdout.contains(secret));
    }
    assert_eq!(mode(&installation.path("data/rotation-record.jsonl")), 0o600);
}

fn step(step: &Value) -> String {
    assert_eq!((step["actor_id"].as_str(), step["role"].as_str()), (Some("ana"), Some("initiator")));
    let text = |name: &str| step[name].as_str().unwrap().to_owned();
    format!("{} by {}: {}", text("step"), text("operator"), text("result"))
}

#[test]
fn a_rotation_begins_once_and_only_for_an_actor_who_has_a_credential() {
    let installation = two_actors();
    begin(&installation).expect(0);
    let after = installation.read("credentials.json");
    fs::rename(installation.path(NEW), installation.path("kept.token")).unwrap();
    begin(&installation).expect(1).says(&["is in progress"]);
    installation.pilot(&["rotation", "begin", "--config", "pilot.toml", "--actor", "eve"]).expect(1).says(&["eve"]);
    assert_eq!(installation.read("credentials.json"), after);
    assert!(!installation.path(NEW).exists());
    installation.pilot(&["rotation", "finish", "--config", "pilot.toml", "--actor", "ben"]).expect(1);
}

#[test]
fn a_rotation_whose_token_cannot_be_handed_over_does_not_begin() {
    let installation = two_actors();
    let before = installation.read("credentials.json");
    installation.write(NEW, "something of somebody");
    begin(&installation).expect(2).says(&[NEW, "already exists"]);
    assert_eq!(installation.read("credentials.json"), before);
    assert_eq!(installation.read(NEW), "something of somebody");
    fs::remove_file(installation.path(NEW)).unwrap();
    begin(&installation).expect(0);
}

#[test]
fn a_rotation_whose_new_credential_was_removed_can_be_given_up_but_not_finished() {
    let installation = two_actors();
    let server = installation.serve();
    let before = installation.read("credentials.json");
    begin(&installation).expect(0);
    let server = restart(server, &installation);
    verify(&installation, &server, &new_token(&installation)).expect(0);
    installation.write("credentials.json", &before);
    finish(&installation).expect(1).says(&["no longer in"]);
    assert_eq!(installation.read("credentials.json"), before);
    fs::remove_file(installation.path(NEW)).unwrap();
    begin(&installation).expect(1).says(&["abandon"]);
    abandon(&installation).expect(0);
    abandon(&installation).expect(1).says(&["already ended"]);
    begin(&installation).expect(0);
}

#[test]
fn a_rotation_given_up_leaves_the_old_token_alone() {
    let installation = two_actors();
    begin(&installation).expect(0);
    let new = new_token(&installation);
    abandon(&installation).expect(0);
    finish(&installation).expect(1);
    let server = installation.serve();
    assert_eq!((server.session(TOKEN).status, server.session(&new).status), (200, 401));
}

#[test]
fn a_third_token_is_no_step_of_a_rotation() {
    let installation = two_actors();
    begin(&installation).expect(0);
    let server = installation.serve();
    let third = "a-hand-made-token-of-ben-with-more-than-32-bytes";
    verify(&installation, &server, third).expect(1).says(&["neither the new nor an old token"]);
}

#[test]
fn the_credential_file_is_replaced_in_one_step_and_stays_private() {
    let installation = two_actors();
    let file = installation.path("credentials.json");
    let done = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut read = 0_u32;
            while !done.load(std::sync::atomic::Ordering::Relaxed) || read == 0 {
                let text = fs::read_to_string(&file).expect("the file is always there");
                let value: Value = serde_json::from_str(&text).expect("and always whole");
                assert!(value["credentials"].as_array().unwrap().len() >= 2);
                assert_eq!(mode(&file), 0o600);
                read += 1;
            }
        });
        for round in 0..10 {
            let out = format!("{round}.token");
            let new = ["credential", "new", "--config", "pilot.toml", "--actor", "ana", "--role", "initiator"];
            installation.pilot(&[&new[..], &["--token-out", &out]].concat()).expect(0);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        reader.join().unwrap();
    });
    let left: Vec<_> =
        installation.files().into_iter().filter(|path| path.display().to_string().contains(".new")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn operators_who_work_at_once_lose_no_credential() {
    let installation = two_actors();
    thread::scope(|scope| {
        for operator in 0..8 {
            let installation = &installation;
            scope.spawn(move || {
                let out = format!("{operator}.token");
                let new = ["credential", "new", "--config", "pilot.toml", "--actor", "ana", "--role", "initiator"];
                installation.pilot(&[&new[..], &["--token-out", &out]].concat()).expect(0);
            });
        }
    });
    let server = installation.serve();
    for operator in 0..8 {
        assert_eq!(server.session(installation.read(&format!("{operator}.token")).trim_end()).status, 200);
    }
}

#[test]
fn a_credential_file_behind_a_link_is_edited_where_it_really_is() {
    let installation = two_actors();
    fs::create_dir(installation.path("secrets")).unwrap();
    fs::rename(installation.path("credentials.json"), installation.path("secrets/real.json")).unwrap();
    symlink("secrets/real.json", installation.path("credentials.json")).unwrap();
    begin(&installation).expect(0);
    assert!(fs::symlink_metadata(installation.path("credentials.json")).unwrap().is_symlink());
    assert!(
        installation
            .read("secrets/real.json")
            .contains(&crate::support::harness::digest(new_token(&installation).as_bytes()))
    );
    let server = installation.serve();
    assert_eq!(server.session(&new_token(&installation)).status, 200);
}

#[test]
fn a_change_to_the_file_takes_effect_at_the_next_start_and_at_no_signal() {
    let installation = Installation::with_ana();
    let other = "another-hand-made-token-of-40-bytes-xxxx";
    let server = installation.serve();
    assert_eq!(server.session(TOKEN).status, 200);
    installation.write("credentials.json", &credential_file(&[("ben", "approver", other)]));
    server.signal(Signal::HUP);
    server.wait_for_log("SIGHUP is ignored");
    assert_eq!((server.session(TOKEN).status, server.session(other).status), (200, 401));
    // Not even a file that would stop the start, or none at all, disturbs a service that runs.
    installation.write("credentials.json", "not a credential file");
    server.signal(Signal::HUP);
    assert_eq!((server.session(TOKEN).status, server.session(other).status), (200, 401));
    fs::remove_file(installation.path("credentials.json")).unwrap();
    assert_eq!((server.session(TOKEN).status, server.session(other).status), (200, 401));
    installation.write("credentials.json", &credential_file(&[("ben", "approver", other)]));
    let server = restart(server, &installation);
    assert_eq!((server.session(TOKEN).status, server.session(other).status), (401, 200));
}

#[test]
fn a_damaged_record_or_credential_file_stops_every_step_and_is_left_as_it_is() {
    let installation = two_actors();
    begin(&installation).expect(0);
    let record = installation.read("data/rotation-record.jsonl");
    let credentials = installation.read("credentials.json");
    fs::remove_file(installation.path(NEW)).unwrap();
    for damaged in [&record[..record.len() - 9], "{}\n", &format!("{record}half a li"), "\n"] {
        installation.write("data/rotation-record.jsonl", damaged);
        for finished in [begin(&installation), finish(&installation)] {
            finished.expect(2).says(&["rotation-record.jsonl, line", "is damaged"]);
        }
        assert_eq!(installation.read("data/rotation-record.jsonl"), damaged);
        assert_eq!(installation.read("credentials.json"), credentials);
    }
    fs::remove_file(installation.path("data/rotation-record.jsonl")).unwrap();
    for damaged in ["", "{}", &credentials[1..]] {
        installation.write("credentials.json", damaged);
        begin(&installation).expect(2).says(&["credentials.json"]);
        let new = ["credential", "new", "--config", "pilot.toml", "--actor", "ana", "--role", "initiator"];
        installation.pilot(&[&new[..], &["--token-out", NEW]].concat()).expect(2).says(&["credentials.json"]);
        assert_eq!(installation.read("credentials.json"), damaged);
        assert!(!installation.path(NEW).exists());
    }
}
