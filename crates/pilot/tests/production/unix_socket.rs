//! The service on a Unix socket: its file, who may connect, and who is believed.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Signal, getgid, getuid};
use tempfile::TempDir;

use crate::production::https::der;
use crate::production::mutual_tls::{self, ANA, far, house};
use crate::support::authority::{IDENTITY, ROLE_MAP, installation};
use crate::support::harness::{Finished, Installation, Server, TOKEN, bearer, finish, mode, set_mode};
use crate::support::wire::{Response, Wire};

const LIMITS: &str = "[rate_limits]\nanonymous_per_minute = 2\n";
/// A user whom no test runs as.
const SOMEBODY: u32 = 4_711;
const NOBODY: u32 = 65_534;

/// A socket in a directory that every user can look into.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::Builder::new().prefix("pilot-socket-").tempdir().unwrap();
        set_mode(directory.path(), 0o711);
        Place { directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("pilot.sock")
    }

    /// The service listens here, and otherwise on nothing.
    fn configure(&self, installation: &Installation, profile: &str, sections: &[&str]) {
        let head = format!("profile = '{profile}'\nlisten = 'unix:{}'\n", self.path().display());
        installation.write("pilot.toml", &(head + &sections.concat()));
    }

    fn installation(&self, profile: &str, sections: &[&str]) -> Installation {
        let (installation, _) = installation(profile, &[]);
        self.configure(&installation, profile, sections);
        installation
    }

    fn curl(&self, installation: &Installation, arguments: &[&str]) -> Finished {
        let mut curl = installation.prepare(Command::new("curl"));
        curl.args(["-sS", "-w", "%{http_code} %{http_version}", "--unix-socket"]).arg(self.path());
        curl.args(arguments).arg("http://localhost/v1/session");
        finish(curl, None)
    }
}

fn mesh_of(user: u32) -> String {
    format!("[tls]\ntermination = 'mesh'\ntrusted_users = [{user}]\n")
}

fn own_user() -> u32 {
    getuid().as_raw()
}

fn session(server: &Server, headers: &[&str]) -> Response {
    server.get("/v1/session", headers)
}

#[test]
fn a_caller_is_served_on_the_socket_which_is_gone_after_a_clean_end() {
    let place = Place::new();
    let installation = place.installation("pilot", &[]);
    let server = installation.serve();
    assert_eq!(session(&server, &[&bearer(TOKEN)]).verdict(), "200");
    for (option, version) in [("--http1.1", "1.1"), ("--http2-prior-knowledge", "2")] {
        let shown = place.curl(&installation, &[option, "-H", &bearer(TOKEN)]).expect(0).stdout;
        assert!(shown.ends_with(&format!("}}200 {version}")), "{shown}");
    }
    assert!(fs::symlink_metadata(place.path()).unwrap().file_type().is_socket());
    let finished = server.stop().expect(0);
    assert_eq!(finished.stdout, format!("listening on unix:{}\n", place.path().display()));
    assert!(!place.path().exists());
}

#[test]
fn the_socket_has_the_configured_group_and_mode() {
    let place = Place::new();
    // Only root can choose a group it is not a member of.
    let group = if own_user() == 0 { NOBODY } else { getgid().as_raw() };
    for (section, expected) in [("mode = '0600'\n", 0o600), ("", 0o660)] {
        let section = format!("[socket]\nowner = {}\ngroup = {group}\n{section}", own_user());
        let installation = place.installation("pilot", &[&section]);
        let server = installation.serve();
        let found = fs::metadata(place.path()).unwrap();
        assert_eq!((found.uid(), found.gid(), mode(&place.path())), (own_user(), group, expected));
        server.stop().expect(0);
    }
}

#[test]
fn a_socket_that_answers_is_left_alone_and_one_of_a_killed_service_is_replaced() {
    let place = Place::new();
    let (first, second) = (place.installation("pilot", &[]), place.installation("pilot", &[]));
    let server = first.serve();
    second.serve_in_vain().expect(3).says(&["pilot.sock: another service listens on this socket"]);
    // The check is for the configuration, and the service may well be running.
    second.pilot(&["check-config"]).expect(0);
    assert_eq!(session(&server, &[&bearer(TOKEN)]).verdict(), "200");
    server.signal(Signal::KILL);
    server.ends();
    assert!(place.path().exists(), "nobody could remove it");
    let server = second.serve();
    assert_eq!(session(&server, &[&bearer(TOKEN)]).verdict(), "200");
    server.stop().expect(0);
    assert!(!place.path().exists());
}

#[test]
fn what_is_not_a_socket_is_not_touched() {
    let place = Place::new();
    let installation = place.installation("pilot", &[]);
    fs::write(place.path(), "precious").unwrap();
    installation.serve_in_vain().expect(2).says(&["pilot.sock: is not a socket, so it is not replaced"]);
    let checked = installation.pilot(&["check-config"]).expect(2);
    assert!(checked.stdout.contains("is not a socket"), "{checked:?}");
    assert_eq!(fs::read_to_string(place.path()).unwrap(), "precious");
    let elsewhere = place.directory.path().join("elsewhere");
    let listener = UnixListener::bind(&elsewhere).unwrap();
    fs::remove_file(place.path()).unwrap();
    std::os::unix::fs::symlink(&elsewhere, place.path()).unwrap();
    installation.serve_in_vain().expect(2).says(&["is not a socket"]);
    drop(listener);
    assert!(fs::symlink_metadata(place.path()).unwrap().is_symlink() && elsewhere.exists());
}

#[test]
fn what_cannot_work_is_refused_by_the_check_and_the_start_alike() {
    let place = Place::new();
    let installation = place.installation("pilot", &[]);
    let socket = format!("unix:{}", place.path().display());
    let missing = place.directory.path().join("missing/pilot.sock");
    let open = place.directory.path().join("open");
    fs::create_dir(&open).unwrap();
    set_mode(&open, 0o777);
    for (code, text, words) in [
        (2, "listen = 'unix:pilot.sock'\n".to_owned(), "line 1, column 10: the path of a socket must begin with /"),
        (2, format!("listen = 'unix:/{}'\n", "x".repeat(107)), "has 108 bytes, but at most 107 are possible"),
        (
            2,
            format!("listen = '{socket}'\n[socket]\nmode = '0666'\n"),
            "line 3, column 8: must be \"0600\" or \"0660\"",
        ),
        (
            2,
            format!("listen = '{socket}'\n[socket]\ngroup = 'no-such-group'\n"),
            "socket.group: `no-such-group` is not in /etc/group",
        ),
        (2, format!("listen = '{socket}'\n{}", mesh_of(NOBODY)), "tls.trusted_users: 65534 cannot be trusted"),
        (
            2,
            format!("listen = 'unix:{}'\n", open.join("s").display()),
            "someone other than root and the service can write to this directory",
        ),
        (3, format!("listen = 'unix:{}'\n", missing.display()), "missing: the directory cannot be used; create it"),
    ] {
        installation.write("pilot.toml", &text);
        let checked = installation.pilot(&["check-config", "--output", "json"]).expect(code);
        let said = format!("{}{}", checked.stdout.replace("\\\"", "\""), checked.stderr);
        assert!(said.contains(words), "{words:?} is missing in {said}");
        installation.serve_in_vain().expect(code).says(&[words]);
    }
}

#[test]
fn in_production_only_a_listed_user_is_answered() {
    let place = Place::new();
    let sections = |user| [mesh_of(user), ROLE_MAP.into(), LIMITS.into(), IDENTITY.into()].concat();
    let installation = place.installation("production", &[&sections(own_user())]);
    let checked = installation.pilot(&["check-config"]).expect(0).stdout;
    assert!(checked.contains(&format!("ends at the mesh, which runs as {}", own_user())), "{checked}");
    assert!(!checked.contains("mesh_secret_file"), "the kernel says who the mesh is: {checked}");
    let server = installation.serve();
    assert_eq!(session(&server, &[&bearer(TOKEN)]).verdict(), "200");
    // Its callers have budgets of their own.
    let statuses = |address: &str| {
        let claim = format!("X-Forwarded-For: {address}");
        [(); 3].map(|()| session(&server, &[&claim]).status)
    };
    assert_eq!(statuses("192.0.2.1"), [401, 401, 429]);
    assert_eq!(statuses("192.0.2.2"), [401, 401, 429]);
    server.stop().expect(0);
    place.configure(&installation, "production", &[&sections(SOMEBODY)]);
    let server = installation.serve();
    for claim in ["X-Forwarded-For: 127.0.0.1", "Client-Cert: :MAA=:", "Accept: */*"] {
        let refused = session(&server, &[&bearer(TOKEN), claim]);
        assert_eq!(refused.verdict(), "400 invalid_request");
        assert!(refused.text().contains("Connect through the mesh"), "{}", refused.text());
    }
}

#[test]
fn a_user_who_is_not_listed_is_counted_as_itself_whatever_it_claims() {
    let place = Place::new();
    let origins = "[logging]\norigin = 'log'\n";
    let installation = place.installation("pilot", &[&mesh_of(SOMEBODY), LIMITS, origins]);
    let server = installation.serve();
    let claims = ["X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.2", "X-Real-IP: 192.0.2.3"];
    assert_eq!(claims.map(|claim| session(&server, &[claim]).status), [401, 401, 429]);
    server.wait_for_log(&format!("uid:{}", own_user()));
    server.stop().expect(0).never_says("192.0.2.");
}

#[test]
fn a_certificate_counts_from_a_listed_user_without_a_secret_and_from_nobody_else() {
    let place = Place::new();
    for (profile, user, expected) in [
        ("production", own_user(), "200"),
        ("production", SOMEBODY, "400 invalid_request"),
        ("pilot", SOMEBODY, "401 credential_required"),
    ] {
        let tls = format!("{}client_ca = 'clients.pem'\n", mesh_of(user));
        let house = house(&tls);
        let sections = [&*tls, ROLE_MAP, mutual_tls::MANY, mutual_tls::IDENTITY];
        place.configure(&house.installation, profile, &sections);
        let ana = house.clients.issue_client(&ANA, None, 2, far());
        let claim = format!("Client-Cert: :{}:", data_encoding::BASE64.encode(&der(&ana.certificate)));
        let server = house.installation.serve();
        assert_eq!(session(&server, &[&claim]).verdict(), expected, "{profile} {user}");
        server.stop().expect(0);
    }
}

/// Needs root, because nobody else can be two users.
#[test]
fn of_two_users_who_may_connect_only_the_listed_one_speaks_for_others() {
    if own_user() != 0 {
        eprintln!("NOT RUN: {} needs root, to connect as another user", "this test");
        return;
    }
    let place = Place::new();
    let socket = format!("[socket]\ngroup = {NOBODY}\n");
    let sections = [&*socket, &mesh_of(0), ROLE_MAP, LIMITS, IDENTITY];
    let installation = place.installation("production", &sections);
    let server = installation.serve();
    assert_eq!(session(&server, &[&bearer(TOKEN)]).verdict(), "200");
    let curl_as = |group: u32| {
        let mut command = installation.prepare(Command::new("setpriv"));
        let ids = [format!("--reuid={NOBODY}"), format!("--regid={group}"), "--clear-groups".to_owned()];
        command.args(ids).args(["curl", "-sS", "-H", &bearer(TOKEN), "--unix-socket"]).arg(place.path());
        // The installation's directory is root's.
        command.current_dir("/").arg("http://localhost/v1/session");
        finish(command, None)
    };
    let answered = curl_as(NOBODY).expect(0).stdout;
    assert!(answered.contains("Connect through the mesh"), "{answered}");
    // Outside the group there is not even a connection.
    curl_as(SOMEBODY).expect(7);
}

#[test]
fn one_user_cannot_hold_the_connections_of_others_unless_it_is_listed() {
    let place = Place::new();
    for (user, expected) in [(SOMEBODY, "connections_of_an_address"), (own_user(), "")] {
        let installation = place.installation("pilot", &[&mesh_of(user)]);
        let mut command = Command::new("sh");
        // 64 files are kept for the store and the log, and of 40 connections one user may hold a quarter.
        command.args(["-c", "ulimit -n 104; exec \"$0\" serve --config pilot.toml", env!("CARGO_BIN_EXE_pilot")]);
        let server = installation.start(installation.prepare(command));
        let known = |_| {
            let mut wire = Wire::over_unix(UnixStream::connect(place.path()).unwrap());
            wire.request("GET /v1/session HTTP/1.1", &[&bearer(TOKEN)]);
            wire.response().map(|response| (wire, response.status))
        };
        // Each is known by a credential, so that none is closed to make room.
        let held: Vec<_> = (0..12).map_while(known).collect();
        assert!(held.iter().all(|(_, status)| *status == 200));
        if expected.is_empty() {
            assert_eq!(held.len(), 12);
            let answer = session(&server, &[&bearer(TOKEN)]);
            assert_eq!(answer.verdict(), "200");
        } else {
            assert_eq!(held.len(), 10);
            server.wait_for_log(&format!("a limit was reached: {expected}"));
            drop(held);
        }
        server.stop().expect(0);
    }
}
