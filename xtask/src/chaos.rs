//! `cargo xtask chaos`: the cluster of `ha up`, under load, with one fault after the other. What was acknowledged must be
//! in the ledger, what was shown must stay true, and writes must come back.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use crate::ha::network::{DATABASES, NODES, database_name, node_name};
use crate::ha::place::Place;
use crate::ha::process::{pause, wait_until};
use crate::ha::{self, database};
use crate::step::{Failure, Stopwatch, cargo, run_timed, target_dir};

mod duties;
mod faults;
mod field;
mod load;
mod machine;
mod table;

use faults::{Expected, FAULTS, Fault, Struck};
use field::Field;
use load::{Figures, Load};
use table::{Row, table};

const WRITERS: usize = 12;
/// Credentials to revoke in each round.
const REVOKED: usize = 2;
/// Until another member is primary. Promised is less; what is slower is measured and reported.
const FAILOVER_SECONDS: u64 = 60;
const BACK_SECONDS: u64 = 90;
/// How long a fault lasts that is expected to change little.
const OBSERVED_MILLIS: u64 = 15_000;
/// A node that acknowledged something within this time acknowledges writes.
const RECENT_MILLIS: u64 = 1_500;

const ABOUT: &str = "\
A primary that was stopped or cut off, or whose Patroni was, is killed before it may go on, as a watchdog's reset would.
Namespaces have no watchdog, and with Patroni 3.0 such a primary can take the lead back from its successor, whose entries
are then lost; see docs/operate/postgres-ha.md.";

pub(crate) fn command(arguments: &[&str]) -> Result<(), Failure> {
    let (has_watchdog, arguments) = match arguments {
        ["--without-watchdog", rest @ ..] => (false, rest),
        all => (true, all),
    };
    let faults = chosen(arguments)?;
    run_timed("build", &mut cargo(&["build", "--package", "pilot-server", "--example", "chaos_load"]))?;
    let names = |kind: &str, count: usize| (1..=count).map(|number| format!("{kind}{number}")).collect::<Vec<_>>();
    let guests = faults.len() * REVOKED;
    let (place, guard) = ha::up(&[names("writer", WRITERS), names("guest", guests)].concat())?;
    eprintln!("{}", if has_watchdog { ABOUT } else { "Nobody plays the watchdog: old primaries go on as they are." });
    let load = Load::start(&place, WRITERS, guests)?;
    let mut run = Run { field: Field { place: &place }, load, rows: Vec::new(), end: Figures::new(), has_watchdog };
    let outcome = run.all(&faults);
    println!("\n{}", table(&run.rows));
    println!("{}", summary(&run.end));
    let outcome = outcome.and_then(|()| run.verdict());
    if outcome.is_err() {
        let kept = keep_logs(&place)?;
        eprintln!("logs: {}", kept.display());
    }
    drop(run);
    drop(guard);
    outcome
}

/// `[ROUNDS] [WORDS]`: so many rounds, of the faults whose names contain one of the words, in their order.
fn chosen<'f>(arguments: &[&str]) -> Result<Vec<&'f Fault>, Failure> {
    let (rounds, words) = match arguments {
        [first, rest @ ..] if first.parse::<usize>().is_ok() => (first.parse().ok(), rest),
        words => (None, words),
    };
    let is_meant = |fault: &&Fault| words.is_empty() || words.iter().any(|word| fault.name.contains(word));
    let faults: Vec<&Fault> = FAULTS.iter().filter(is_meant).collect();
    let rounds = rounds.unwrap_or(faults.len());
    if faults.is_empty() || rounds == 0 {
        let names = FAULTS.map(|fault| fault.name).join("\n  ");
        return Err(Failure::usage(format!(
            "`cargo xtask chaos [--without-watchdog] [ROUNDS] [WORDS]`; the faults are\n  {names}"
        )));
    }
    Ok(faults.into_iter().cycle().take(rounds).collect())
}

struct Run<'p> {
    field: Field<'p>,
    load: Load,
    rows: Vec<Row>,
    /// What the load found when everything was over.
    end: Figures,
    /// Whether old primaries are reset before they may go on.
    has_watchdog: bool,
}

impl Run<'_> {
    fn all(&mut self, faults: &[&Fault]) -> Result<(), Failure> {
        duties::watch(&self.field)?;
        self.until_steady(&[])?.ok_or_else(|| Failure::environment("the load does not get going"))?;
        for (number, fault) in (1..).zip(faults) {
            eprintln!("\nround {number} of {}: {}", faults.len(), fault.name);
            let mut row = Row { fault: fault.name.to_owned(), ..Row::default() };
            let done = self.round(fault, &mut row);
            eprintln!("  {row:?}");
            self.rows.push(row);
            done?;
        }
        self.end = self.load.ask("end")?;
        self.stop_at_violations()?;
        duties::check(&self.field)
    }

    fn verdict(&self) -> Result<(), Failure> {
        let bad: Vec<&str> = self.rows.iter().filter(|row| !row.is_good()).map(|row| row.fault.as_str()).collect();
        if bad.is_empty() { Ok(()) } else { Err(Failure::refuted(format!("not as it should be: {}", bad.join("; ")))) }
    }

    fn round(&mut self, fault: &Fault, row: &mut Row) -> Result<(), Failure> {
        let before = field::primary()?;
        self.load.ask("revoke")?;
        self.load.ask("mark")?;
        let struck = match (fault.strike)(&self.field) {
            Ok(struck) => struck,
            Err(failure) => {
                eprintln!("  {failure}");
                self.field.mend()?;
                self.field.until_whole()?;
                self.until_steady(&[])?;
                return Ok(());
            }
        };
        row.fired = true;
        row.proof.clone_from(&struck.proof);
        eprintln!("  struck: {}", struck.proof);
        self.observe(&struck, row)?;
        self.load.ask("revoke")?;
        // Long enough to try the credential at nodes that may not have heard of it.
        pause(3_000);
        self.count(row)?;
        stop_if_a_node_ended(&struck)?;
        self.stop_at_violations()?;
        row.is_from_mending = matches!(struck.expected, Expected::Silence);
        if row.is_from_mending {
            self.load.ask("mark")?;
        }
        self.mend(&struck)?;
        if row.is_from_mending {
            row.back = self.until_steady(&[])?;
        }
        for member in self.field.until_whole()? {
            let _ = write!(row.proof, "; db{member} copied again");
        }
        if self.until_steady(&[])?.is_none() {
            return Err(Failure::refuted("the cluster is whole, but a node does not acknowledge writes"));
        }
        self.conclude(row, before, &struck)
    }

    /// What the fault does to writes, as long as it lasts.
    fn observe(&mut self, struck: &Struck, row: &mut Row) -> Result<(), Failure> {
        match struck.expected {
            Expected::Failover { from } => {
                let promoted = wait_until("another primary", FAILOVER_SECONDS, || {
                    database::primary().is_some_and(|primary| primary != from)
                });
                match promoted {
                    Ok(after) => eprintln!("  another primary after {:.1} s", after.as_secs_f64()),
                    Err(failure) => eprintln!("  {failure}"),
                }
                row.back = self.until_steady(&struck.deaf)?;
            }
            Expected::Writes => {
                pause(OBSERVED_MILLIS);
                row.back = self.until_steady(&struck.deaf)?;
            }
            Expected::Silence => {
                // What was on its way when the fault came may still be acknowledged.
                pause(1_000);
                self.load.ask("silence")?;
                pause(OBSERVED_MILLIS);
                self.load.ask("noise")?;
            }
        }
        Ok(())
    }

    /// Waits until these nodes' absence aside all acknowledge writes, for four seconds on end. Gives the longest pause
    /// since the mark, in seconds; nothing, if they do not.
    fn until_steady(&mut self, deaf: &[usize]) -> Result<Option<f64>, Failure> {
        let watch = Stopwatch::start();
        let mut steady = 0;
        while watch.elapsed().as_secs() < BACK_SECONDS {
            let figures = self.load.ask("round")?;
            steady = if most(&figures, "since", deaf) < RECENT_MILLIS { steady + 1 } else { 0 };
            if steady >= 8 {
                let pause = u32::try_from(most(&figures, "pause", deaf)).unwrap_or(u32::MAX);
                return Ok(Some(f64::from(pause) / 1_000.0));
            }
            pause(500);
        }
        let figures = self.load.ask("round")?;
        eprintln!("  writes are not back: {figures:?}");
        Ok(None)
    }

    fn count(&mut self, row: &mut Row) -> Result<(), Failure> {
        let figures = self.load.ask("round")?;
        let figure = |name: &str| figures.get(name).copied().unwrap_or(0);
        row.acknowledged += figure("acknowledged");
        row.unavailable += figure("unavailable");
        row.unknown += figure("unknown");
        Ok(())
    }

    /// Plays the watchdog first.
    fn mend(&self, struck: &Struck) -> Result<(), Failure> {
        for member in &struck.reset {
            let state = if self.field.has_stood_down(*member) { "has stood down" } else { "has not stood down" };
            if self.has_watchdog {
                eprintln!("  db{member} {state}; it is reset, as by a watchdog");
                field::reset(*member)?;
            } else {
                eprintln!("  db{member} {state}; it goes on");
            }
        }
        self.field.mend()
    }

    fn conclude(&mut self, row: &mut Row, before: usize, struck: &Struck) -> Result<(), Failure> {
        let after = field::primary()?;
        let (before, now) = (database_name(before), database_name(after));
        row.primary = if before == now { now } else { format!("{before} → {now}") };
        if let Some(visible) = &struck.visible {
            let survived = self.field.has_entry(after, visible);
            row.proof += if survived { ", kept" } else { ", undone by the failover" };
        }
        let figures = self.load.ask("check")?;
        let lost_before: u64 = self.rows.iter().map(|row| row.lost).sum();
        row.lost = figures.get("lost").copied().unwrap_or(0).saturating_sub(lost_before);
        eprintln!("  checked: {figures:?}");
        duties::check(&self.field)?;
        self.stop_at_violations()
    }

    fn stop_at_violations(&mut self) -> Result<(), Failure> {
        self.load.ask("round")?;
        if self.load.violations.is_empty() {
            return Ok(());
        }
        for violation in self.load.violations.iter().take(20) {
            eprintln!("  VIOLATION {violation}");
        }
        for node in NODES {
            let log = fs::read_to_string(self.field.place.of(&node_name(node), "pilot.log")).unwrap_or_default();
            // Not the line that every request has.
            let lines: Vec<&str> = log.lines().filter(|line| !line.contains("request answered")).collect();
            let last = lines.get(lines.len().saturating_sub(8)..).unwrap_or_default();
            eprintln!("node{node}:\n  {}", last.join("\n  "));
        }
        let count = self.load.violations.len();
        Err(Failure::refuted(format!("{count} violations, see above; the first: {}", self.load.violations.join("; "))))
    }
}

fn stop_if_a_node_ended(struck: &Struck) -> Result<(), Failure> {
    let is_gone = |node: &usize| !struck.deaf.contains(node) && machine::running(&node_name(*node), "pilot").is_empty();
    match NODES.into_iter().find(is_gone) {
        Some(node) => Err(Failure::refuted(format!("node{node} ended by itself; see its log"))),
        None => Ok(()),
    }
}

/// The whole run, with what was acknowledged between the rounds.
fn summary(end: &Figures) -> String {
    if end.is_empty() {
        return "the run did not get to its end".to_owned();
    }
    let figure = |name: &str| end.get(name).copied().unwrap_or(0);
    format!(
        "the whole run: {} entries, {} acknowledged, {} lost; {} events shown by feeds, {} checkpoints served and {} \
         credentials revoked, all compared with the ledger",
        figure("size"),
        figure("acknowledged"),
        figure("lost"),
        figure("shown"),
        figure("checkpoints"),
        figure("revoked")
    )
}

/// The largest figure of this name of any node but these.
fn most(figures: &Figures, name: &str, but: &[usize]) -> u64 {
    let counted = NODES.iter().filter(|node| !but.contains(node));
    counted.filter_map(|node| figures.get(&format!("{name}{node}"))).copied().max().unwrap_or(u64::MAX)
}

/// The cluster's own files go with it.
fn keep_logs(place: &Place) -> Result<PathBuf, Failure> {
    let kept = target_dir().join("chaos");
    let failed = |error: std::io::Error| Failure::environment(format!("{}: {error}", kept.display()));
    let _ = fs::remove_dir_all(&kept);
    fs::create_dir_all(&kept).map_err(failed)?;
    let machines = DATABASES.map(database_name).into_iter().chain(NODES.map(node_name)).chain([String::new()]);
    for machine in machines {
        for log in ["etcd.log", "patroni.log", "pilot.log", "load.log"] {
            let from = place.of(&machine, log);
            if from.is_file() {
                fs::copy(&from, kept.join(format!("{machine}-{log}"))).map_err(failed)?;
            }
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(arguments: &[&str]) -> Vec<&'static str> {
        chosen(arguments).map(|faults| faults.iter().map(|fault| fault.name).collect()).unwrap_or_default()
    }

    #[test]
    fn without_arguments_every_fault_happens_once() {
        assert_eq!(names(&[]), FAULTS.map(|fault| fault.name));
    }

    #[test]
    fn rounds_and_words_choose_among_the_faults() {
        assert_eq!(names(&["2"]), ["primary killed", "primary stopped"]);
        assert_eq!(names(&["etcd"]), ["etcd minority killed", "etcd majority killed"]);
        assert_eq!(names(&["3", "etcd"]), ["etcd minority killed", "etcd majority killed", "etcd minority killed"]);
        assert!(chosen(&["no such fault"]).is_err() && chosen(&["0"]).is_err());
    }

    #[test]
    fn nodes_that_cannot_answer_are_not_waited_for() {
        let figures = Figures::from([("since1".into(), 3), ("since2".into(), 9000), ("since3".into(), 5)]);
        assert_eq!(most(&figures, "since", &[2]), 5);
        assert_eq!(most(&figures, "since", &[]), 9000);
        assert_eq!(most(&Figures::new(), "since", &[]), u64::MAX);
    }
}
