//! A service that must not start says which file, which place and what to do, and repeats nothing it has read.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{chown, symlink};
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::support::harness::{
    Finished, Installation, Port, TOKEN, credential_file, digest, expiring_credential_file, role_map, set_mode,
};

/// Pasted where a digest, a name or a key should be; it must never come back.
const PASTED: &str = "Pasted-by-mistake-0123456789-abcdefghijkl";
const PASTED_GENERATED: &str = "pilot_0000000000000000000000000000000000000000000";

#[track_caller]
fn refused(installation: &Installation, words: &[&str]) -> Finished {
    let finished = installation.serve_in_vain().expect(2);
    assert_eq!(finished.stdout, "");
    finished.says(words);
    for secret in [PASTED, PASTED_GENERATED, TOKEN, &digest(TOKEN.as_bytes())] {
        finished.never_says(secret);
    }
    finished
}

#[track_caller]
fn check_credentials(file: &str, words: &[&str]) {
    let installation = Installation::with_ana();
    installation.write("credentials.json", file);
    let refused = refused(&installation, &[&["credentials.json"], words].concat());
    // The tool says the same before anything is restarted.
    let checked = installation.pilot(&["credential", "check", "--config", "pilot.toml"]).expect(1);
    checked.says(words);
    checked.never_says(PASTED);
    assert!(refused.stderr.contains("does not start"), "{refused:?}");
}

fn entry(actor_id: &str, role: &str, digest: &str) -> Value {
    json!({"actor_id": actor_id, "roles": [role], "token_sha3_256": digest})
}

fn file(entries: &[Value]) -> String {
    json!({"schema_version": 1, "credentials": entries}).to_string()
}

/// A sound entry with one member replaced, or removed when there is nothing to replace it with.
fn with(name: &str, value: Option<Value>) -> String {
    let mut entry = entry("ana", "initiator", &digest(TOKEN.as_bytes()));
    let members = entry.as_object_mut().unwrap();
    match value {
        Some(value) => members.insert(name.to_owned(), value),
        None => members.remove(name),
    };
    file(&[entry])
}

#[test]
fn a_credential_file_that_is_no_json_is_refused_with_line_and_column() {
    check_credentials("", &["line 1"]);
    check_credentials("not json", &["line 1, column 2"]);
    check_credentials(&credential_file(&[("ana", "initiator", TOKEN)])[1..], &["line 1"]);
    check_credentials("\u{feff}{}", &["line 1, column 1"]);
    check_credentials(&format!("{{\"schema_version\":1,\"credentials\":[\n\"{PASTED}\n"), &["line 3"]);
    check_credentials(&"[".repeat(100_000), &["credentials.json"]);
    check_credentials("{\"schema_version\":1,\"credentials\":[]} x", &["trailing characters"]);
}

#[test]
fn a_credential_file_of_another_shape_is_refused_with_its_place() {
    check_credentials("[]", &["must be an object with schema_version, credentials"]);
    check_credentials("{}", &["/schema_version: is missing", "/credentials: is missing"]);
    for version in ["0", "2", "\"1\"", "1.5", "null", "true"] {
        let text = with("x", None).replace("\"schema_version\":1", &format!("\"schema_version\":{version}"));
        check_credentials(&text, &["/schema_version: must be the integer 1"]);
    }
    check_credentials(&file(&[]), &["/credentials: is empty", "pilot credential new"]);
    check_credentials(
        &json!({"schema_version": 1, "credentials": {}}).to_string(),
        &["/credentials: must be an array"],
    );
    check_credentials(&file(&[json!(PASTED)]), &["/credentials/0: must be an object"]);
    let duplicate = with("x", None).replacen('{', "{\"schema_version\":1,", 1);
    check_credentials(&duplicate, &["/schema_version: is given more than once"]);
    let twice = with("x", None).replace("\"roles\"", "\"actor_id\":\"ana\",\"roles\"");
    check_credentials(&twice, &["/credentials/0/actor_id: is given more than once"]);
    check_credentials(&with("token", Some(json!(PASTED))), &["/credentials/0/token: is not a known member"]);
    check_credentials(&with(PASTED, Some(json!(1))), &["/credentials/0/(long name): is not a known member"]);
    check_credentials(&with(PASTED_GENERATED, Some(json!(1))), &["is not a known member"]);
}

#[test]
fn credentials_that_expire_belong_to_the_production_profile() {
    let text = expiring_credential_file(&[("ana", "initiator", TOKEN)], "2090-01-01T00:00:00Z");
    check_credentials(&text, &["/schema_version: must be the integer 1; version 2 is for the production profile"]);
}

#[test]
fn every_member_of_an_entry_is_required_and_checked() {
    for name in ["actor_id", "roles", "token_sha3_256"] {
        check_credentials(&with(name, None), &[&format!("/credentials/0/{name}: is missing")]);
        check_credentials(&with(name, Some(Value::Null)), &[&format!("/credentials/0/{name}")]);
        check_credentials(&with(name, Some(json!({"a": PASTED}))), &[&format!("/credentials/0/{name}")]);
    }
    for actor_id in ["", " ana", ".ana", "ana\n", "an\u{e4}", "ana b", &"a".repeat(129)] {
        check_credentials(&with("actor_id", Some(json!(actor_id))), &["/credentials/0/actor_id: an actor_id"]);
    }
    for roles in [json!([]), json!(["initiator", "approver"]), json!(["initiator", "initiator"]), json!("initiator")] {
        check_credentials(&with("roles", Some(roles)), &["/credentials/0/roles: must be an array of exactly one role"]);
    }
    for role in ["", "admin", "Initiator", "initiator ", PASTED] {
        check_credentials(&with("roles", Some(json!([role]))), &["/credentials/0/roles/0: must be one of initiator"]);
    }
    let upper = digest(TOKEN.as_bytes()).to_uppercase();
    let short = &digest(TOKEN.as_bytes())[1..];
    for wrong in ["", PASTED, PASTED_GENERATED, &upper, short, &format!("0{}", digest(b"x")), &format!(" {short}")] {
        let place = "/credentials/0/token_sha3_256: must be a SHA3-256 digest";
        check_credentials(&with("token_sha3_256", Some(json!(wrong))), &[place]);
    }
}

#[test]
fn entries_that_contradict_each_other_are_refused() {
    let (one, two) = (digest(b"one"), digest(b"two"));
    let same_digest = file(&[entry("ana", "initiator", &one), entry("ben", "approver", &one)]);
    check_credentials(&same_digest, &["/credentials/1/token_sha3_256: repeats the digest at /credentials/0"]);
    let two_roles = file(&[entry("ana", "initiator", &one), entry("ana", "approver", &two)]);
    check_credentials(&two_roles, &["/credentials/1/roles: gives this actor a second role"]);
    let case = file(&[entry("ana", "initiator", &one), entry("Ana", "initiator", &two)]);
    check_credentials(&case, &["/credentials/1/actor_id: differs from another entry's actor_id only in letter case"]);
}

#[test]
fn every_fault_is_listed_at_once() {
    let faulty = json!({"schema_version": 9, "extra": 1, "credentials": [
        {"actor_id": "", "roles": [], "token_sha3_256": PASTED},
        {"actor_id": "ana", "roles": ["king"]},
    ]});
    check_credentials(
        &faulty.to_string(),
        &[
            "/extra:",
            "/schema_version:",
            "/credentials/0/actor_id:",
            "/credentials/0/roles:",
            "/credentials/0/token_sha3_256:",
            "/credentials/1/roles/0:",
            "/credentials/1/token_sha3_256:",
        ],
    );
}

#[test]
fn a_credential_file_that_is_no_regular_file_is_refused_and_never_waited_for() {
    let installation = Installation::with_ana();
    let path = installation.path("credentials.json");
    fs::remove_file(&path).unwrap();
    refused(&installation, &["credentials.json: does not exist yet", "pilot credential new"]);
    symlink("nowhere", &path).unwrap();
    refused(&installation, &["credentials.json: does not exist yet"]);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    refused(&installation, &["credentials.json: is not a regular file"]);
    fs::remove_dir(&path).unwrap();
    mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    refused(&installation, &["credentials.json: is not a regular file"]);
    fs::remove_file(&path).unwrap();
    symlink("/dev/zero", &path).unwrap();
    refused(&installation, &["credentials.json"]);
}

#[test]
fn a_credential_file_of_more_than_16_mib_is_refused() {
    let installation = Installation::with_ana();
    let file = fs::OpenOptions::new().write(true).open(installation.path("credentials.json")).unwrap();
    file.set_len(16 * 1024 * 1024 + 1).unwrap();
    refused(&installation, &["credentials.json: is larger than 16 MiB"]);
}

#[test]
fn a_credential_file_others_may_write_is_refused_and_one_they_may_read_is_warned_of() {
    let installation = Installation::with_ana();
    let path = installation.path("credentials.json");
    for mode in [0o620, 0o602, 0o622, 0o660, 0o666, 0o777] {
        set_mode(&path, mode);
        refused(&installation, &["credentials.json", &format!("mode {mode:04o}"), "chmod 600"]);
    }
    for mode in [0o640, 0o604, 0o644, 0o444] {
        set_mode(&path, mode);
        let server = installation.serve();
        assert_eq!(server.session(TOKEN).status, 200);
        let log = server.stop().expect(0);
        log.says(&["WARN", "others can read it", &format!("mode {mode:04o}"), "chmod 600"]);
    }
    for mode in [0o600, 0o400] {
        set_mode(&path, mode);
        assert!(!installation.serve().stop().expect(0).stderr.contains("others can read it"), "{mode:o}");
    }
}

#[test]
fn a_credential_file_of_somebody_else_is_refused() {
    let installation = Installation::with_ana();
    let path = installation.path("credentials.json");
    if rustix::process::geteuid().is_root() {
        chown(&path, Some(12_345), None).unwrap();
        refused(&installation, &["credentials.json: is owned by neither root nor the user", "chown"]);
        chown(&path, Some(0), Some(12_345)).unwrap();
    } else {
        // Only root can give a file away, so here somebody else's file is one that exists already: root's is accepted.
        fs::remove_file(&path).unwrap();
        symlink("/etc/hostname", &path).unwrap();
        refused(&installation, &["credentials.json", "is not valid JSON"]);
        return;
    }
    assert_eq!(installation.serve().session(TOKEN).status, 200);
}

#[test]
fn a_link_to_a_private_file_is_followed() {
    let installation = Installation::with_ana();
    fs::rename(installation.path("credentials.json"), installation.path("elsewhere.json")).unwrap();
    symlink("elsewhere.json", installation.path("credentials.json")).unwrap();
    assert_eq!(installation.serve().session(TOKEN).status, 200);
    set_mode(&installation.path("elsewhere.json"), 0o666);
    refused(&installation, &["credentials.json: others can write to it"]);
}

#[test]
fn a_credential_that_is_not_in_the_role_map_stops_the_start() {
    let installation = Installation::with(&[("ana", "initiator", TOKEN), ("ben", "approver", &"b".repeat(40))]);
    installation.write("pilot.toml", "listen = '127.0.0.1:0'\n[credentials]\nrole_map = 'map.json'\n");
    refused(&installation, &["map.json: cannot be opened"]);
    installation.write("map.json", &role_map(&[("ana", "auditor")]));
    refused(
        &installation,
        &[
            "credentials.json at /credentials/0/roles: differs from the role the role map approves",
            "credentials.json at /credentials/1/actor_id: is not in the role map",
        ],
    );
    installation.write("map.json", &role_map(&[("ana", "initiator"), ("ben", "approver"), ("cyd", "auditor")]));
    assert_eq!(installation.serve().session(TOKEN).status, 200);
    set_mode(&installation.path("map.json"), 0o666);
    refused(&installation, &["map.json: others can write to it", "chmod 600"]);
}

#[test]
fn a_faulty_role_map_stops_the_start_and_no_value_of_it_is_repeated() {
    let installation = Installation::with_ana();
    installation.write("pilot.toml", "listen = '127.0.0.1:0'\n[credentials]\nrole_map = 'map.json'\n");
    let ana = json!({"actor_id": "ana", "role": "initiator"});
    for (map, place) in [
        (json!({}), "/actors: is missing"),
        (json!({"schema_version": 2, "approved_by": [], "actors": [ana]}), "/schema_version"),
        (json!({"schema_version": 1, "approved_by": [""], "actors": [ana]}), "/approved_by/0"),
        (json!({"schema_version": 1, "approved_by": ["Ina", "ina"], "actors": [ana]}), "/approved_by/1: repeats"),
        (json!({"schema_version": 1, "approved_by": [], "actors": [ana, ana]}), "/actors/1/actor_id"),
        (
            json!({"schema_version": 1, "approved_by": [], "actors": [{"actor_id": "ana", "role": PASTED}]}),
            "/actors/0/role",
        ),
        (
            json!({"schema_version": 1, "approved_by": [], "actors": [{"actor_id": "ana", "role": "auditor", "kind": PASTED}]}),
            "/actors/0/kind",
        ),
        (json!({"schema_version": 1, "approved_by": [], "actors": [{PASTED: "ana", "role": "auditor"}]}), "/actors/0/"),
        (json!({PASTED: 1, "schema_version": 1, "approved_by": [], "actors": [ana]}), "is not a known member"),
    ] {
        installation.write("map.json", &map.to_string());
        refused(&installation, &["map.json", place]);
    }
}

#[test]
fn a_faulty_configuration_is_refused_with_its_line() {
    let installation = Installation::with_ana();
    for (text, words) in [
        ("listen = '127.0.0.1:0'\nlisten_on = 'x'", &["line 2", "listen_on"][..]),
        ("[store]\nurl = 'sqlite:a'\npath = 'b'", &["line 3", "path"]),
        ("[credentials]\nfiles = 'x'", &["line 2", "files"]),
        ("[nothing]\na = 1", &["line 1", "nothing"]),
        ("listen = 'localhost'", &["line 1, column 10", "must be an address and a port"]),
        ("listen = 7450", &["line 1, column 10"]),
        ("listen = '127.0.0.1:99999'", &["line 1", "must be an address and a port"]),
        ("\n\nprofile = 'test'", &["line 3", "`pilot` or `production`"]),
        ("listen = ", &["line 1"]),
        ("listen = '127.0.0.1:0'\nlisten = '127.0.0.1:0'", &["line 2", "duplicate key"]),
        ("[ops]", &["line 1", "missing field `listen`"]),
    ] {
        installation.write("pilot.toml", text);
        refused(&installation, &[&["pilot.toml"], words].concat());
    }
    for text in [
        format!("profile = '{PASTED}'"),
        format!("{PASTED} = 1"),
        format!("[store]\n{PASTED} = 1"),
        format!("listen = '{PASTED}'"),
        format!("profile = '{PASTED_GENERATED}'"),
        format!("[credentials]\nfile = '{PASTED}"),
        format!("data_dir = {PASTED}"),
    ] {
        installation.write("pilot.toml", &text);
        refused(&installation, &["pilot.toml, line"]);
    }
    fs::remove_file(installation.path("pilot.toml")).unwrap();
    refused(&installation, &["pilot.toml: cannot be read", "pilot init"]);
}

#[test]
fn a_faulty_override_is_refused_with_the_name_of_the_variable() {
    let installation = Installation::with_ana();
    for (name, value) in [
        ("PILOT_LISTEN", "nowhere"),
        ("PILOT_PROFILE", PASTED),
        ("PILOT_STORE__URI", "x"),
        ("PILOT_OPS__LISTEN", PASTED),
        ("PILOT_STORE", PASTED),
    ] {
        let mut command = installation.command(&["serve"]);
        command.env(name, value);
        let finished = crate::support::harness::finish(command, None).expect(2);
        finished.says(&[name]);
        finished.never_says(PASTED);
        assert_eq!(finished.stdout, "");
    }
}

#[test]
fn what_this_version_does_not_have_is_refused() {
    let installation = Installation::with_ana();
    for url in ["postgres://user:secret-of-the-database@db/pilot", "sqlite3:x", ""] {
        installation.write("pilot.toml", &format!("listen = '127.0.0.1:0'\n[store]\nurl = '{url}'"));
        refused(&installation, &["line 3", "store.url"]).never_says("secret-of-the-database");
    }
}

#[test]
fn a_database_that_cannot_be_reached_is_named() {
    let (installation, port) = (Installation::with_ana(), Port::reserve());
    let url = format!("postgres://user@{}/pilot", port.address());
    installation.write("pilot.toml", &format!("listen = '127.0.0.1:0'\n[store]\nurl = '{url}'"));
    let found = installation.serve_in_vain().expect(3);
    found.says(&[&format!("postgres://{}/pilot: cannot be reached", port.address())]);
}

#[test]
fn a_password_for_the_database_stays_in_a_private_file() {
    let installation = Installation::with_ana();
    let port = Port::reserve();
    let store = format!("[store]\nurl = 'postgres://user@{}/pilot'\npassword_file = 'password'", port.address());
    installation.write("pilot.toml", &format!("listen = '127.0.0.1:0'\n{store}"));
    refused(&installation, &["store.password_file", "password: cannot be opened"]);
    installation.write("password", "secret-of-the-database\n");
    set_mode(&installation.path("password"), 0o666);
    refused(&installation, &["store.password_file", "chmod 600"]).never_says("secret-of-the-database");
    set_mode(&installation.path("password"), 0o600);
    let found = installation.serve_in_vain().expect(3);
    found.says(&["cannot be reached"]);
    found.never_says("secret-of-the-database");
}

#[test]
fn a_log_key_that_is_damaged_or_open_to_others_stops_the_start() {
    let installation = Installation::with_ana();
    installation.serve().stop().expect(0);
    let path = installation.path("data/log.key");
    assert_eq!(crate::support::harness::mode(&path), 0o600);
    let key = installation.read("data/log.key");
    // PRIVATE+KEY+<name>+<hash>+<secret>; a + may be one of the secret's own letters.
    let secret = key.trim_end().splitn(5, '+').nth(4).unwrap().to_owned();
    assert_eq!(secret.len(), 44);
    for mode in [0o640, 0o604, 0o644, 0o660, 0o606] {
        set_mode(&path, mode);
        refused(&installation, &["log.key", &format!("mode {mode:04o}"), "chmod 600"]);
    }
    set_mode(&path, 0o600);
    let longer = format!("{}AAAA\n", key.trim_end());
    for damaged in ["", "\n", &key[1..], &key[..key.len() - 3], &key.replacen("pilot.local", "pilot.other", 1), &longer]
    {
        installation.write("data/log.key", damaged);
        refused(&installation, &["log.key"]).never_says(&secret);
    }
    installation.write("data/log.key", &key);
    installation.serve().stop().expect(0);
    assert_eq!(installation.read("data/log.key"), key);
}

#[test]
fn a_port_in_use_is_a_fault_of_the_environment() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let installation = Installation::with_ana();
    for text in [format!("listen = '{address}'"), format!("listen = '127.0.0.1:0'\n[ops]\nlisten = '{address}'")] {
        installation.write("pilot.toml", &text);
        let finished = installation.serve_in_vain().expect(3);
        finished.says(&[&address.to_string(), "cannot listen on this address"]);
        assert_eq!(finished.stdout, "");
    }
}

#[test]
fn a_second_service_on_the_same_store_is_refused_and_the_first_goes_on() {
    let installation = Installation::with_ana();
    let server = installation.serve();
    refused(&installation, &["pilot.db", "another process has this store open"]);
    assert_eq!(server.session(TOKEN).status, 200);
    assert_eq!(server.get("/readyz", &[]).status, 200);
    server.stop().expect(0);
    assert_eq!(installation.serve().session(TOKEN).status, 200);
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_left_alone() {
    let installation = Installation::with_ana();
    installation.serve().stop().expect(0);
    let path = installation.path("data/pilot.db");
    let mut bytes = fs::read(&path).unwrap();
    // The user version of an SQLite file: four bytes from the 60th.
    bytes[60..64].copy_from_slice(&8_u32.to_be_bytes());
    fs::write(&path, &bytes).unwrap();
    refused(&installation, &["pilot.db", "newer version of pilot", "schema 8"]);
    assert!(fs::read(&path).unwrap() == bytes);
}

#[test]
fn a_store_that_is_no_database_is_refused_and_left_alone() {
    let installation = Installation::with_ana();
    installation.serve().stop().expect(0);
    let text = "not a database, but long enough for SQLite to look for its header\n".repeat(20);
    installation.write("data/pilot.db", &text);
    let finished = installation.serve_in_vain().expect(2);
    finished.says(&["pilot.db", "is not a SQLite database"]);
    assert_eq!((finished.stdout.as_str(), installation.read("data/pilot.db")), ("", text));
    fs::remove_file(installation.path("data/pilot.db")).unwrap();
    fs::create_dir(installation.path("data/pilot.db")).unwrap();
    installation.serve_in_vain().expect(3).says(&["pilot.db"]);
}

#[test]
fn a_data_directory_that_cannot_be_made_is_a_fault_of_the_environment() {
    let installation = Installation::with_ana();
    installation.write("data", "a file in its place");
    installation.serve_in_vain().expect(3).says(&["data"]);
}

#[test]
fn a_service_killed_in_the_middle_starts_again() {
    let installation = Installation::with_ana();
    for _ in 0..3 {
        let server = installation.serve();
        assert_eq!(server.session(TOKEN).status, 200);
        server.signal(rustix::process::Signal::KILL);
        assert_eq!(server.ends().code, -1);
    }
    // What a crash in the middle of an edit leaves behind was never in force, and does not stand in the way.
    installation.write(".credentials.json.new", "half a fi");
    let new: [&str; 9] =
        ["credential", "new", "--config", "pilot.toml", "--actor", "ana", "--role", "initiator", "--token-out=t"];
    let made: Command = installation.command(&new);
    crate::support::harness::finish(made, None).expect(0);
    assert_eq!(installation.serve().session(installation.read("t").trim_end()).status, 200);
}

#[test]
fn a_live_token_in_a_file_the_start_reads_stops_it_and_is_not_repeated() {
    let installation = Installation::with_ana();
    let both_refuse = |words: &[&str]| {
        refused(&installation, words);
        let checked = installation.pilot(&["check-config"]).expect(2);
        assert!(words.iter().all(|word| checked.stdout.contains(word)), "{words:?} {checked:?}");
        checked.never_says(PASTED);
    };
    // It was made by hand, is live, and was never used.
    let live = entry("ben", "approver", &digest(PASTED.as_bytes()));
    let credentials = |actor_id: &str| {
        let other = entry(actor_id, "auditor", &digest(b"another-token-that-is-long-enough-0001"));
        installation.write("credentials.json", &file(&[live.clone(), other]));
    };
    installation.write("pilot.toml", "listen = '127.0.0.1:0'\n");
    credentials(PASTED);
    both_refuse(&["credentials.json at /credentials/1/actor_id contains a live token; remove it"]);
    credentials(&format!("cyd:{PASTED}.org"));
    both_refuse(&["credentials.json at /credentials/1/actor_id contains a live token"]);

    credentials("cyd");
    installation.write("pilot.toml", "listen = '127.0.0.1:0'\n[credentials]\nrole_map = 'map.json'\n");
    let map = |approved_by: Value, subject: &str| {
        let cyd = json!({"actor_id": "cyd", "role": "auditor", "subject": subject});
        let actors = [json!({"actor_id": "ben", "role": "approver"}), cyd];
        installation
            .write("map.json", &json!({"schema_version": 1, "approved_by": approved_by, "actors": actors}).to_string());
    };
    map(json!(["Ina", "Udo"]), &format!("spiffe://x/{PASTED}-y"));
    both_refuse(&["map.json at /actors/1/subject contains a live token"]);
    map(json!(["Ina", format!("Udo {PASTED}.")]), "cyd");
    both_refuse(&["map.json at /approved_by/1 contains a live token"]);

    map(json!(["Ina"]), "cyd");
    let workflows = "listen = '127.0.0.1:0'\n[credentials]\nrole_map = 'map.json'\n[workflows]\ndir = 'workflows'\n";
    installation.write("pilot.toml", workflows);
    fs::create_dir(installation.path("workflows")).unwrap();
    installation.write("workflows/own.toml", &format!("name = \"own\"\n# see {PASTED}.\nnonsense = {PASTED}\n"));
    both_refuse(&["own.toml, line 2 contains a live token", "own.toml, line 3 contains a live token"]);
    installation.write("workflows/own.toml", "nonsense = 1\n");
    refused(&installation, &["own.toml", "nonsense"]);

    // One name is legal, and worth a word.
    fs::remove_file(installation.path("workflows/own.toml")).unwrap();
    let warning = "map.json at /approved_by has 1 name(s), but at least two people should approve a role map";
    let checked = installation.pilot(&["check-config"]).expect(0);
    assert!(checked.stdout.contains(warning), "{checked:?}");
    let server = installation.serve();
    server.wait_for_log(warning);
    server.stop().expect(0);
    map(json!(["Ina", "Udo"]), "cyd");
    assert!(!installation.serve().stop().expect(0).stderr.contains("approved_by"));
}

#[test]
fn thousands_of_faults_are_some_lines() {
    let entries: Vec<_> = (0..2_000).map(|number| entry(&format!("a{number}"), "king", "short")).collect();
    let installation = Installation::with_ana();
    installation.write("credentials.json", &file(&entries));
    let words = ["/credentials/0/roles/0: must be one of", "/credentials/2/roles/0 and 1997 more places"];
    for finished in [
        refused(&installation, &words),
        installation.pilot(&["credential", "check", "--config", "pilot.toml"]).expect(1),
        installation.pilot(&["check-config"]).expect(2),
    ] {
        let said = format!("{}{}", finished.stdout, finished.stderr);
        assert!(said.lines().count() < 70 && said.contains(words[1]), "{finished:#?}");
    }
}

#[test]
fn whatever_is_wrong_in_whichever_file_is_said_in_one_go() {
    let installation = Installation::with_ana();
    fs::create_dir(installation.path("workflows")).unwrap();
    installation.write("workflows/one.toml", "name = 1");
    installation.write("workflows/two.toml", "nonsense");
    installation.write("role-map.json", "{}");
    installation.write("credentials.json", "[]");
    installation.write(
        "pilot.toml",
        "listen = '127.0.0.1:0'\n[credentials]\nrole_map = 'role-map.json'\n[workflows]\ndir = 'workflows'\n\
         [log]\nca_file = 'nothing.pem'\n[tls]\ncertificate = 'c.pem'\nkey = 'k.pem'\n",
    );
    let words = ["c.pem", "credentials.json", "role-map.json at /actors", "one.toml", "two.toml"];
    refused(&installation, &words);
    let checked = installation.pilot(&["check-config"]).expect(2);
    assert!(words.iter().all(|word| checked.stdout.contains(word)), "{checked:#?}");
    installation.write("pilot.toml", "lisen = 1\n[store]\npath = 'x'\n[ops]\nlisten = 'here'\n");
    for finished in [installation.serve_in_vain().expect(2), installation.pilot(&["check-config"]).expect(2)] {
        finished.says(&["line 1, column 1: unknown field `lisen`", "line 3, column 1", "line 5, column 10"]);
    }
}

#[test]
fn more_definitions_than_a_start_can_name_are_refused_before_anything_is_written() {
    let installation = Installation::with_ana();
    fs::create_dir(installation.path("workflows")).unwrap();
    for number in 0..255 {
        installation.write(&format!("workflows/{number}.toml"), "");
    }
    installation.write("pilot.toml", "listen = '127.0.0.1:0'\n[workflows]\ndir = 'workflows'\n");
    let words = ["257 definitions with the built-in ones", "at most 256 may be in force"];
    refused(&installation, &words);
    let checked = installation.pilot(&["check-config"]).expect(2);
    assert!(words.iter().all(|word| checked.stdout.contains(word)), "{checked:#?}");
}
