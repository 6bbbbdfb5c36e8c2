//! What was revoked stays so, whatever is restored.

use serde_json::{Value, json};

use crate::operations::leaps::{events, installation};
use crate::operations::second_place::work;
use crate::support::harness::{Installation, Server, digest, expiring_credential_file};
use crate::support::team::{JSON, TEAM, person, token};

const FILE: &str = "data/log.checkpoint.revocations";

fn revoke(server: &Server, id: &str) {
    let answer = person(server, "sol").call(&format!("POST /v1/credentials/{id}/revocation"), &[JSON], b"{}");
    assert_eq!(answer.status, 201, "{}", answer.text());
}

/// Who is let in, of everyone.
fn let_in(server: &Server) -> Vec<&'static str> {
    TEAM.iter().map(|(name, _)| *name).filter(|name| server.session(&token(name)).status == 200).collect()
}

fn everyone_but(gone: &str) -> Vec<&'static str> {
    TEAM.iter().map(|(name, _)| *name).filter(|name| *name != gone).collect()
}

/// A backup, and after it a revocation.
fn revoked_since_the_backup() -> Installation {
    let installation = installation();
    let server = installation.serve();
    work(&server, 1);
    installation.pilot(&["backup", "--out", "old", "--with-key"]).expect(0);
    revoke(&server, "eli-1");
    work(&server, 2);
    server.stop().expect(0);
    installation
}

fn carried_over(server: &Server) -> Vec<Value> {
    let is_it = |event: &Value| event["type"] == "credential.revoked" && event.to_string().contains("carried_over");
    events(server).into_iter().filter(is_it).collect()
}

#[test]
fn a_credential_revoked_since_the_backup_stays_revoked_after_a_loss_was_accepted() {
    let installation = revoked_since_the_backup();
    let restored = installation.pilot(&["restore", "old", "--replace", "--accept-loss", "the disk died"]).expect(0);
    assert!(restored.stdout.contains("1 revoked credentials are known, and stay revoked"), "{restored:#?}");
    assert!(!restored.stdout.contains("ARE NOT ACCEPTED"), "everything revoked is known: {restored:#?}");
    for start in 1..=2 {
        let server = installation.serve();
        assert_eq!(let_in(&server), everyone_but("eli"), "start {start}");
        server.wait_for_log("service started");
        let begun = crate::support::harness::now();
        while carried_over(&server).is_empty() {
            assert!(begun.elapsed() < crate::support::harness::PATIENCE, "never written down");
        }
        assert_eq!(carried_over(&server).len(), 1, "once, in start {start}");
        server.stop().expect(0);
    }
    installation.pilot(&["log", "fsck", "--config", "pilot.toml"]).expect(0);
}

#[test]
fn without_the_file_the_database_put_aside_tells_and_everything_else_is_doubted_until_an_operator_says_so() {
    let installation = revoked_since_the_backup();
    std::fs::remove_file(installation.path(FILE)).unwrap();
    let restored = installation.pilot(&["restore", "old", "--replace", "--accept-loss", "the disk died"]).expect(0);
    for word in
        ["1 revoked credentials are known", "CREDENTIALS ISSUED BEFORE NOW ARE NOT ACCEPTED", "pilot credential trust"]
    {
        assert!(restored.stdout.contains(word), "{word}: {restored:#?}");
    }
    let server = installation.serve();
    server.wait_for_log("are not accepted");
    assert_eq!(let_in(&server), Vec::<&str>::new());
    server.stop().expect(0);
    installation.pilot(&["credential", "trust", "--id", "ana-1", "--why", "asked her"]).expect(0);
    let server = installation.serve();
    assert_eq!(let_in(&server), ["ana"]);
    let busy = installation.pilot(&["credential", "trust", "--all", "--why", "x"]);
    assert_ne!(busy.code, 0, "the service runs: {busy:#?}");
    server.stop().expect(0);
    installation.pilot(&["credential", "trust", "--all", "--why", "all were asked"]).expect(0);
    let server = installation.serve();
    assert_eq!(let_in(&server), everyone_but("eli"), "what is known to be revoked is not brought back by anyone");
    let trusted: Vec<_> = events(&server).into_iter().filter(|event| event["type"] == "credentials.trusted").collect();
    assert_eq!(trusted.len(), 2, "{trusted:?}");
    server.stop().expect(0);
    let again = installation.pilot(&["credential", "trust", "--all", "--why", "again"]).expect(0);
    assert!(again.stdout.contains("nothing to do"), "{again:#?}");
}

#[test]
fn on_another_machine_older_credentials_are_doubted_and_those_issued_since_count() {
    let old = revoked_since_the_backup();
    let other = installation();
    let from = old.path("old").display().to_string();
    let restored = other.pilot(&["restore", &from, "--accept-loss", "the machine burnt"]).expect(0);
    assert!(restored.stdout.contains("ARE NOT ACCEPTED"), "{restored:#?}");
    // One of them is rotated: a new token, issued now.
    let tokens: Vec<_> = TEAM.iter().map(|(name, _)| token(name)).collect();
    let entries: Vec<_> = TEAM.iter().zip(&tokens).map(|((name, role), token)| (*name, *role, &**token)).collect();
    let now = pilot_ledger::clock::Clock::System.now();
    let end = now.plus(std::time::Duration::from_hours(30 * 24)).to_string();
    let mut file: Value = serde_json::from_str(&expiring_credential_file(&entries, &end)).unwrap();
    let new = "a-new-token-of-ada-that-was-made-after-the-restore";
    file["credentials"].as_array_mut().unwrap().push(json!({
        "credential_id": "ada-2", "actor_id": "ada", "roles": ["auditor"], "token_sha3_256": digest(new.as_bytes()),
        "not_before": now, "expires_at": end,
    }));
    other.write("credentials.json", &file.to_string());
    let server = other.serve();
    assert_eq!(let_in(&server), Vec::<&str>::new());
    assert_eq!(server.session(new).status, 200);
    server.stop().expect(0);

    // Or an operator takes it upon themselves at once, and that is written down.
    let third = installation();
    let arguments = ["restore", &from, "--accept-loss", "the machine burnt", "--trust-credentials"];
    let restored = third.pilot(&arguments).expect(0);
    assert!(restored.stdout.contains("any that were revoked since the backup are valid again"), "{restored:#?}");
    let server = third.serve();
    assert_eq!(let_in(&server).len(), TEAM.len());
    let told: Vec<_> = events(&server).into_iter().filter(|event| event["type"] == "ledger.restored").collect();
    assert!(told[0].to_string().contains("\"credentials\":\"trusted\""), "{told:?}");
    server.stop().expect(0);
}

#[test]
fn a_damaged_file_of_revocations_stops_a_start_and_a_restore() {
    let installation = revoked_since_the_backup();
    let sound = installation.read(FILE);
    assert!(sound.contains("eli-1"), "{sound}");
    installation.write(FILE, &sound[..sound.len() / 2]);
    installation.serve_in_vain().expect(2).says(&["lists the revoked credentials, and is damaged"]);
    let refused = installation.pilot(&["restore", "old", "--replace", "--accept-loss", "x"]).expect(1);
    refused.says(&["nothing was restored", "is damaged"]);
    // Without it the ledger still tells, and the file is made again.
    std::fs::remove_file(installation.path(FILE)).unwrap();
    let server = installation.serve();
    assert_eq!(let_in(&server), everyone_but("eli"));
    server.stop().expect(0);
    assert!(installation.read(FILE).contains("eli-1"));
}
