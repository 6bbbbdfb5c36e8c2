//! A service on a ledger of a given size, and what is measured on it.

use std::fs;
use std::time::Duration;

use super::super::length::round_seconds;
use super::super::load::Server;
use super::super::moves::{self, ITEMS, Installation, WARM_UP_SECONDS};
use super::super::quiet;
use super::super::readers::{self, Readers};
use super::super::rounds::Rounds;
use crate::step::{Failure, Stopwatch, output_of, program, target_dir};

/// The file and its write-ahead log, with room to spare.
const BYTES_PER_ENTRY: u64 = 1_000;
const STARTS: usize = 3;
const READY_WITHIN: Duration = Duration::from_mins(20);
/// How many of the last entries a bundle of a period has.
pub(super) const PERIOD_ENTRIES: u64 = 5_000;

/// One kind of reading.
pub(super) struct Read {
    pub(super) what: &'static str,
    paths: fn(&Grown) -> Vec<String>,
    /// Requests in a round.
    count: usize,
    /// Whether it is drawn together with the others.
    pub(super) is_small: bool,
}

pub(super) const READS: [Read; 5] = [
    Read { what: "one item", paths: |grown| grown.of_items(""), count: 4_000, is_small: true },
    Read { what: "list of 50", paths: |_| vec!["/v1/items?limit=50".into()], count: 500, is_small: true },
    Read { what: "proof of an item", paths: |grown| grown.of_items("/proof"), count: 1_000, is_small: true },
    Read { what: "bundle of an item", paths: Grown::bundles, count: 150, is_small: false },
    Read { what: "bundle of a period", paths: |grown| vec![grown.period.clone()], count: 8, is_small: false },
];

/// Of one kind of reading, round by round.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) p50_micros: Rounds,
    pub(super) cpu_micros: Rounds,
}

pub(super) struct Grown {
    pub(super) entries: u64,
    pub(super) store_mib: u64,
    pub(super) start_seconds: Rounds,
    pub(super) writes: Rounds,
    /// In the order of `READS`.
    pub(super) reads: Vec<Taken>,
    pub(super) resting_mib: f64,
    pub(super) loaded_mib: f64,
    /// None while it is started again.
    server: Option<Server>,
    /// One per line, as the load generator expects them.
    moved: String,
    /// The ids of others, which stay as they are: an item's proof and bundle grow with each move.
    read: Vec<String>,
    period: String,
    auditor: Vec<String>,
    installation: Installation,
}

impl Grown {
    pub(super) fn make(entries: u64) -> Result<Grown, Failure> {
        let installation = Installation::make(&format!("growth-{entries}"))?;
        let auditor = readers::tokens(&installation, "auditor", 1)?;
        // The first start creates the directory and the log key.
        drop(installation.start()?);
        let watch = Stopwatch::start();
        let mut fill = moves::example("fill_store");
        let sample = output_of(fill.arg(installation.store()).args([entries.to_string(), (2 * ITEMS).to_string()]))?;
        let (moved, read) = shared_out(&sample);
        let store_mib = fs::metadata(installation.store()).map_or(0, |found| found.len()) >> 20;
        eprintln!("{entries} entries, {store_mib} MiB, filled in {:.0} s", watch.elapsed().as_secs_f64());
        let server = installation.start()?;
        let period = last_period(&Readers { server: &server, tokens: &auditor }, entries)?;
        Ok(Grown {
            entries,
            store_mib,
            start_seconds: Rounds::default(),
            writes: Rounds::default(),
            reads: READS.iter().map(|_| Taken::default()).collect(),
            resting_mib: f64::NAN,
            loaded_mib: f64::NAN,
            server: Some(server),
            moved,
            read,
            period,
            auditor,
            installation,
        })
    }

    /// Several times; the last one keeps running.
    pub(super) fn start_again(&mut self) -> Result<(), Failure> {
        for _ in 0..STARTS {
            self.server = None;
            let watch = Stopwatch::start();
            self.server = Some(self.installation.start()?);
            self.start_seconds.add(watch.elapsed().as_secs_f64());
        }
        self.resting_mib = self.server()?.resident_mib()?;
        Ok(())
    }

    fn server(&self) -> Result<&Server, Failure> {
        self.server.as_ref().ok_or_else(|| Failure::environment("the service did not start again"))
    }

    fn readers(&self) -> Result<Readers<'_>, Failure> {
        Ok(Readers { server: self.server()?, tokens: &self.auditor })
    }

    pub(super) fn warm_up(&mut self) -> Result<(), Failure> {
        self.installation.measure(self.server()?, &self.moved, WARM_UP_SECONDS)?;
        let readers = self.readers()?;
        for read in &READS {
            readers.ask(1, read.count / 8 + 1, &(read.paths)(self))?;
        }
        Ok(())
    }

    /// Nobody has signed what was filled in. Until the service has done so, it refuses writes: for minutes, if there are
    /// tens of millions of entries.
    pub(super) fn wait_until_ready(&self) -> Result<(), Failure> {
        let readers = self.readers()?;
        let watch = Stopwatch::start();
        loop {
            match readers.show("/readyz") {
                Err(failure) if watch.elapsed() >= READY_WITHIN => return Err(failure),
                Err(_) => std::thread::sleep(Duration::from_secs(5)),
                Ok(_) => return Ok(()),
            }
        }
    }

    pub(super) fn measure_writes(&mut self) -> Result<(), Failure> {
        let server = self.server()?;
        let moves = quiet::undisturbed(|| self.installation.measure(server, &self.moved, round_seconds()))?;
        self.writes.add(moves.per_second);
        Ok(())
    }

    /// By its number in `READS`.
    pub(super) fn measure_reads(&mut self, number: usize) -> Result<(), Failure> {
        let Some(read) = READS.get(number) else { return Ok(()) };
        let (readers, paths) = (self.readers()?, (read.paths)(self));
        let answers = quiet::undisturbed(|| readers.ask(1, read.count, &paths))?;
        if let Some(taken) = self.reads.get_mut(number) {
            taken.p50_micros.add(answers.p50_micros);
            taken.cpu_micros.add(answers.cpu_micros);
        }
        Ok(())
    }

    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.loaded_mib = self.server()?.resident_mib()?;
        Ok(())
    }

    /// For the plots, whose axes need no more precision than this.
    pub(super) fn entries_f64(&self) -> f64 {
        f64::from(u32::try_from(self.entries).unwrap_or(u32::MAX))
    }

    fn of_items(&self, what: &str) -> Vec<String> {
        self.read.iter().map(|id| format!("/v1/items/{id}{what}")).collect()
    }

    fn bundles(&self) -> Vec<String> {
        self.read.iter().map(|id| format!("/v1/evidence?item={id}")).collect()
    }
}

/// Every other item of a sample to move, and the ids of the rest.
fn shared_out(sample: &str) -> (String, Vec<String>) {
    let moved: Vec<_> = sample.lines().step_by(2).collect();
    let id = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    (moved.join("\n"), sample.lines().skip(1).step_by(2).map(id).collect())
}

/// The path of a bundle with the last entries, which does not grow while there are more.
fn last_period(readers: &Readers<'_>, entries: u64) -> Result<String, Failure> {
    let at = |entry: u64| {
        let page = readers.show(&format!("/v1/events?limit=1&after={entry}"))?;
        let at = page.split("\"at\":\"").nth(1).and_then(|rest| rest.split('"').next());
        at.map(str::to_owned).ok_or_else(|| Failure::environment(format!("entry {entry} has no time:\n{page}")))
    };
    let (from, to) = (at(entries.saturating_sub(PERIOD_ENTRIES + 1))?, at(entries.saturating_sub(1))?);
    Ok(format!("/v1/evidence?from={from}&to={to}"))
}

/// Whether there is room for so many entries.
pub(super) fn check_free(entries: u64) -> Result<(), Failure> {
    let (directory, needed) = (target_dir(), entries * BYTES_PER_ENTRY);
    let directory = directory.to_string_lossy();
    let report = output_of(&mut program("df", &["--output=avail", "--block-size=1", &directory]))?;
    let free = report.lines().nth(1).and_then(|line| line.trim().parse::<u64>().ok());
    match free {
        Some(free) if free < needed => Err(Failure::environment(format!(
            "{directory}: {} MiB are free, and about {} MiB are needed",
            free >> 20,
            needed >> 20
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_item_is_both_moved_and_read() {
        let (moved, read) = shared_out("a 1\nb 2\nc 3\nd 4\n");
        assert_eq!((moved.as_str(), read), ("a 1\nc 3", vec!["b".to_owned(), "d".to_owned()]));
    }
}
