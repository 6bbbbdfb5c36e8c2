//! Durable transitions over HTTP beside what the disk allows: plain SQLite writing the same rows, with everything that
//! has queued up in one commit, and with one commit for each.

use super::load::Server;
use super::moves::{self, CLIENTS, Directory, Installation, Moves};
use crate::step::{Failure, output_of};

const ROUNDS: usize = 3;
const WARM_UP_SECONDS: u32 = 2;
const ROUND_SECONDS: u32 = 5;
/// Four for each client.
const ITEMS: usize = 256;
const OF_RAW_TARGET: f64 = 0.45;
const OF_SINGLE_TARGET: f64 = 3.0;
const CPU_MICROS_TARGET: f64 = 40.0;

pub fn run() -> Result<(), Failure> {
    moves::build()?;
    let installation = Installation::make("transitions")?;
    let server = installation.start()?;
    let items = installation.prepare(&server, ITEMS)?;
    installation.measure(&server, &items, WARM_UP_SECONDS)?;
    println!("{CLIENTS} clients, {ITEMS} items; load average before: {}", moves::load_average());
    compare(&installation, &server, &items)?;
    println!("resident memory of the service: {:.0} MiB", server.resident_mib()?);
    println!("load average after: {}", moves::load_average());
    Ok(())
}

/// Turn and turn about, so that whatever else the machine does meets all three.
fn compare(installation: &Installation, server: &Server, items: &str) -> Result<(), Failure> {
    Moves::print_head();
    let (mut of_raw, mut of_pilot, mut of_single) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let shown = |what: &str, moves: Moves| {
            moves.print(what, &round.to_string());
            moves
        };
        of_raw.push(shown("raw, grouped", raw("group")?));
        of_pilot.push(shown("pilot", installation.measure(server, items, ROUND_SECONDS)?));
        of_single.push(shown("raw, one each", raw("single")?));
    }
    let (raw, pilot, single) = (Moves::medians(&of_raw), Moves::medians(&of_pilot), Moves::medians(&of_single));
    for (what, moves) in [("raw, grouped", raw), ("pilot", pilot), ("raw, one each", single)] {
        moves.print(what, "median");
    }
    let (of_raw, of_single) = (pilot.per_second / raw.per_second, pilot.per_second / single.per_second);
    println!("\npilot / raw with grouped commits         {of_raw:>6.2}   (to reach: at least {OF_RAW_TARGET})");
    println!("pilot / raw with one commit each         {of_single:>6.2}   (to reach: at least {OF_SINGLE_TARGET})");
    println!(
        "server CPU per transition               {:>5.1} µs (to reach: at most {CPU_MICROS_TARGET})",
        pilot.cpu_micros
    );
    println!("p99                                      {:>6.1} ms", pilot.p99_micros / 1e3);
    Ok(())
}

/// Each on a file of its own that is gone afterwards.
fn raw(mode: &str) -> Result<Moves, Failure> {
    let directory = Directory::make("raw")?;
    let mut command = moves::example("raw_commit");
    let report = output_of(command.arg(directory.path()).args([mode, &ROUND_SECONDS.to_string(), CLIENTS]))?;
    Moves::read(&report, None)
}
