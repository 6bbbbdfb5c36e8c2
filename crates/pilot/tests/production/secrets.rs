//! Secret files as a package, a person and Kubernetes leave them: whose they are, who may read them, and what is written
//! into them is what the profile reads.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::path::Path;
use std::process::Command;

use pilot_setup::private_file;
use serde_json::{Value, json};

use crate::support::authority::{IDENTITY, MESH, RATE_LIMITS, ROLE_MAP, TLS, configure, installation};
use crate::support::harness::{Finished, Installation, TOKEN, credential_file, digest, finish, mode, set_mode};

/// The image's user and the group that a pod gives it.
const USER: u32 = 65532;
const GROUP: u32 = 65533;
const ALL: [&str; 4] = [TLS, ROLE_MAP, RATE_LIMITS, IDENTITY];
const SECRETS: [&str; 4] = ["credentials.json", "role-map.json", "tls.pem", "tls.key"];

/// An installation in which everything is root's, but for a data directory of the image's user.
fn in_a_pod(profile: &str) -> Installation {
    let (installation, _) = installation(profile, &ALL);
    set_mode(&installation.path(""), 0o755);
    set_mode(&installation.path("pilot.toml"), 0o644);
    for name in SECRETS {
        mount(&installation, name, 0, GROUP, 0o440);
    }
    fs::create_dir(installation.path("data")).unwrap();
    chown(installation.path("data"), Some(USER), Some(GROUP)).unwrap();
    set_mode(&installation.path("data"), 0o700);
    // Where the program was built may be closed to others.
    fs::copy(env!("CARGO_BIN_EXE_pilot"), installation.path("pilot")).unwrap();
    installation
}

fn mount(installation: &Installation, name: &str, owner: u32, group: u32, mode: u32) {
    chown(installation.path(name), Some(owner), Some(group)).unwrap();
    set_mode(&installation.path(name), mode);
}

/// The program as the image's user, in this group besides its own.
fn as_image_user(installation: &Installation, arguments: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={USER}"), &format!("--regid={USER}"), &format!("--groups={GROUP}"), "--"]);
    command.arg(installation.path("pilot")).args(arguments);
    installation.prepare(command)
}

fn refused(installation: &Installation) -> Finished {
    finish(as_image_user(installation, &["serve", "--config", "pilot.toml"]), None).expect(2)
}

#[test]
fn a_secret_volume_of_kubernetes_is_used_as_it_is_mounted() {
    let installation = in_a_pod("production");
    finish(as_image_user(&installation, &["check-config"]), None).expect(0);
    let server = installation.start(as_image_user(&installation, &["serve", "--config", "pilot.toml"]));
    assert!(server.url().starts_with("https://"));
    let stopped = server.stop().expect(0);
    stopped.never_says("may read it");
    assert_eq!(fs::metadata(installation.path("data/log.key")).unwrap().uid(), USER);
}

#[test]
fn anyone_else_within_reach_of_a_secret_refuses_the_start() {
    let installation = in_a_pod("production");
    for (owner, group, mode, said) in [
        (0, GROUP, 0o444, "others can read it (mode 0444)"),
        (0, GROUP, 0o460, "others can write to it (mode 0460)"),
        (0, GROUP, 0o450, "others can read it (mode 0450)"),
        (USER, GROUP, 0o440, "others can read it (mode 0440)"),
        (USER + 7, GROUP, 0o440, "is owned by neither root nor the user who runs this"),
    ] {
        mount(&installation, "credentials.json", owner, group, mode);
        refused(&installation).says(&["credentials.json", said]);
    }
    // Readable for this user by its owner's right, and for a group that it is not in.
    mount(&installation, "credentials.json", USER, GROUP + 1, 0o440);
    refused(&installation).says(&["others can read it (mode 0440)"]);
}

#[test]
fn what_root_gives_to_the_services_group_stays_readable_for_it_when_it_is_changed() {
    let installation = in_a_pod("production");
    mount(&installation, "credentials.json", 0, GROUP, 0o640);
    let new = ["credential", "new", "--actor", "ana", "--role", "initiator", "--token-out", "ana.token"];
    installation.pilot(&new).expect(0);
    let found = fs::metadata(installation.path("credentials.json")).unwrap();
    assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (0, GROUP, 0o640));
    assert_eq!(mode(&installation.path("ana.token")), 0o600, "a token is nobody else's");
    // The first one, in a directory that root keeps for that group.
    fs::create_dir(installation.path("secrets")).unwrap();
    chown(installation.path("secrets"), Some(0), Some(GROUP)).unwrap();
    set_mode(&installation.path("secrets"), 0o2750);
    let first = ["--config", "pilot.toml", "--file", "secrets/credentials.json"];
    installation.pilot(&[&new[..6], &first].concat()).expect(0);
    let found = fs::metadata(installation.path("secrets/credentials.json")).unwrap();
    assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (0, GROUP, 0o640));
}

#[test]
fn root_is_told_to_run_as_the_user_whose_data_it_is() {
    let installation = in_a_pod("production");
    for command in [
        &["check-config"][..],
        &["backup", "--out", "copy"],
        &["restore", "copy"],
        &["logging", "set", "--level", "debug"],
        &["evidence", "erase", "--item", "01a1ddce-467e-7b6f-8336-8446ede0db6a", "--why", "w"],
    ] {
        installation.pilot(command).expect(2).says(&["belongs to the user #65532", "runuser -u #65532 -- pilot"]);
    }
    assert_eq!(fs::read_dir(installation.path("data")).unwrap().count(), 0, "nothing of root's was left there");
}

#[test]
fn root_does_not_follow_a_link_that_the_services_user_has_planted() {
    let installation = in_a_pod("production");
    let (target, data) = (installation.write("of-root", "keep me"), installation.path("data"));
    for (name, write) in [
        ("clock.json", private_file::replace as fn(&Path, &[u8]) -> io::Result<()>),
        ("rotation-record.jsonl", |path, bytes| private_file::append(path)?.write_all(bytes)),
    ] {
        symlink(&target, data.join(name)).unwrap();
        let written = write(&data.join(name), b"written");
        assert_eq!(fs::read_to_string(&target).unwrap(), "keep me", "{name}: {written:?}");
        assert_eq!(fs::metadata(&target).unwrap().uid(), 0, "{name}");
        let _ = fs::remove_file(data.join(name));
        write(&data.join(name), b"written").unwrap();
        assert_eq!(fs::metadata(data.join(name)).unwrap().uid(), USER, "{name}: the service must be able to use it");
    }
}

#[test]
fn a_configuration_that_others_may_write_is_refused_in_production_and_warned_of_in_pilot() {
    let (installation, _) = installation("production", &ALL);
    let path = installation.path("pilot.toml");
    for (owner, mode, said) in [
        (0, 0o620, "others can write to it (mode 0620)"),
        (0, 0o602, "others can write to it (mode 0602)"),
        (USER, 0o600, "is owned by neither root"),
    ] {
        chown(&path, Some(owner), None).unwrap();
        set_mode(&path, mode);
        installation.serve_in_vain().expect(2).says(&["configuration: ", "pilot.toml", said]);
        assert!(installation.pilot(&["check-config"]).expect(2).stdout.contains(said));
    }
    configure(&installation, "pilot", &ALL);
    set_mode(&path, 0o666);
    let server = installation.serve();
    server.wait_for_log("is owned by neither root");
    server.stop().expect(0);
}

#[test]
fn a_new_file_is_what_the_profile_reads() {
    for (profile, version) in [("pilot", 1), ("production", 2)] {
        let (installation, _) = installation(profile, &[MESH, ROLE_MAP, RATE_LIMITS]);
        let identity = if profile == "production" { IDENTITY } else { "" };
        configure(&installation, profile, &[MESH, ROLE_MAP, RATE_LIMITS, identity]);
        fs::remove_file(installation.path("credentials.json")).unwrap();
        let new = ["credential", "new", "--actor", "ana", "--role", "initiator", "--output", "json"];
        let made = installation.pilot(&new).expect(0).json();
        let file: Value = serde_json::from_str(&installation.read("credentials.json")).unwrap();
        assert_eq!(file["schema_version"], json!(version));
        assert_eq!(made["expires_at"].is_string(), version == 2, "an end is shown: {made}");
        let server = installation.serve();
        assert_eq!(server.session(made["token"].as_str().unwrap()).status, 200);
        server.stop().expect(0);
        let copy = [&new[..], &["--config", "pilot.toml", "--file", "copy.json"]].concat();
        installation.pilot(&copy).expect(0);
        let copy: Value = serde_json::from_str(&installation.read("copy.json")).unwrap();
        assert_eq!(copy["schema_version"], json!(version));
    }
}

#[test]
fn a_file_of_a_pilot_is_converted_and_its_tokens_go_on_working() {
    let (installation, _) = installation("production", &[MESH, ROLE_MAP, RATE_LIMITS, IDENTITY]);
    installation.write("credentials.json", &credential_file(&[("ana", "initiator", TOKEN)]));
    installation.serve_in_vain().expect(2).says(&["/schema_version: must be the integer 2"]);
    let converted = installation.pilot(&["credential", "convert", "--expires-in", "30", "--output", "json"]).expect(0);
    converted.says(&["now has schema_version 2", "check-config", "restart"]);
    let view = converted.json();
    let file: Value = serde_json::from_str(&installation.read("credentials.json")).unwrap();
    assert_eq!(file["credentials"][0]["token_sha3_256"], json!(digest(TOKEN.as_bytes())));
    assert_eq!(file["credentials"][0]["expires_at"], view["credentials"][0]["expires_at"]);
    assert_eq!(mode(&installation.path("credentials.json")), 0o600);
    let server = installation.serve();
    assert_eq!(server.session(TOKEN).status, 200);
    server.stop().expect(0);
    // Again, and nothing is changed: an end is not put off by converting.
    let before = installation.read("credentials.json");
    installation.pilot(&["credential", "convert", "--expires-in", "3000"]).expect(0).says(&["nothing was changed"]);
    assert_eq!(installation.read("credentials.json"), before);
}

#[test]
fn a_file_that_a_pilot_reads_is_not_converted_under_it() {
    let installation = Installation::with_ana();
    let before = installation.read("credentials.json");
    let refused = installation.pilot(&["credential", "convert"]).expect(1);
    refused.says(&["Nothing was changed", "profile = \"production\""]);
    assert_eq!(installation.read("credentials.json"), before);
    installation.pilot(&["credential", "convert", "--file", "credentials.json"]).expect(0);
}
