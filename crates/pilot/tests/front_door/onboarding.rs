//! The onboarding check: an installation is laid out, five actors get their tokens, and each one is who the role map says.

use std::path::Path;

use serde_json::json;

use crate::support::harness::{Installation, Server, mode, role_map};

pub const FIVE: [(&str, &str); 5] = [
    ("ana", "initiator"),
    ("ben", "approver"),
    ("sol", "security_admin"),
    ("eli", "executor"),
    ("ada/machine@site-1", "auditor"),
];

/// `pilot init`, a filled role map, and a token in `<role>.token` for each of the five.
pub fn onboarded() -> Installation {
    let installation = Installation::bare();
    installation.pilot(&["init", "."]).expect(0);
    installation.write("role-map.json", &role_map(&FIVE));
    for (actor, role) in FIVE {
        let token_file = format!("{role}.token");
        let new = ["credential", "new", "--actor", actor, "--role", role, "--token-out", &token_file];
        let made = installation.pilot(&new).expect(0);
        made.never_says(&token_of(&installation, role));
    }
    installation
}

pub fn token_of(installation: &Installation, role: &str) -> String {
    installation.read(&format!("{role}.token")).trim_end().to_owned()
}

/// What `pilot init` wrote, on free ports.
pub fn serve(installation: &Installation) -> Server {
    installation.serve_with(&[], &[("PILOT_LISTEN", "127.0.0.1:0"), ("PILOT_OPS__LISTEN", "127.0.0.1:0")])
}

#[test]
fn each_of_five_roles_gets_a_token_and_is_who_the_role_map_says() {
    let installation = onboarded();
    let server = serve(&installation);
    for (actor, role) in FIVE {
        let answer = server.session(&token_of(&installation, role));
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.json(), json!({"actor_id": actor, "role": role}));
        let token_file = format!("{role}.token");
        let url = server.url();
        let session = ["session", "--url", &url, "--token-file", &token_file, "--role-map", "role-map.json"];
        let checked = installation.pilot(&session).expect(0);
        assert!(checked.stdout.contains(actor) && checked.stdout.contains("matches"), "{checked:?}");
    }
    let stopped = server.stop().expect(0);
    assert_eq!(stopped.stdout.lines().count(), 1, "{stopped:?}");
}

#[test]
fn the_onboarding_check_fails_when_the_role_map_differs() {
    let installation = onboarded();
    let server = serve(&installation);
    let token = token_of(&installation, "approver");
    installation.write("other-role.json", &role_map(&[("ben", "auditor")]));
    installation.write("other-actor.json", &role_map(&[("Ben", "approver"), ("ana", "initiator")]));
    installation.write("nobody.json", &role_map(&[]));
    for (map, why) in [
        ("other-role.json", "approves another role for this actor"),
        ("other-actor.json", "does not list this actor"),
        ("nobody.json", "does not list this actor"),
    ] {
        let session = ["session", "--url", &server.url(), "--role-map", map];
        installation.pilot_as(&token, &session).expect(1).says(&[why]);
        let json = installation.pilot_as(&token, &[&session[..], &["--output", "json"]].concat()).expect(1).json();
        assert_eq!(json, json!({"actor_id": "ben", "role": "approver", "role_map": why}));
    }
    let dead = installation.pilot_as(&format!("{token}x"), &["session", "--url", &server.url()]).expect(1);
    dead.says(&["401", "credential_required"]);
    dead.never_says(&token);
}

#[test]
fn an_installation_is_private_and_is_never_laid_out_twice() {
    let installation = Installation::bare();
    installation.pilot(&["init", "site"]).expect(0);
    let at = |name: &str| installation.path("site").join(name);
    for (name, expected) in
        [("", 0o700), ("data", 0o700), ("pilot.toml", 0o600), ("role-map.json", 0o600), ("data/log.key", 0o600)]
    {
        assert_eq!(mode(&at(name)), expected, "{name}");
    }
    let before: Vec<_> = installation.files().iter().map(|path| contents(path)).collect();
    let again = installation.pilot(&["init", "site"]).expect(2);
    again.says(&["site/pilot.toml", "already", "nothing was changed"]);
    assert_eq!(installation.files().iter().map(|path| contents(path)).collect::<Vec<_>>(), before);
}

#[test]
fn credentials_and_tokens_are_files_of_their_owner_alone() {
    let installation = onboarded();
    assert_eq!(mode(&installation.path("credentials.json")), 0o600);
    for (_, role) in FIVE {
        assert_eq!(mode(&installation.path(&format!("{role}.token"))), 0o600);
        assert!(!installation.read("credentials.json").contains(&token_of(&installation, role)));
    }
}

#[test]
fn a_credential_outside_of_the_role_map_is_not_made() {
    let installation = onboarded();
    let before = installation.read("credentials.json");
    for (actor, role, why) in [
        ("ana", "approver", "approves the role initiator"),
        ("eve", "auditor", "does not list eve"),
        ("ANA", "initiator", "does not list ANA"),
    ] {
        let new = ["credential", "new", "--actor", actor, "--role", role, "--token-out", "never.token"];
        installation.pilot(&new).expect(1).says(&[why]);
    }
    assert_eq!(installation.read("credentials.json"), before);
    assert!(!installation.path("never.token").exists());
}

#[test]
fn a_token_file_that_exists_is_not_overwritten_and_no_credential_is_made_for_it() {
    let installation = onboarded();
    let (before, token) = (installation.read("credentials.json"), token_of(&installation, "initiator"));
    for (out, code) in [("initiator.token", 2), ("no/such/directory.token", 3)] {
        let new = ["credential", "new", "--actor", "ana", "--role", "initiator", "--token-out", out];
        installation.pilot(&new).expect(code).says(&[out]);
        assert_eq!(installation.read("credentials.json"), before, "{out}");
    }
    assert_eq!(token_of(&installation, "initiator"), token);
}

fn contents(path: &Path) -> (String, Vec<u8>) {
    (path.display().to_string(), std::fs::read(path).unwrap())
}
