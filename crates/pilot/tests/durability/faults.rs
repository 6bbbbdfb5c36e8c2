//! Every call to the disk fails, as SQLite tests itself: the nth one, once or from then on, whatever it is, while the
//! service starts, works, stops and recovers; it is ended as an operator would, or killed; and then the power fails.

use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pilot_testing::Dice;
use rustix::process::Signal;

use crate::durability::client::{AUDITOR, Acknowledged, Answered, Client, Work, installation};
use crate::durability::disk::SmallDisk;
use crate::durability::kill::rounds;
use crate::durability::ledger::{Seen, is_whole};
use crate::durability::shim::{
    CLOSE, EVERYTHING, Fault, Kind, OPEN, READ, RENAME, SYNC, Shim, TRUNCATE, UNLINK, WRITE,
};
use crate::support::harness::{Finished, Installation, PATIENCE, Server, finish, now};

/// On a disk this small the log is carried over every few dozen writes.
const DISK: &str = "8m";
const WRITES: usize = 60;
/// Cases of each kind in a usual run. `PILOT_LONG` gives another number; every call there is, is some 500.
const CASES: usize = 12;

/// A service on a small disk of its own, and what people have been told by it.
struct Stage {
    shim: Shim,
    work: Work,
    acknowledged: Vec<Acknowledged>,
    disk: SmallDisk,
    installation: Installation,
}

impl Stage {
    fn new() -> Stage {
        let installation = installation();
        let disk = SmallDisk::mount(&installation, DISK);
        let shim = Shim::new(&installation);
        Stage { shim, work: Work::new(0, "fault"), acknowledged: Vec::new(), disk, installation }
    }

    /// Until this many are done, or one is not. Whether the service is still there.
    fn work(&mut self, server: &Server, writes: usize) -> bool {
        let mut client = Client::connect(server.address);
        for _ in 0..writes {
            match client.ask(&self.work.next) {
                Answered::Done(done, body) => {
                    self.work.advance(&done, &body);
                    self.acknowledged.push(done);
                }
                Answered::Unavailable => {}
                Answered::Unknown => return false,
            }
        }
        true
    }

    /// Whether one more write is acknowledged. On a busy machine it may have to be sent again.
    fn goes_on(&mut self, server: &Server) -> bool {
        let (before, began) = (self.acknowledged.len(), now());
        while self.acknowledged.len() == before && began.elapsed() < PATIENCE {
            if !self.work(server, 1) {
                return false;
            }
        }
        self.acknowledged.len() == before + 1
    }

    /// What was acknowledged is there; what was under way is there once at the most; and the service goes on.
    fn must_continue(mut self, case: &str) {
        let (server, mut seen) = (self.installation.serve(), Seen::default());
        seen.read(&server);
        seen.holds(&self.acknowledged);
        assert!(self.goes_on(&server), "{case}: the service does not go on:\n{}", server.last_lines());
        seen.read(&server);
        seen.holds(&self.acknowledged);
        let creations = self.acknowledged.iter().filter(|done| done.version == 1).count();
        assert_eq!(seen.creations(), creations, "{case}: something was created twice, or by nobody");
        server.stop().expect(0);
        is_whole(&self.installation);
        drop(self.disk);
    }
}

/// The end of a service that may have met a fault.
fn end(server: Server, by: Signal) -> Finished {
    server.signal(by);
    server.ends()
}

const NOTICED: &str = "writing stops until the service is restarted";

#[derive(Debug, Clone, Copy)]
struct Case {
    fault: Fault,
    by: Signal,
    /// Started again before the power fails, on what the machine still shows of the disk.
    is_restarted: bool,
}

/// How many calls there were, and whether one of them failed.
struct Met {
    calls: i64,
    is_fired: bool,
}

/// A service at work, with a fault on its way. How many calls there are depends on how threads take turns, so the last
/// ones may not come to pass.
fn work_with(case: Case) -> Met {
    let name = format!("{case:?}");
    let mut stage = Stage::new();
    let server = stage.shim.serve(&stage.installation);
    stage.work(&server, 10);
    stage.shim.arm(case.fault);
    // A page that cannot be read is taken for damage by SQLite, and damage ends the service by itself. Nothing else does.
    let mut is_up = stage.work(&server, WRITES);
    if is_up {
        let mut client = Client::connect(server.address);
        for path in ["/v1/items", "/v1/log/checkpoint", "/readyz"] {
            let status = client.get(path, AUDITOR).map(|response| response.status);
            assert!(matches!(status, Some(200 | 503) | None), "{name}: {path} was answered {status:?}");
            is_up &= status.is_some();
        }
    }
    let ended = if is_up { end(server, case.by) } else { server.ends() };
    let (calls, fired, op) = (stage.shim.calls(), stage.shim.fired(), stage.shim.fired_op());
    let is_noticed = ended.stderr.contains(NOTICED);
    assert!(is_up || case.fault.kind == Kind::Kills || is_noticed && ended.code == 3, "{name}: {ended:#?}");
    if case.fault.kind == Kind::Fails && fired > 0 {
        // A sync or a write that failed is never passed over. Who is killed may have had no time to say so.
        let must_notice = op & (SYNC | WRITE) != 0 && case.by == Signal::TERM;
        assert!(is_noticed || !must_notice, "{name}: {op} failed unnoticed: {ended:#?}");
        assert!(!(is_noticed && stage.shim.has_lost_the_log()), "{name}: the log was deleted: {ended:#?}");
        if case.by == Signal::TERM {
            assert_eq!(ended.code, if is_noticed { 3 } else { 0 }, "{name}: {ended:#?}");
        }
    }
    stage.shim.disarm();
    if case.is_restarted {
        let server = stage.shim.serve(&stage.installation);
        stage.work(&server, 3);
        end(server, Signal::KILL);
    }
    if case.fault.at > 0 {
        stage.shim.cut_power();
        stage.must_continue(&name);
    }
    Met { calls, is_fired: fired > 0 }
}

/// Runs cases on two threads, and counts the faults that fired: a test in which nothing fails proves nothing.
fn each<C: Copy + Send + Sync + std::fmt::Debug>(cases: &[C], run: impl Fn(C) -> Met + Sync) {
    let (next, fired) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            println!("{case:?}");
            fired.fetch_add(usize::from(run(*case).is_fired), Ordering::Relaxed);
        }
    };
    thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    let fired = fired.into_inner();
    println!("{fired} of {} faults fired", cases.len());
    assert!(fired * 4 >= cases.len() * 3, "of {} faults only {fired} fired", cases.len());
}

/// So many of the calls there are, spread over all of them, others each time.
fn some_of(calls: i64, many: usize, dice: &mut Dice) -> Vec<i64> {
    let all = usize::try_from(calls).unwrap();
    if many >= all {
        return (1..=calls).collect();
    }
    (0..many).map(|part| i64::try_from(part * all / many + dice.below(all / many) + 1).unwrap()).collect()
}

fn dice() -> Dice {
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    Dice::new(seed)
}

const NO_FAULT: Fault = Fault { kind: Kind::Fails, ops: EVERYTHING, at: 0, is_lasting: false };

#[test]
fn whatever_fails_while_the_service_works_and_stops_nothing_acknowledged_is_lost() {
    let mut dice = dice();
    let mut cases = Vec::new();
    // Syncs and writes most often: theirs are the faults that lose something.
    for (ops, share) in [(SYNC, 2), (WRITE, 2), (EVERYTHING, 2), (READ | OPEN | CLOSE | RENAME | UNLINK | TRUNCATE, 1)]
    {
        let counted = Case { fault: Fault { ops, ..NO_FAULT }, by: Signal::TERM, is_restarted: false };
        let calls = work_with(counted).calls;
        println!("{calls} calls of kind {ops}");
        for at in some_of(calls, rounds(share * CASES / 4), &mut dice) {
            let is_lasting = dice.below(2) == 0;
            let by = if dice.below(4) == 0 { Signal::KILL } else { Signal::TERM };
            let fault = Fault { kind: Kind::Fails, ops, at, is_lasting };
            cases.push(Case { fault, by, is_restarted: dice.below(2) == 0 });
        }
    }
    each(&cases, work_with);
}

#[test]
fn a_disk_that_is_full_or_writes_half_or_kills_at_any_call_loses_nothing() {
    let mut dice = dice();
    let calls = work_with(Case { fault: NO_FAULT, by: Signal::TERM, is_restarted: false }).calls;
    let mut cases = Vec::new();
    for (kind, ops) in [(Kind::Full, WRITE | SYNC), (Kind::Short, WRITE), (Kind::Kills, EVERYTHING)] {
        for at in some_of(calls / 3, rounds(CASES / 3), &mut dice) {
            let fault = Fault { kind, ops, at, is_lasting: kind == Kind::Full && dice.below(2) == 0 };
            cases.push(Case { fault, by: Signal::TERM, is_restarted: dice.below(2) == 0 });
        }
    }
    each(&cases, work_with);
}

/// A start that meets a fault, after a crash or as the very first: it may be refused, and then the next one succeeds.
fn start_with(fault: Fault, is_first: bool) -> Met {
    let mut stage = Stage::new();
    if !is_first {
        let server = stage.shim.serve(&stage.installation);
        stage.work(&server, 30);
        end(server, Signal::KILL);
    }
    stage.shim.arm(fault);
    let name = format!("{fault:?}, first: {is_first}");
    let mut command = stage.shim.command(&stage.installation, &["serve", "--config", "pilot.toml"]);
    // As many calls as a start and a stop have: it is told to stop before it has begun to work.
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut printed = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut printed, &mut line).unwrap();
    if !line.is_empty() {
        let id = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process(id, Signal::TERM).unwrap();
    }
    let ended = child.wait_with_output().unwrap();
    let (code, stderr) = (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned());
    assert!(ended.status.signal().is_none(), "{name}: {:?}: {stderr}", ended.status);
    assert!(matches!(code, Some(0 | 2 | 3)), "{name}: {code:?}: {stderr}");
    let is_noticed = stderr.contains(NOTICED);
    assert!(!(is_noticed && code == Some(0)), "{name}: a failed disk, and all is well: {stderr}");
    let met = Met { calls: stage.shim.calls(), is_fired: stage.shim.fired() > 0 };
    stage.shim.disarm();
    if fault.at > 0 {
        stage.shim.cut_power();
        stage.must_continue(&name);
    }
    met
}

#[test]
fn whatever_fails_while_a_service_starts_and_recovers_the_next_start_has_everything() {
    let mut dice = dice();
    for is_first in [true, false] {
        let calls = start_with(NO_FAULT, is_first).calls;
        let cases: Vec<_> = some_of(calls, rounds(CASES), &mut dice)
            .into_iter()
            .map(|at| Fault { at, is_lasting: dice.below(2) == 0, ..NO_FAULT })
            .collect();
        println!("{calls} calls of a start and a stop, first: {is_first}");
        each(&cases, |fault| start_with(fault, is_first));
    }
}

#[test]
fn commands_that_meet_a_fault_on_a_store_that_crashed_leave_everything_to_the_next_start() {
    let mut dice = dice();
    for arguments in [&["log", "fsck"][..], &["backup", "--out", "copy"]] {
        let run = |fault: Fault| {
            let mut stage = Stage::new();
            let server = stage.shim.serve(&stage.installation);
            stage.work(&server, 30);
            end(server, Signal::KILL);
            stage.shim.arm(fault);
            let ended = finish(stage.shim.command(&stage.installation, arguments), None);
            assert!(matches!(ended.code, 0..=3), "{arguments:?} {fault:?}: {ended:#?}");
            let calls = stage.shim.calls();
            stage.shim.disarm();
            if fault.at > 0 {
                stage.shim.cut_power();
                stage.must_continue(&format!("{arguments:?} {fault:?}"));
            }
            calls
        };
        let calls = run(NO_FAULT);
        for at in some_of(calls, rounds(2), &mut dice) {
            run(Fault { at, ..NO_FAULT });
        }
    }
}
