//! Durable transitions over HTTP beside what the disk allows: plain SQLite writing the same rows, with everything that
//! has queued up in one commit, and with one commit for each.

use super::moves::{
    self, CLIENTS, Directory, Installation, Moves, ROUND_SECONDS, WARM_UP_SECONDS, compare, print_figure,
};
use crate::step::{Failure, output_of};

/// Four for each client.
const ITEMS: usize = 256;

pub fn run() -> Result<(), Failure> {
    moves::build()?;
    let installation = Installation::make("transitions")?;
    let server = installation.start()?;
    let items = installation.prepare(&server, ITEMS)?;
    installation.measure(&server, &items, WARM_UP_SECONDS)?;
    println!("{CLIENTS} clients, {ITEMS} items; load average before: {}", moves::load_average());
    let medians = compare(&[
        ("raw, grouped", &|| raw("group")),
        ("pilot", &|| installation.measure(&server, &items, ROUND_SECONDS)),
        ("raw, one each", &|| raw("single")),
    ])?;
    if let [raw, pilot, single] = medians.as_slice() {
        let of = |other: &Moves| format!("{:.2}", pilot.per_second / other.per_second);
        print_figure("pilot / raw with grouped commits", &of(raw), "at least 0.45");
        print_figure("pilot / raw with one commit each", &of(single), "at least 3");
        print_figure("server CPU per transition", &format!("{:.1} µs", pilot.cpu_micros), "at most 40");
        println!("p99 {:.1} ms", pilot.p99_micros / 1e3);
    }
    println!("resident memory of the service: {:.0} MiB", server.resident_mib()?);
    println!("load average after: {}", moves::load_average());
    Ok(())
}

/// Each on a file of its own that is gone afterwards.
fn raw(mode: &str) -> Result<Moves, Failure> {
    let directory = Directory::make("raw")?;
    let mut command = moves::example("raw_commit");
    let report = output_of(command.arg(directory.path()).args([mode, &ROUND_SECONDS.to_string(), CLIENTS]))?;
    Moves::read(&report, None)
}
