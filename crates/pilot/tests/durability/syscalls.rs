//! Errors and deaths at the very calls that make things durable. Every fault that is meant to fire is counted.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};

use crate::durability::client::{AUDITOR, Acknowledged, Answered, Client, Work, installation};
use crate::durability::ledger::{Seen, is_whole};
use crate::durability::power::{traced, whole_trace};
use crate::durability::trace::{self, Deed};
use crate::support::harness::{Installation, Server};

const DURABLE: &str = "pwrite64,fsync,fdatasync,ftruncate,rename,unlink";

/// Far more than a start or a few writes need.
const CALLS_MAX: usize = 1_000;

/// Each takes as long as a write may wait.
const TRIES: usize = 10;

/// `strace` on a running service, once it has taken hold.
struct Tracer {
    child: Child,
    log: std::path::PathBuf,
}

impl Tracer {
    fn attach(installation: &Installation, server: &Server, inject: &str) -> Tracer {
        let log = installation.path("strace.log");
        let mut command = Command::new("strace");
        command.args(["-f", "-p", &server.id().to_string(), "-e", &format!("trace={DURABLE}"), "-e"]);
        command.arg(format!("inject={inject}")).arg("-o").arg(&log);
        Tracer { child: trace::attached(command), log }
    }

    /// Whether it was an injected death that ended the service.
    fn killed(mut self) -> bool {
        self.child.wait().unwrap();
        std::fs::read_to_string(&self.log).unwrap().contains("killed by SIGKILL")
    }

    /// How many faults fired, once the service is gone.
    fn fired(mut self) -> usize {
        self.child.wait().unwrap();
        std::fs::read_to_string(&self.log).unwrap().matches("(INJECTED)").count()
    }
}

fn settle(client: &mut Client, work: &mut Work, acknowledged: &mut Vec<Acknowledged>) -> Option<bool> {
    match client.ask(&work.next) {
        Answered::Done(done, body) => {
            work.advance(&done, &body);
            acknowledged.push(done);
            Some(true)
        }
        Answered::Unavailable => Some(false),
        Answered::Unknown => None,
    }
}

#[test]
fn after_an_error_of_the_disk_nothing_is_written_until_a_restart() {
    for (error, calls, when) in [
        ("EIO", "fsync,fdatasync", 1),
        ("EIO", "fsync,fdatasync", 4),
        ("EIO", "pwrite64", 3),
        ("ENOSPC", "fsync,fdatasync", 2),
    ] {
        let installation = installation();
        let server = installation.serve();
        let (mut client, mut work, mut acknowledged) =
            (Client::connect(server.address), Work::new(0, "eio"), Vec::new());
        (0..5).for_each(|_| assert_eq!(settle(&mut client, &mut work, &mut acknowledged), Some(true)));
        let tracer = Tracer::attach(&installation, &server, &format!("{calls}:error={error}:when={when}"));
        let mut writes = (0..20).map(|_| settle(&mut client, &mut work, &mut acknowledged).unwrap());
        let refused = writes.by_ref().position(|is_done| !is_done);
        assert!(refused.is_some(), "{error} at {calls} {when} was not noticed");
        assert!(writes.all(|is_done| !is_done), "{error} at {calls} {when}: written again without a restart");
        assert_eq!(client.get("/v1/items", AUDITOR).unwrap().status, 200, "reading goes on");
        assert_eq!(server.get("/readyz", &[]).status, 503, "a load balancer is told");
        drop(server);
        // The tracer counts each thread's calls apart, and the one that keeps the checkpoint may have met the fault too.
        assert!(matches!(tracer.fired(), 1..=3), "{error} at {calls} {when}");
        let (server, mut seen) = (installation.serve(), Seen::default());
        seen.read(&server);
        seen.holds(&acknowledged);
        // The write that failed can be asked for again with its key, and is there once.
        assert_eq!(settle(&mut Client::connect(server.address), &mut work, &mut acknowledged), Some(true));
        seen.read(&server);
        seen.holds(&acknowledged);
        assert_eq!(seen.creations(), acknowledged.iter().filter(|done| done.version == 1).count());
        server.stop().expect(0);
        is_whole(&installation);
    }
}

/// The first start of a service, killed at the given call of those that make durable. False when it got through.
///
/// The tracer counts calls for each thread apart, so start and work are two cases: each has one thread that matters.
fn start_until(call: usize) -> bool {
    let installation = installation();
    let mut command = Command::new("strace");
    command.args(["-f", "-o"]).arg(installation.path("strace.log")).args(["-e", &format!("trace={DURABLE}"), "-e"]);
    command.arg(format!("inject={DURABLE}:signal=KILL:when={call}"));
    command.arg(env!("CARGO_BIN_EXE_pilot")).args(["serve", "--config", "pilot.toml"]);
    let mut child = installation.prepare(command).spawn().expect("strace must be installed");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let is_started = !line.is_empty();
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    for id in std::fs::read_to_string(children).unwrap_or_default().split_whitespace() {
        let _ = kill_process(Pid::from_raw(id.parse().unwrap()).unwrap(), Signal::TERM);
    }
    let status = child.wait().unwrap();
    assert!(is_started || status.signal() == Some(9) || status.code() == Some(137), "call {call}: {status:?}");
    is_continued(&installation, Work::new(0, "start"), Vec::new());
    !is_started
}

/// A service at work and up to its end, killed at the given call. False when it got through.
fn work_until(call: usize) -> bool {
    let installation = installation();
    let server = installation.serve();
    let tracer = Tracer::attach(&installation, &server, &format!("{DURABLE}:signal=KILL:when={call}"));
    let (mut client, mut work, mut acknowledged) = (Client::connect(server.address), Work::new(0, "work"), Vec::new());
    let mut is_up = true;
    while is_up && acknowledged.len() < 4 {
        is_up = settle(&mut client, &mut work, &mut acknowledged).is_some();
    }
    drop(client);
    let finished = if is_up { server.stop() } else { server.ends() };
    let fired = tracer.killed();
    assert_eq!(finished.code != 0, fired, "call {call}: {finished:#?}");
    is_continued(&installation, work, acknowledged);
    fired
}

/// The next service takes over what there is: everything acknowledged, and what was under way at most once.
fn is_continued(installation: &Installation, mut work: Work, mut acknowledged: Vec<Acknowledged>) {
    let (server, mut seen) = (installation.serve(), Seen::default());
    seen.read(&server);
    seen.holds(&acknowledged);
    // A disk that others keep busy may make a write wait for too long. It says so, and the key settles it.
    let mut client = Client::connect(server.address);
    let settled =
        (0..TRIES).map(|_| settle(&mut client, &mut work, &mut acknowledged)).find(|told| *told != Some(false));
    assert_eq!(settled, Some(Some(true)), "{}", server.last_lines());
    seen.read(&server);
    seen.holds(&acknowledged);
    assert_eq!(seen.creations(), acknowledged.iter().filter(|done| done.version == 1).count());
    server.stop().expect(0);
    is_whole(installation);
}

#[test]
fn death_at_any_call_of_a_first_start_leaves_something_to_start_from() {
    let calls = (1..CALLS_MAX).take_while(|call| start_until(*call)).count();
    println!("killed at each of {calls} calls of a first start");
    assert!((21..CALLS_MAX - 1).contains(&calls), "a first start has not {calls} calls");
}

#[test]
fn death_at_any_call_that_makes_durable_loses_nothing() {
    let calls = (1..CALLS_MAX).take_while(|call| work_until(*call)).count();
    println!("killed at each of {calls} calls of four writes and a shutdown");
    assert!((31..CALLS_MAX - 1).contains(&calls), "four writes and a shutdown have not {calls} calls");
}

#[test]
fn a_data_directory_that_a_start_makes_is_synced_with_every_directory_above_it_that_is_new() {
    let installation = installation();
    installation.write("pilot.toml", "listen = \"127.0.0.1:0\"\ndata_dir = \"new/place/data\"\n");
    let server = installation.start(traced(&installation));
    let id = server.id();
    server.stop().expect(0);
    let steps = trace::read(&whole_trace(&installation, id), &installation.path(""));
    let first_file = steps.iter().position(|step| matches!(step.deed, Deed::Create(_))).unwrap();
    let mut made = Vec::new();
    for (place, step) in steps.iter().enumerate() {
        if let Deed::MakeDirectory(path) = &step.deed {
            let sync = Deed::Sync(path.parent().unwrap().to_owned());
            let later = &steps[place..first_file];
            assert!(later.iter().any(|step| step.deed == sync), "{} may be lost with everything in it", path.display());
            made.push(path.to_str().unwrap());
        }
    }
    assert_eq!(made, ["new", "new/place", "new/place/data"]);
}
