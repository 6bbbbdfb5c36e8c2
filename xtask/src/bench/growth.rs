//! How cost grows with the ledger: the same load, over items spread across the whole store, on a small and on a large
//! one.

use std::fs;

use super::load::Server;
use super::moves::{self, ITEMS, Installation, Moves, ROUND_SECONDS, WARM_UP_SECONDS, compare, print_figure};
use crate::step::{Failure, Stopwatch, output_of, program};

const SMALL_ENTRIES: u64 = 10_000;
const LARGE_ENTRIES: u64 = 5_000_000;
/// The file and its write-ahead log, with room to spare.
const BYTES_PER_ENTRY: u64 = 2_000;

pub(super) fn run(arguments: &[&str]) -> Result<(), Failure> {
    super::options::none(arguments)?;
    moves::build()?;
    let small = Grown::make("small", SMALL_ENTRIES)?;
    let large = Grown::make("large", LARGE_ENTRIES)?;
    println!("load average before: {}", moves::load_average());
    for grown in [&small, &large] {
        grown.measure(WARM_UP_SECONDS)?;
    }
    let medians = compare(&[
        ("small ledger", &|| small.measure(ROUND_SECONDS)),
        ("large ledger", &|| large.measure(ROUND_SECONDS)),
    ])?;
    if let [of_small, of_large] = medians.as_slice() {
        let speed = of_large.per_second / of_small.per_second;
        print_figure("large / small, moves per second", &format!("{speed:.2}"), "at least 0.85");
    }
    for (name, grown) in [("small", &small), ("large", &large)] {
        let (start, resident) = (grown.start_seconds, grown.server.resident_mib()?);
        print_figure(&format!("{name} ledger, start-up"), &format!("{start:.2} s"), "at most 2");
        print_figure(&format!("{name} ledger, resident memory"), &format!("{resident:.0} MiB"), "at most 128");
    }
    println!("load average after: {}", moves::load_average());
    Ok(())
}

/// A service on a ledger of a given size.
struct Grown {
    server: Server,
    start_seconds: f64,
    items: String,
    installation: Installation,
}

impl Grown {
    fn measure(&self, seconds: u32) -> Result<Moves, Failure> {
        self.installation.measure(&self.server, &self.items, seconds)
    }

    fn make(name: &str, entries: u64) -> Result<Grown, Failure> {
        let installation = Installation::make(&format!("growth-{name}"))?;
        // The first start creates the directory and the log key.
        drop(installation.start()?);
        let store = installation.store();
        let directory = store.parent().unwrap_or(&store);
        check_free(&directory.to_string_lossy(), entries * BYTES_PER_ENTRY)?;
        let watch = Stopwatch::start();
        let mut fill = moves::example("fill_store");
        let items = output_of(fill.arg(&store).args([entries.to_string(), ITEMS.to_string()]))?;
        let bytes = fs::metadata(&store).map_or(0, |found| found.len());
        println!("{entries} entries, {} MiB, filled in {:.0} s", bytes >> 20, watch.elapsed().as_secs_f64());
        let watch = Stopwatch::start();
        let server = installation.start()?;
        let start_seconds = watch.elapsed().as_secs_f64();
        Ok(Grown { server, start_seconds, items, installation })
    }
}

fn check_free(directory: &str, needed: u64) -> Result<(), Failure> {
    let report = output_of(&mut program("df", &["--output=avail", "--block-size=1", directory]))?;
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
