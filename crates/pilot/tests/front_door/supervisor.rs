//! What `pilot serve` tells a supervisor, on a real datagram socket in the supervisor's place.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::process::Signal;

use crate::support::harness::{Installation, PATIENCE, now};

/// The next message that is not the one before it again.
fn next(socket: &UnixDatagram, before: &str) -> String {
    let mut buffer = [0; 4096];
    let began = now();
    while began.elapsed() < PATIENCE {
        let length = socket.recv(&mut buffer).expect("a message in time");
        let message = String::from_utf8(buffer[..length].to_vec()).unwrap();
        if message != before {
            return message;
        }
    }
    panic!("nothing but {before:?} was said");
}

/// Everything that was said, repetitions left out, by a service that is started, asked once and stopped.
fn told(name: &str, socket: &UnixDatagram, variables: &[(&str, &str)]) -> Vec<String> {
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let installation = Installation::with_ana();
    let variables = [&[("NOTIFY_SOCKET", name)], variables].concat();
    let server = installation.serve_with(&[], &variables);
    let place = server.url();
    let mut told = vec![next(socket, "")];
    while told.last().is_none_or(|message| !message.starts_with("READY=1")) {
        told.push(next(socket, &told[told.len() - 1]));
    }
    assert_eq!(server.get("/readyz", &[]).status, 200);
    if variables.iter().any(|(name, _)| *name == "WATCHDOG_USEC") {
        while told.iter().filter(|message| *message == "WATCHDOG=1").count() < 2 {
            told.push(next(socket, ""));
        }
    }
    server.signal(Signal::TERM);
    while told.last().is_none_or(|message| !message.starts_with("STOPPING=1")) {
        told.push(next(socket, &told[told.len() - 1]));
    }
    server.ends().expect(0);
    told.iter().map(|message| message.replace(&place, "URL")).collect()
}

const STARTING: &str = "STATUS=starting: reading credentials, definitions and the ledger";
const READY: &str = "READY=1\nSTATUS=listening on URL";
const STOPPING: &str = "STOPPING=1\nSTATUS=stopping: requests in progress are finished";

#[test]
fn a_supervisor_is_told_of_the_start_the_readiness_and_the_stop() {
    let installation = Installation::bare();
    let path = installation.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    assert_eq!(told(path.to_str().unwrap(), &socket, &[]), [STARTING, READY, STOPPING]);
}

#[test]
fn a_name_outside_of_the_file_system_is_understood() {
    let name = format!("pilot-front-door-{}", std::process::id());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    assert_eq!(told(&format!("@{name}"), &socket, &[]), [STARTING, READY, STOPPING]);
}

#[test]
fn a_watchdog_hears_from_us_for_as_long_as_we_run() {
    let installation = Installation::bare();
    let path = installation.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let mut told = told(path.to_str().unwrap(), &socket, &[("WATCHDOG_USEC", "20000")]);
    assert!(told.iter().filter(|message| *message == "WATCHDOG=1").count() >= 2, "{told:?}");
    told.retain(|message| message != "WATCHDOG=1");
    assert_eq!(told, [STARTING, READY, STOPPING]);
}

#[test]
fn a_watchdog_over_another_process_or_of_no_known_time_hears_nothing() {
    let installation = Installation::bare();
    for (number, variables) in
        [[("WATCHDOG_PID", "1"), ("WATCHDOG_USEC", "2000")], [("WATCHDOG_PID", ""), ("WATCHDOG_USEC", "soon")]]
            .iter()
            .enumerate()
    {
        let path = installation.path(&format!("notify-{number}"));
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let service = Installation::with_ana();
        let server = service.serve_with(&[], &[&[("NOTIFY_SOCKET", path.to_str().unwrap())], &variables[..]].concat());
        // Enough requests for a watchdog of 2 ms to have been heard.
        for _ in 0..20 {
            assert_eq!(server.get("/readyz", &[]).status, 200);
        }
        let ended = server.stop().expect(0);
        assert_eq!(ended.stderr.contains("WATCHDOG_USEC"), number == 1, "{ended:?}");
        let all = [next(&socket, ""), next(&socket, ""), next(&socket, "")];
        assert!(all[2].starts_with("STOPPING=1"), "{all:?}");
    }
}

#[test]
fn a_supervisor_that_cannot_be_told_does_not_stop_the_service() {
    let installation = Installation::with_ana();
    for name in ["/nowhere/notify", "relative", "@", &format!("/{}", "x".repeat(200))] {
        let server = installation.serve_with(&[], &[("NOTIFY_SOCKET", name), ("WATCHDOG_USEC", "1000")]);
        assert_eq!(server.get("/readyz", &[]).status, 200, "{name}");
        let ended = server.stop().expect(0);
        ended.says(&["NOTIFY_SOCKET is set, but cannot be used"]);
    }
}

#[test]
fn a_witness_tells_its_supervisor_too() {
    let installation = Installation::bare();
    let path = installation.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    installation.pilot(&["init", "."]).expect(0);
    let key = installation.pilot(&["log", "key", "--config", "pilot.toml"]).expect(0).stdout;
    let arguments = ["log", "witness", "--listen", "127.0.0.1:0", "--state", "witness", "--log", key.trim_end()];
    let mut command = installation.command(&arguments);
    command.env("NOTIFY_SOCKET", &path);
    let server = installation.start(command);
    assert_eq!(next(&socket, ""), format!("READY=1\nSTATUS=listening on {}", server.url()));
    server.stop().expect(0);
    assert_eq!(next(&socket, ""), STOPPING);
}
