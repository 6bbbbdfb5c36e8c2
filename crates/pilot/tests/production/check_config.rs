//! `pilot check-config` says what a start would say, and leaves everything as it was.

use std::fs;

use serde_json::{Value, json};

use crate::support::authority::{Authority, IDENTITY, OTHER, RATE_LIMITS, ROLE_MAP, TLS, configure, installation};
use crate::support::harness::{Finished, Installation, Port, TOKEN, credential_file, digest};

const ALL: [&str; 4] = [TLS, ROLE_MAP, RATE_LIMITS, IDENTITY];

fn verdict_of(finished: &Finished, check: &str) -> Vec<String> {
    let report = finished.json();
    let checks = report["checks"].as_array().unwrap().iter().filter(|finding| finding["check"] == check);
    checks.map(|finding| format!("{}: {}", text(finding, "verdict"), text(finding, "detail"))).collect()
}

fn text(finding: &Value, member: &str) -> String {
    finding[member].as_str().unwrap().to_owned()
}

/// The check and the start both refuse, and for the same reason.
#[track_caller]
fn both_refuse(installation: &Installation, check: &str, words: &[&str]) {
    let checked = installation.pilot(&["check-config", "--output", "json"]).expect(2);
    assert_eq!(checked.json()["ok"], false);
    let found = verdict_of(&checked, check).join("\n");
    let refused = installation.serve_in_vain().expect(2);
    for word in words {
        assert!(found.starts_with("refused") && found.contains(word), "{word:?} is missing in {found}");
        assert!(refused.stderr.contains(word), "{word:?} is missing in {refused:#?}");
    }
}

#[test]
fn a_sound_configuration_is_reported_line_by_line_and_nothing_is_changed() {
    let (installation, _) = installation("production", &ALL);
    let before = installation.files();
    let checked = installation.pilot(&["check-config", "--config", "pilot.toml", "--output", "json"]).expect(0);
    assert_eq!(checked.json()["ok"], true);
    assert_eq!(verdict_of(&checked, "profile"), ["ok: production; everything it requires is configured"]);
    let found = "ok: 2 credential(s) from credentials.json; all agree with the role map";
    let nobody = "warning: no security_admin could sign in, so nobody could revoke a credential through the service";
    assert_eq!(verdict_of(&checked, "credentials"), [found, nobody]);
    let tls = verdict_of(&checked, "tls").join("\n");
    assert!(tls.contains("ok: the certificate for 127.0.0.1, localhost is valid from"), "{tls}");
    assert_eq!(installation.files(), before);
    assert!(!installation.path("data").exists());
    let table = installation.pilot(&["check-config"]).expect(0).stdout;
    assert!(table.starts_with("CHECK"), "{table}");
}

#[test]
fn a_pair_that_cannot_be_used_is_refused_with_its_file() {
    let (installation, authority) = installation("production", &ALL);
    let other = authority.issue(&["127.0.0.1"], 2);
    installation.write("tls.key", &other.key);
    both_refuse(&installation, "tls", &["tls.key: is not the key of the certificate", "tls.pem"]);
    installation.write("tls.key", &other.certificate);
    both_refuse(&installation, "tls", &["tls.key: contains no private key"]);
    installation.write("tls.key", &other.key);
    for nonsense in ["", "nonsense", &other.key, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        installation.write("tls.pem", nonsense);
        both_refuse(&installation, "tls", &["tls.pem"]);
    }
    fs::remove_file(installation.path("tls.pem")).unwrap();
    both_refuse(&installation, "tls", &["tls.pem: cannot be opened"]);
}

#[test]
fn what_other_files_have_wrong_is_refused_as_by_the_start() {
    let (installation, _) = installation("pilot", &[ROLE_MAP]);
    installation.write("credentials.json", &credential_file(&[("eve", "executor", "e".repeat(32).as_str())]));
    both_refuse(&installation, "credentials", &["is not in the role map"]);
    installation.write("credentials.json", "{}");
    both_refuse(&installation, "credentials", &["/schema_version: is missing", "/credentials: is missing"]);
    configure(&installation, "pilot", &["[workflows]\ndir = 'nowhere'\n"]);
    both_refuse_workflows(&installation);
    configure(&installation, "pilot", &["[store]\nurl = 'postgres://u@localhost/d'\nca_file = 'nowhere.pem'\n"]);
    both_refuse(&installation, "store", &["store.ca_file", "nowhere.pem: cannot be read"]);
    let node = "[node]\nname = 'first'\n";
    configure(&installation, "pilot", &["[store]\nurl = 'postgres://u@db/d?sslmode=disable'\n", node]);
    let checked = installation.pilot(&["check-config", "--offline", "--output", "json"]).expect(0);
    assert!(verdict_of(&checked, "profile").join("").contains("warning: store: sslmode=disable"), "{checked:#?}");
    assert!(verdict_of(&checked, "store").join("").contains("ok: postgres://db:5432/d, as node first"), "{checked:#?}");
}

#[test]
fn what_a_first_request_would_need_is_checked_as_well() {
    let (installation, _) = installation("production", &ALL);
    let one = |from: &str, to: &str| {
        let entry = |actor: &str, role: &str, token: &str, from: &str, to: &str| {
            json!({
                "credential_id": format!("{actor}-1"), "actor_id": actor, "roles": [role],
                "token_sha3_256": digest(token.as_bytes()), "not_before": from, "expires_at": to,
            })
        };
        let entries = [
            entry("ana", "initiator", TOKEN, from, to),
            entry("ben", "approver", OTHER, "2020-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ];
        installation.write("credentials.json", &json!({"schema_version": 2, "credentials": entries}).to_string());
        installation.pilot(&["check-config", "--output", "json"])
    };
    let checked = one("2020-01-01T00:00:00Z", "2024-01-01T00:00:00Z").expect(2);
    let found = verdict_of(&checked, "credentials").join("\n");
    assert!(
        found.contains("refused: all of them have expired or are not valid yet, so nobody could sign in"),
        "{found}"
    );
    one("2090-01-01T00:00:00Z", "2091-01-01T00:00:00Z").expect(2);
    let found = verdict_of(&one("2020-01-01T00:00:00Z", "2091-01-01T00:00:00Z").expect(0), "credentials").join("\n");
    assert!(found.contains("warning: 1 of 2 have expired or are not valid yet"), "{found}");
}

#[test]
fn listeners_that_would_collide_and_a_trust_domain_that_is_none_are_refused() {
    let (installation, _) = installation("pilot", &[]);
    for (listen, ops, collide) in [
        ("127.0.0.1:7450", "127.0.0.1:7450", true),
        ("0.0.0.0:7450", "127.0.0.1:7450", true),
        ("127.0.0.1:7450", "127.0.0.1:7451", false),
        ("127.0.0.1:0", "127.0.0.1:0", false),
    ] {
        installation.write("pilot.toml", &format!("listen = '{listen}'\n[ops]\nlisten = '{ops}'\n"));
        let checked = installation.pilot(&["check-config"]);
        if collide {
            checked.expect(2).says(&["ops.listen", "give it another port"]);
            installation.serve_in_vain().expect(2).says(&["ops.listen", "give it another port"]);
        } else {
            checked.expect(0);
        }
    }
    for domain in ["", "https://no sense/", "spiffe://example.org", "Example.org", "example.org/path"] {
        let section =
            format!("[identity]\nmechanism = 'mutual_tls'\n[identity.mutual_tls]\ntrust_domain = '{domain}'\n");
        configure(&installation, "pilot", &[&section]);
        installation.pilot(&["check-config"]).expect(2).says(&["is not a SPIFFE trust domain"]);
    }
}

#[test]
fn others_that_cannot_be_reached_are_named_unless_the_check_is_offline() {
    let (installation, _) = installation("pilot", &[ROLE_MAP]);
    let closed = Port::reserve();
    let address = closed.address();
    let oauth = format!(
        "[identity]\nmechanism = 'oauth'\n[identity.oauth]\nissuer = 'http://{address}'\naudience = 'https://pilot.example'\n"
    );
    let log = format!("[log.timestamps]\nurl = 'http://{address}/tsr'\n");
    configure(&installation, "pilot", &[ROLE_MAP, &oauth, &log]);
    let checked = installation.pilot(&["check-config", "--output", "json"]).expect(0);
    let provider = verdict_of(&checked, "provider").join("\n");
    assert!(
        provider.starts_with("warning: nobody could sign in now: the identity provider cannot be reached"),
        "{provider}"
    );
    let timestamps = verdict_of(&checked, "timestamps").join("\n");
    assert!(timestamps.contains("cannot be reached now"), "{timestamps}");
    assert!(!installation.path("data").exists(), "nothing is kept of what was asked");
    let store = format!("[store]\nurl = 'postgres://u@{address}/d?sslmode=disable'\n");
    configure(&installation, "pilot", &[&store]);
    let checked = installation.pilot(&["check-config", "--output", "json"]).expect(3);
    let database = verdict_of(&checked, "database").join("\n");
    assert!(database.starts_with("environment: cannot be used now: "), "{database}");
    installation.pilot(&["check-config", "--offline"]).expect(0);
}

fn both_refuse_workflows(installation: &Installation) {
    installation.write("credentials.json", &credential_file(&[("ana", "initiator", TOKEN)]));
    both_refuse(installation, "workflows", &["workflows.dir is not a directory"]);
}

#[test]
fn a_missing_log_key_beside_a_store_is_refused() {
    let (installation, _) = installation("pilot", &[]);
    installation.serve().stop().expect(0);
    installation.pilot(&["check-config"]).expect(0);
    fs::remove_file(installation.path("data/log.key")).unwrap();
    both_refuse(&installation, "log key", &["log.key", "is missing"]);
}

#[test]
fn a_certificate_clients_will_refuse_is_a_warning_and_no_refusal() {
    let (installation, _) = installation("production", &ALL);
    let authority = Authority::new("Another");
    crate::support::authority::install(&installation, &authority.issue_until(&["127.0.0.1"], 2024));
    let checked = installation.pilot(&["check-config", "--output", "json"]).expect(0);
    let tls = verdict_of(&checked, "tls").join("\n");
    assert!(tls.starts_with("warning: the certificate for 127.0.0.1 has expired"), "{tls}");
    crate::support::authority::install(&installation, &authority.itself());
    let checked = installation.pilot(&["check-config", "--output", "json"]).expect(0);
    let tls = verdict_of(&checked, "tls").join("\n");
    assert!(tls.starts_with("warning: the certificate for no name is a CA certificate"), "{tls}");
}
