//! How cost grows with the ledger: the same load, over items spread across the whole store, on a small and on a large
//! one.

use std::fs;

use super::load::Server;
use super::moves::{self, Installation, Moves};
use crate::step::{Failure, Stopwatch, output_of, program};

const SMALL_ENTRIES: u64 = 10_000;
const LARGE_ENTRIES: u64 = 5_000_000;
/// The file, and the write-ahead log beside it, with room to spare.
const BYTES_PER_ENTRY: u64 = 2_000;
const ITEMS: usize = 256;
const ROUNDS: usize = 3;
const WARM_UP_SECONDS: u32 = 2;
const ROUND_SECONDS: u32 = 5;
const SPEED_TARGET: f64 = 0.85;
const START_SECONDS_TARGET: f64 = 2.0;
const RESIDENT_MIB_TARGET: f64 = 128.0;

pub fn run() -> Result<(), Failure> {
    moves::build()?;
    let small = Grown::make("small", SMALL_ENTRIES)?;
    let large = Grown::make("large", LARGE_ENTRIES)?;
    println!("load average before: {}", moves::load_average());
    for grown in [&small, &large] {
        grown.installation.measure(&grown.server, &grown.items, WARM_UP_SECONDS)?;
    }
    Moves::print_head();
    let (mut of_small, mut of_large) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        for (name, grown, all) in [("small ledger", &small, &mut of_small), ("large ledger", &large, &mut of_large)] {
            let moves = grown.installation.measure(&grown.server, &grown.items, ROUND_SECONDS)?;
            moves.print(name, &round.to_string());
            all.push(moves);
        }
    }
    let speed = Moves::medians(&of_large).per_second / Moves::medians(&of_small).per_second;
    println!("\nlarge / small, moves per second   {speed:>7.2}     (to reach: at least {SPEED_TARGET})");
    for (name, grown) in [("small", &small), ("large", &large)] {
        let (start, resident) = (grown.start_seconds, grown.server.resident_mib()?);
        println!("{name} ledger, start-up             {start:>7.2} s   (to reach: at most {START_SECONDS_TARGET})");
        println!("{name} ledger, resident memory      {resident:>7.0} MiB (to reach: at most {RESIDENT_MIB_TARGET})");
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
    fn make(name: &str, entries: u64) -> Result<Grown, Failure> {
        let installation = Installation::make(&format!("growth-{name}"))?;
        // The first start makes the directory and the key that signs the log.
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
