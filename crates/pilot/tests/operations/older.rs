//! A ledger and a bundle that an older version wrote are read, served, exported and verified by this one.
//!
//! `fixtures/ledger-of-schema-2` is an installation as version 0.1.0 left it before the register of credentials was kept
//! in facts of its own: a credential was removed (`gone`), another one revoked (`old`), one item was carried out.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::harness::{Installation, bearer};

const IDENTITY: &str = "[identity]\nmechanism = \"credential_file\"\n";
/// The fixture was written once, and is opened whenever this runs.
const CLOCK: &str = "[clock]\noutage_days = 60000\n";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ledger-of-schema-2").join(name)
}

fn token(actor: &str) -> String {
    format!("fixture-{actor}-fixture-{actor}-fixture-{actor}-1")
}

fn installation() -> Installation {
    let installation = Installation::bare();
    for name in ["credentials.json", "role_map.json"] {
        installation.write(name, &fs::read_to_string(fixture(name)).unwrap());
    }
    let files = "[credentials]\nfile = \"credentials.json\"\nrole_map = \"role_map.json\"\n";
    installation.write("pilot.toml", &format!("listen = \"127.0.0.1:0\"\n{files}{IDENTITY}{CLOCK}"));
    fs::create_dir_all(installation.path("data")).unwrap();
    for name in ["pilot.db", "log.key", "log.checkpoint", "log.checkpoint.revocations"] {
        let to = installation.path(&format!("data/{name}"));
        fs::copy(fixture(name), &to).unwrap();
        crate::support::harness::set_mode(&to, 0o600);
    }
    installation
}

fn schema(installation: &Installation) -> i64 {
    let database = rusqlite::Connection::open(installation.path("data/pilot.db")).unwrap();
    database.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

fn facts(installation: &Installation) -> Vec<String> {
    let database = rusqlite::Connection::open(installation.path("data/pilot.db")).unwrap();
    let mut statement = database.prepare("SELECT name FROM fact ORDER BY name").unwrap();
    let names = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let kind = |name: String| name.rsplit_once('/').map_or(name.clone(), |(kind, _)| kind.to_owned());
    let mut kinds: Vec<_> = names.map(|name| kind(name.unwrap())).collect();
    kinds.dedup();
    kinds
}

#[test]
fn an_older_ledger_is_opened_served_exported_and_verified() {
    let installation = installation();
    let key = fs::read_to_string(fixture("key.txt")).unwrap();
    // It can be checked before a service opens it, and stays as it is.
    installation.pilot(&["log", "fsck", "--config", "pilot.toml"]).expect(0);
    assert_eq!(schema(&installation), 2);
    for start in 1..=2 {
        let server = installation.serve();
        assert_eq!(server.session(&token("ana")).status, 200);
        for refused in ["old", "gone"] {
            assert_eq!(server.session(&token(refused)).status, 401, "`{refused}` at start {start}");
        }
        let items = server.get("/v1/items", &[&bearer(&token("ada"))]).json();
        let shown = |item: &Value| format!("{} {}", item["title"].as_str().unwrap(), item["state"].as_str().unwrap());
        let shown: Vec<_> = items["items"].as_array().unwrap().iter().map(shown).collect();
        assert_eq!(shown, ["A draft that waits draft", "Rotate the signing key succeeded"]);
        let bundle = format!("everything-{start}.zip");
        let (url, period) = (server.url(), ["--from", "2026-01-01T00:00:00Z", "--to", "2190-01-01T00:00:00Z"]);
        let export = [&["evidence", "export", "--out", &bundle, "--url", &url], &period[..]].concat();
        installation.pilot_as(&token("ada"), &export).expect(0);
        installation.pilot(&["evidence", "verify", &bundle, "--key", key.trim()]).expect(0);
        server.stop().expect(0);
        installation.pilot(&["log", "fsck", "--config", "pilot.toml"]).expect(0);
    }
    assert_eq!(schema(&installation), 7);
    // Each credential in a fact of its own: nothing is left of the two that held all of them.
    let kinds = ["credential/ended", "credential/known", "credential/refused", "credential/used", "head", "start"];
    assert_eq!(facts(&installation), kinds);
}

#[test]
fn a_credential_is_told_of_once_across_versions() {
    let installation = installation();
    let server = installation.serve();
    for actor in ["ana", "gone", "old"] {
        server.session(&token(actor));
    }
    // What there was to write is in the ledger once it has stopped.
    server.stop().expect(0);
    let server = installation.serve();
    let events = server.get("/v1/events?limit=200", &[&bearer(&token("ada"))]).json();
    let told = |kind: &str, actor: &str| {
        let is_told = |event: &&Value| event["type"] == kind && event["details"]["credential"]["actor_id"] == actor;
        events["events"].as_array().unwrap().iter().filter(is_told).count()
    };
    assert_eq!(told("credential.first_used", "ana"), 1);
    assert_eq!(told("credential.refused", "gone"), 1);
    assert_eq!((told("credential.refused", "old"), told("credential.revoked", "old")), (1, 1));
    server.stop().expect(0);
}

#[test]
fn an_older_bundle_verifies() {
    let installation = Installation::bare();
    fs::copy(fixture("bundle.zip"), installation.path("bundle.zip")).unwrap();
    let key = fs::read_to_string(fixture("key.txt")).unwrap();
    installation.pilot(&["evidence", "verify", "bundle.zip", "--key", key.trim()]).expect(0);
}
