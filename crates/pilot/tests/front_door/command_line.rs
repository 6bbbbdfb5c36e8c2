//! The program at the terminal: arguments, exit codes, output for people and for programs.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::harness::{Installation, Port, TOKEN, bearer, digest, mode, now, set_mode};

const OTHER: &str = "another-hand-made-token-of-40-bytes-xxxx";

#[test]
fn every_command_explains_itself() {
    let installation = Installation::bare();
    let main = installation.pilot(&["--help"]).expect(0);
    assert!(main.stdout.contains("Exit codes: 0 done, 1 refused"), "{main:?}");
    for command in [
        &["serve"][..],
        &["demo"],
        &["init"],
        &["session"],
        &["credential"],
        &["credential", "new"],
        &["credential", "remove"],
        &["credential", "list"],
        &["credential", "check"],
        &["rotation"],
        &["rotation", "begin"],
        &["rotation", "verify"],
        &["rotation", "finish"],
        &["rotation", "abandon"],
        &["rotation", "report"],
        &["log"],
        &["log", "key"],
    ] {
        let help = installation.pilot(&[command, &["--help"]].concat()).expect(0);
        assert!(help.stdout.contains("Usage: pilot"), "{help:?}");
        assert_eq!(help.stderr, "");
    }
    assert!(installation.pilot(&["--version"]).expect(0).stdout.starts_with("pilot "));
}

#[test]
fn wrong_usage_ends_with_2() {
    let installation = Installation::with_ana();
    for arguments in [
        &[][..],
        &["nonsense"],
        &["serve", "--nonsense"],
        &["serve", "--log-level", "loud"],
        &["credential", "new"],
        &["credential", "new", "--actor", "ana", "--role", "king"],
        &["credential", "new", "--actor", "not an id", "--role", "auditor"],
        &["credential", "remove"],
        &["credential", "remove", "--fingerprint", "xyz", "--file", "credentials.json"],
        &["credential", "new", "--file", "new.json", "--actor", "ana", "--role", "auditor"],
        &["session", "--output", "yaml"],
        &["session", "--url", "https://a:1", "--ca-file", "credentials.json", "--token-file", "credentials.json"],
        &["session", "--url", "ftp://a", "--token-file", "credentials.json"],
        &["session", "--url", "not a url", "--token-file", "credentials.json"],
    ] {
        let finished = installation.pilot(arguments).expect(2);
        assert_eq!(finished.stdout, "", "{arguments:?}");
        assert!(!finished.stderr.is_empty());
    }
}

#[test]
fn a_token_is_never_an_argument_and_is_not_repeated_when_somebody_tries() {
    let installation = Installation::with_ana();
    let server = installation.serve();
    let url = server.url();
    let generated = "pilot_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg012345";
    for token in [TOKEN, generated] {
        let joined = format!("--token={token}");
        for arguments in [
            &["session", "--url", &url, "--token", token][..],
            &["session", "--url", &url, &joined],
            &["session", "--url", &url, token],
            &["session", "--url", &url, "--output", token],
            &[token],
            &["credential", "new", "--actor", "ana", "--role", token],
            &["credential", "remove", "--config", "pilot.toml", "--fingerprint", token],
            &["serve", "--log-level", token],
        ] {
            installation.pilot(arguments).expect(2).never_says(token);
        }
    }
}

#[test]
fn a_client_reads_its_token_from_the_environment_a_file_or_standard_input() {
    let installation = Installation::with(&[("ana", "initiator", TOKEN), ("ben", "approver", OTHER)]);
    let server = installation.serve();
    let session = ["session", "--url", &server.url(), "--output", "json"];
    let ana = json!({"actor_id": "ana", "role": "initiator"});
    assert_eq!(installation.pilot_as(TOKEN, &session).expect(0).json(), ana);
    for ending in ["", "\n", "\r\n"] {
        installation.write("token", &format!("{TOKEN}{ending}"));
        let from_file = [&session[..], &["--token-file", "token"]].concat();
        assert_eq!(installation.pilot(&from_file).expect(0).json(), ana);
        let from_stdin = [&session[..], &["--token-file", "-"]].concat();
        assert_eq!(installation.pilot_with_input(&format!("{TOKEN}{ending}"), &from_stdin).expect(0).json(), ana);
        // The nearer one wins.
        assert_eq!(installation.pilot_as(OTHER, &from_file).expect(0).json(), ana);
    }
    let none = installation.pilot(&session).expect(2);
    none.says(&["PILOT_TOKEN", "--token-file"]);
    installation.pilot(&[&session[..], &["--token-file", "missing"]].concat()).expect(3).says(&["missing"]);
    for wrong in ["short", &format!("{TOKEN} {TOKEN}"), &"x".repeat(257), &format!(" {TOKEN}")] {
        installation.pilot_as(wrong, &session).expect(2).never_says(wrong);
    }
    let mut by_environment = installation.command(&["session"]);
    by_environment.env("PILOT_URL", server.url()).env("PILOT_TOKEN", TOKEN);
    assert!(crate::support::harness::finish(by_environment, None).expect(0).stdout.contains("ana"));
}

#[test]
fn a_service_that_cannot_be_reached_ends_with_3_and_a_refusal_with_1() {
    let installation = Installation::with_ana();
    let port = Port::reserve();
    let free = port.address();
    let url = format!("http://{free}");
    installation.pilot_as(TOKEN, &["session", "--url", &url]).expect(3).says(&[&free.to_string(), "cannot be reached"]);
    let server = installation.serve();
    let refused = installation.pilot_as(OTHER, &["session", "--url", &server.url()]).expect(1);
    refused.says(&["401 credential_required"]);
    refused.never_says(OTHER);
    assert_eq!(refused.stdout, "");
}

#[test]
fn what_answers_but_is_no_pilot_service_ends_with_3() {
    let installation = Installation::with_ana();
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhalf",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let other = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        });
        let finished = installation.pilot_as(TOKEN, &["session", "--url", &url]).expect(3);
        finished.never_says(TOKEN);
        other.join().unwrap();
    }
}

#[test]
fn a_list_shows_fingerprints_and_never_a_digest() {
    let installation = Installation::with(&[("ana", "initiator", TOKEN), ("ben", "approver", OTHER)]);
    let table = installation.pilot(&["credential", "list", "--file", "credentials.json"]).expect(0);
    let json = installation.pilot(&["credential", "list", "--file", "credentials.json", "--output", "json"]).expect(0);
    for token in [TOKEN, OTHER] {
        let digest = digest(token.as_bytes());
        for shown in [&table, &json] {
            shown.never_says(&digest);
            shown.never_says(&digest[..16]);
        }
    }
    let listed = json.json()["credentials"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 2);
    assert_eq!((&listed[1]["actor_id"], &listed[1]["role"]), (&json!("ben"), &json!("approver")));
    for entry in &listed {
        let fingerprint = entry["fingerprint"].as_str().unwrap();
        assert!(fingerprint.len() == 16 && table.stdout.contains(fingerprint));
        assert_eq!(entry.as_object().unwrap().len(), 3);
    }
    let checked =
        installation.pilot(&["credential", "check", "--file", "credentials.json", "--output", "json"]).expect(0);
    assert_eq!(checked.json()["credentials"], 2);
}

fn fingerprints(installation: &Installation) -> Vec<String> {
    let list = installation.pilot(&["credential", "list", "--file", "credentials.json", "--output", "json"]).expect(0);
    let text = |entry: &Value| entry["fingerprint"].as_str().unwrap().to_owned();
    list.json()["credentials"].as_array().unwrap().iter().map(text).collect()
}

#[test]
fn credentials_are_removed_by_fingerprint_or_by_actor_but_never_the_last() {
    let third = "a-third-hand-made-token-of-more-than-32-bytes";
    let installation =
        Installation::with(&[("ana", "initiator", TOKEN), ("ana", "initiator", OTHER), ("ben", "approver", third)]);
    let remove = |arguments: &[&str]| {
        installation.pilot(&[&["credential", "remove", "--file", "credentials.json"], arguments].concat())
    };
    remove(&["--actor", "eve"]).expect(1).says(&["no such credential"]);
    remove(&["--fingerprint", "0000000000000000"]).expect(1);
    remove(&["--fingerprint", &fingerprints(&installation)[0]]).expect(0);
    assert_eq!(mode(&installation.path("credentials.json")), 0o600);
    let server = installation.serve();
    assert_eq!([TOKEN, OTHER, third].map(|token| server.session(token).status), [401, 200, 200]);
    server.stop().expect(0);
    remove(&["--actor", "ana"]).expect(0);
    let before = installation.read("credentials.json");
    remove(&["--actor", "ben"]).expect(1).says(&["no credential at all"]);
    remove(&["--fingerprint", &fingerprints(&installation)[0]]).expect(1).says(&["no credential at all"]);
    assert_eq!(installation.read("credentials.json"), before);
    let server = installation.serve();
    assert_eq!([TOKEN, OTHER, third].map(|token| server.session(token).status), [401, 401, 200]);
}

#[test]
fn a_new_credential_is_shown_once_and_its_digest_is_the_one_in_the_file() {
    let installation = Installation::bare();
    let new = ["credential", "new", "--file", "credentials.json", "--actor", "ana", "--role", "auditor"];
    let made = [&new[..], &["--schema-version", "1", "--output", "json"]].concat();
    let made = installation.pilot(&made).expect(0).json();
    let token = made["token"].as_str().unwrap();
    assert!(token.len() == 55 && token.starts_with("pilot_"), "{token}");
    assert_eq!(made["token_sha3_256"], json!(digest(token.as_bytes())));
    let file: Value = serde_json::from_str(&installation.read("credentials.json")).unwrap();
    let entry = json!({"actor_id": "ana", "roles": ["auditor"], "token_sha3_256": made["token_sha3_256"]});
    assert_eq!(file, json!({"schema_version": 1, "credentials": [entry]}));
    let second = installation.pilot(&new).expect(0);
    assert!(second.stdout.contains("pilot_") && !second.stdout.contains(token));
    installation
        .pilot(&["credential", "new", "--file", "credentials.json", "--actor", "ana", "--role", "executor"])
        .expect(1);
    installation
        .pilot(&["credential", "new", "--file", "credentials.json", "--actor", "ANA", "--role", "auditor"])
        .expect(1);
}

#[test]
fn the_log_key_prints_as_one_verifier_line() {
    let installation = Installation::bare();
    installation.pilot(&["init", ".", "--log-name", "pilot.example/log"]).expect(0);
    let printed = installation.pilot(&["log", "key", "--config", "pilot.toml"]).expect(0).stdout;
    let line = printed.trim_end();
    let parts: Vec<_> = line.splitn(3, '+').collect();
    assert_eq!((printed.lines().count(), parts[0]), (1, "pilot.example/log"), "{printed}");
    assert!(parts[1].len() == 8 && parts[1].bytes().all(|byte| byte.is_ascii_hexdigit()), "{printed}");
    // 33 bytes in base64: a one for Ed25519, then the key.
    assert!(parts[2].len() == 44 && parts[2].starts_with('A'), "{printed}");
    let key = installation.read("data/log.key");
    assert!(!key.contains(parts[2]), "the private half was printed");
    set_mode(&installation.path("data/log.key"), 0o644);
    installation.pilot(&["log", "key", "--config", "pilot.toml"]).expect(2).says(&["log.key", "chmod 600"]);
    std::fs::remove_file(installation.path("data/log.key")).unwrap();
    installation.pilot(&["log", "key", "--config", "pilot.toml"]).expect(2).says(&["log.key"]);
    installation.pilot(&["init", "other", "--log-name", "two words"]).expect(2);
}

#[test]
fn the_demo_serves_six_actors_and_leaves_nothing_behind() {
    let installation = Installation::bare();
    for signal in [Signal::TERM, Signal::INT] {
        let server = installation.start(installation.command(&["demo", "--listen", "127.0.0.1:0"]));
        assert_eq!(server.get("/readyz", &[]).status, 200);
        let directories: Vec<_> =
            std::fs::read_dir(installation.path("")).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!((directories.len(), mode(&directories[0])), (1, 0o700), "{directories:?}");
        let tokens = server.printed_words_with("pilot_");
        assert_eq!(tokens.len(), 6, "{tokens:?}");
        let actors: Vec<_> = tokens.iter().map(|token| server.get("/v1/session", &[&bearer(token)]).json()).collect();
        let roles: Vec<_> = actors.iter().map(|actor| actor["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["initiator", "approver", "approver", "security_admin", "executor", "auditor"]);
        assert_eq!(server.get("/console.json", &[]).json()["name"], "Demo");
        server.signal(signal);
        let ended = server.ends().expect(0);
        for token in &tokens {
            assert!(!ended.stderr.contains(token.as_str()));
        }
        assert_eq!(installation.files(), Vec::<std::path::PathBuf>::new());
        assert_eq!(std::fs::read_dir(installation.path("")).unwrap().count(), 0);
    }
}

#[test]
fn the_demo_has_items_in_every_state_and_begins_an_approvers_inbox_with_a_simple_one() {
    const STATES: &[&str] = &[
        "approved",
        "cleared",
        "closed",
        "condemned",
        "draft",
        "executing",
        "expired",
        "failed",
        "indeterminate",
        "ratified",
        "rejected",
        "returned",
        "revoked",
        "rolled_back",
        "rolling_back",
        "submitted",
        "succeeded",
        "withdrawn",
    ];
    let installation = Installation::bare();
    let server = installation.start(installation.command(&["demo", "--listen", "127.0.0.1:0"]));
    let tokens = server.printed_words_with("pilot_");
    let ask = |token: &str, path: &str| server.get(path, &[&bearer(token)]).json();
    // The last to come is the item whose window has to pass.
    let ends = now() + Duration::from_mins(1);
    let found = loop {
        let items = ask(&tokens[5], "/v1/items?limit=200")["items"].as_array().unwrap().clone();
        let states: BTreeSet<String> = items.iter().map(|item| item["state"].as_str().unwrap().to_owned()).collect();
        if STATES.iter().all(|state| states.contains(*state)) {
            break states;
        }
        assert!(now() < ends, "only {states:?}; {}", server.last_lines());
    };
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), STATES);
    for approver in &tokens[1..3] {
        let inbox = ask(approver, "/v1/items?waiting_for=me&limit=200");
        let items = inbox["items"].as_array().unwrap();
        let soonest =
            items.iter().filter(|item| !item["due_at"].is_null()).min_by_key(|item| item["due_at"].to_string());
        for first in [items.first(), soonest] {
            let first = first.unwrap();
            assert_eq!((&first["payload"]["risk"], &first["state"]), (&json!("low"), &json!("submitted")), "{first}");
        }
    }
    // One approval is enough.
    let first = ask(&tokens[1], "/v1/items?waiting_for=me&limit=1")["items"][0].clone();
    let body = json!({ "action": "approve", "content_digest": first["content_digest"] }).to_string();
    let id = first["id"].as_str().unwrap();
    let answer = server.send(format!(
        "POST /v1/items/{id}/transitions HTTP/1.1\r\nHost: a\r\n{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        bearer(&tokens[1]),
        body.len()
    ));
    assert_eq!(answer.json()["to"], "approved", "{}", answer.text());
    server.signal(Signal::TERM);
    server.ends().expect(0);
}

#[test]
fn an_argument_that_is_no_text_is_wrong_usage_and_nothing_worse() {
    use std::os::unix::ffi::OsStrExt;
    let installation = Installation::with_ana();
    for arguments in [&["session"][..], &["credential", "new", "--actor"], &["serve", "--config"], &[]] {
        let mut command = installation.command(arguments);
        command.arg(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
        let finished = crate::support::harness::finish(command, None).expect(2);
        assert!(!finished.stderr.contains("panicked"), "{finished:?}");
    }
}

#[test]
fn a_witness_key_is_printed_for_programs_too() {
    let installation = Installation::bare();
    let print = ["log", "witness", "--state", "w", "--name", "w.example", "--print-key"];
    let line = installation.pilot(&print).expect(0).stdout;
    let made = installation.pilot(&[&print[..], &["--output", "json"]].concat()).expect(0).json();
    assert_eq!(made["verifier_key"], line.trim());
}

#[test]
fn the_operations_listener_with_any_port_says_which_it_has() {
    let installation = Installation::with_ana();
    installation.write("pilot.toml", "listen = '127.0.0.1:0'\n[ops]\nlisten = '127.0.0.1:0'\n");
    let server = installation.serve();
    server.wait_for_log("operations listener");
    let ended = server.stop().expect(0);
    let line = ended.stderr.lines().find(|line| line.contains("operations listener")).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    let address: std::net::SocketAddr = line["address"].as_str().unwrap().parse().unwrap();
    assert_ne!(address.port(), 0);
}

#[test]
fn a_token_is_not_sent_over_plain_http_to_another_machine() {
    let installation = Installation::with_ana();
    for url in
        ["http://192.0.2.1:7450", "http://pilot.example", "http://[2001:db8::1]:7450", "http://localhost.example"]
    {
        let refused = installation.pilot_as(TOKEN, &["session", "--url", url]).expect(2);
        refused.says(&["does not use https", "--insecure-http"]);
        refused.never_says(TOKEN);
    }
    let server = installation.serve();
    let port = server.address.port();
    for host in ["127.0.0.1", "localhost", "LOCALHOST"] {
        installation.pilot_as(TOKEN, &["session", "--url", &format!("http://{host}:{port}")]).expect(0);
    }
    // Said aloud, it is tried. There is nobody on port 1 of an address that leads nowhere but here.
    let aloud = ["session", "--insecure-http", "--url", "http://0.0.0.0:1"];
    installation.pilot_as(TOKEN, &aloud).expect(3).says(&["cannot be reached"]);
}
