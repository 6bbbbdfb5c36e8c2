//! The credential file from systemd and from a helper; and commands that would edit what is kept elsewhere.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};

use crate::support::authority::{IDENTITY, MESH, RATE_LIMITS, ROLE_MAP, configure, installation};
use crate::support::harness::{Finished, Installation, PATIENCE, TOKEN, finish, now, set_mode};

const SYSTEMD: &str = "[credentials.systemd]\nname = 'pilot-credentials'\n";

/// An installation in production that reads its credentials as this section says.
fn with_source(section: &str) -> Installation {
    let (installation, _) = installation("production", &[]);
    configure(&installation, "production", &[MESH, ROLE_MAP, RATE_LIMITS, IDENTITY, section]);
    installation
}

fn serve_in_vain_with(installation: &Installation, environment: &[(&str, &str)]) -> Finished {
    let mut command = installation.command(&["serve"]);
    command.envs(environment.iter().copied());
    finish(command, None)
}

/// A script in the installation's directory, and the section that names it.
fn helper(script: &str, more: &str) -> Installation {
    let installation = with_source("");
    let path = installation.write("fetch", &format!("#!/bin/sh\n{script}\n"));
    set_mode(&path, 0o700);
    let section = format!("[credentials.exec]\ncommand = ['{}', 'prod', '$HOME']\n{more}", path.display());
    configure(&installation, "production", &[MESH, ROLE_MAP, RATE_LIMITS, IDENTITY, &section]);
    installation
}

#[test]
fn ana_signs_in_with_a_credential_that_systemd_handed_over() {
    let installation = with_source(SYSTEMD);
    fs::create_dir(installation.path("run")).unwrap();
    let handed = installation.path("run/pilot-credentials");
    fs::rename(installation.path("credentials.json"), &handed).unwrap();
    let directory = installation.path("run").to_string_lossy().into_owned();
    let environment = [("CREDENTIALS_DIRECTORY", directory.as_str())];
    // 0440 is how systemd lets a service in that does not run as root.
    for mode in [0o400, 0o440] {
        set_mode(&handed, mode);
        let server = installation.serve_with(&[], &environment);
        assert_eq!(server.session(TOKEN).status, 200);
        server.stop().expect(0);
    }
    set_mode(&handed, 0o444);
    serve_in_vain_with(&installation, &environment)
        .expect(2)
        .says(&["pilot-credentials: others can read it (mode 0444)"]);
    fs::remove_file(&handed).unwrap();
    let remedy = "start the service from a unit with LoadCredential=pilot-credentials:PATH";
    serve_in_vain_with(&installation, &environment).expect(2).says(&["but not this one", remedy]);
    serve_in_vain_with(&installation, &[]).expect(2).says(&["CREDENTIALS_DIRECTORY is not set", remedy]);
}

#[test]
fn ana_signs_in_with_a_credential_that_a_helper_printed_without_a_shell_and_without_our_environment() {
    let script = r#"[ "$#" = 2 ] && [ "$1" = prod ] && [ "$2" = '$HOME' ] || exit 9
[ "$(/usr/bin/env | grep -c -e PILOT_ -e TMPDIR)" = 0 ] || exit 8
echo "no new lease for you" >&2
exec cat "$(dirname "$0")/credentials.json""#;
    let installation = helper(script, "");
    let environment = [("PATH", "/usr/bin:/bin"), ("PILOT_CONSOLE__IDLE_MINUTES", "5")];
    let server = installation.serve_with(&[], &environment);
    assert_eq!(server.session(TOKEN).status, 200);
    server.wait_for_log("the credential helper reported: no new lease for you");
    server.stop().expect(0);
}

#[test]
fn what_a_helper_says_is_logged_and_never_a_secret_in_it() {
    let secret = "q".repeat(40);
    for script in [
        format!("echo oh {TOKEN} and {secret} >&2; exec /bin/cat \"${{0%/*}}/credentials.json\""),
        format!("echo oh {TOKEN} and token={secret} >&2; exit 3"),
        format!("echo {TOKEN} {secret}"),
    ] {
        let installation = helper(&script, "");
        let finished = if script.contains("cat") {
            let server = installation.serve();
            server.wait_for_log("the credential helper reported: oh (withheld) and (withheld)");
            server.stop().expect(0)
        } else {
            installation.serve_in_vain().expect(2)
        };
        finished.never_says(TOKEN);
        finished.never_says(&secret);
        let checked = installation.pilot(&["check-config"]);
        checked.never_says(TOKEN);
        checked.never_says(&secret);
    }
}

#[test]
fn a_helper_that_fails_refuses_the_start_and_says_how() {
    let failing = helper("echo the lease is gone >&2; exit 3", "");
    failing.serve_in_vain().expect(2).says(&["fetch: ended with exit code 3; it reported: the lease is gone"]);
    let checked = failing.pilot(&["check-config"]).expect(2);
    assert!(checked.stdout.contains("ended with exit code 3"), "{checked:#?}");
    helper("kill -9 $$", "").serve_in_vain().expect(2).says(&["fetch: was killed by signal 9; it reported nothing"]);
    helper("echo nothing", "").serve_in_vain().expect(2).says(&["the output of /", "is not valid JSON"]);
    helper("exit 0", "").serve_in_vain().expect(2).says(&["the output of /", "is not valid JSON"]);
    helper("exec /usr/bin/yes", "").serve_in_vain().expect(2).says(&["fetch: printed more than 16 MiB"]);

    let missing = with_source("[credentials.exec]\ncommand = ['/nowhere/fetch']\n");
    missing.serve_in_vain().expect(2).says(&["/nowhere/fetch: cannot be opened; check that it exists"]);
    let writable = helper("exit 0", "");
    set_mode(&writable.path("fetch"), 0o722);
    writable.serve_in_vain().expect(2).says(&["fetch: others can write to it (mode 0722); run `chmod go-w"]);
    let plain = helper("exit 0", "");
    set_mode(&plain.path("fetch"), 0o600);
    plain.serve_in_vain().expect(2).says(&["fetch: cannot be started; name an executable program"]);
}

#[test]
fn a_helper_that_hangs_is_ended_with_everything_it_has_started() {
    let script = "echo $$ > \"${0%/*}/ids\"; /bin/sleep 600 & echo $! >> \"${0%/*}/ids\"; wait";
    let installation = helper(script, "timeout_seconds = 1\n");
    let began = now();
    installation
        .serve_in_vain()
        .expect(3)
        .says(&["fetch: did not finish within 1 s and was killed", "timeout_seconds"]);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let ids: Vec<i32> = installation.read("ids").lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(ids.len(), 2);
    for id in ids {
        while is_running(id) {
            assert!(began.elapsed() < PATIENCE, "{id} goes on");
            std::thread::yield_now();
        }
    }
}

#[test]
fn what_a_helper_leaves_running_ends_with_it() {
    let script = "/bin/sleep 600 >/dev/null 2>&1 & echo $! > \"${0%/*}/ids\"; /bin/cat \"${0%/*}/credentials.json\"";
    let installation = helper(script, "");
    let server = installation.serve();
    let (began, id) = (now(), installation.read("ids").trim().parse().unwrap());
    while is_running(id) {
        assert!(began.elapsed() < PATIENCE, "{id} goes on");
        std::thread::yield_now();
    }
    server.stop().expect(0);
}

/// A process that ended and that nobody has asked about is not running either.
fn is_running(id: i32) -> bool {
    let state = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let is_dead = state.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X']));
    test_kill_process(Pid::from_raw(id).unwrap()).is_ok() && !is_dead
}

#[test]
fn two_sources_and_a_source_without_its_mechanism_are_refused() {
    let installation = with_source(SYSTEMD);
    let both = ["[credentials]\nrole_map = 'role-map.json'\nfile = 'credentials.json'\n", SYSTEMD].concat();
    configure(&installation, "production", &[MESH, RATE_LIMITS, IDENTITY, &both]);
    let refused = installation.serve_in_vain().expect(2);
    refused.says(&["pilot.toml, line ", "more than one of file, systemd, exec and vault; choose one"]);
    for profile in ["pilot", "production"] {
        configure(&installation, profile, &[MESH, ROLE_MAP, RATE_LIMITS, SYSTEMD]);
        let words = ["credentials: [credentials.systemd] is for [identity] mechanism = \"credential_file\""];
        installation.serve_in_vain().expect(2).says(&words);
        assert!(installation.pilot(&["check-config"]).expect(2).stdout.contains(words[0]));
    }
}

#[test]
fn commands_change_no_file_that_is_kept_elsewhere_but_prepare_one_for_it() {
    let installation = with_source(SYSTEMD);
    for command in [
        &["credential", "new", "--actor", "ana", "--role", "initiator"][..],
        &["credential", "remove", "--actor", "ana"],
        &["rotation", "begin", "--actor", "ana"],
        &["rotation", "finish", "--actor", "ana"],
    ] {
        let refused = installation.pilot(command).expect(2);
        refused.says(&["come from the systemd credential `pilot-credentials`; change them there", "--file FILE"]);
        assert_eq!(refused.stdout, "");
    }
    let new = ["credential", "new", "--file", "new.json", "--actor", "ana", "--role", "initiator"];
    let second = [&new[..], &["--schema-version", "2", "--id", "ana-2026", "--token-out"]].concat();
    installation.pilot(&[&second[..], &["ana.token"]].concat()).expect(0);
    fs::create_dir(installation.path("run")).unwrap();
    symlink(installation.path("new.json"), installation.path("run/pilot-credentials")).unwrap();
    let directory = installation.path("run").to_string_lossy().into_owned();
    let server = installation.serve_with(&[], &[("CREDENTIALS_DIRECTORY", &directory)]);
    assert_eq!(server.session(installation.read("ana.token").trim()).status, 200);
    server.stop().expect(0);
    // A file that is there keeps its format.
    let first = [&new[..], &["--schema-version", "1"]].concat();
    installation.pilot(&first).expect(2).says(&["new.json: has schema_version 2, not 1; name a new file, or see"]);
    installation.pilot(&[&new[..], &["--schema-version", "3"]].concat()).expect(2).says(&["--schema-version"]);
}
