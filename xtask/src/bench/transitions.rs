//! Durable transitions over HTTP compared with what the disk allows: plain SQLite writing the same rows, with
//! everything that has queued up in one commit, and with one commit for each.

use std::path::Path;

use super::load::Server;
use super::moves::{
    self, CLIENTS, Directory, ITEMS, Installation, Moves, ROUND_SECONDS, Round, WARM_UP_SECONDS, compare, print_figure,
};
use crate::step::{Failure, output_of};

mod database;
mod nodes;

pub(super) fn run(arguments: &[&str]) -> Result<(), Failure> {
    if let ["--store", "postgres"] = arguments {
        return nodes::run();
    }
    let other = super::options::other_program(arguments)?;
    moves::build()?;
    let here = Running::start("transitions", &moves::built())?;
    let other = other.map(|program| Running::start("transitions-other", &program)).transpose()?;
    println!("{CLIENTS} clients, {ITEMS} items; load average before: {}", moves::load_average());
    let (grouped, single): (Round<'_>, Round<'_>) = (&|| raw("group"), &|| raw("single"));
    let measure_here: Round<'_> = &|| here.measure(ROUND_SECONDS);
    let mut kinds = vec![("raw, grouped", grouped), ("pilot", measure_here), ("raw, one each", single)];
    let measure_other = other.as_ref().map(|other| || other.measure(ROUND_SECONDS));
    if let Some(measure) = &measure_other {
        kinds.push(("other pilot", measure));
    }
    let medians = compare(&kinds)?;
    if let [raw, pilot, single, rest @ ..] = medians.as_slice() {
        let of = |other: &Moves| format!("{:.2}", pilot.per_second / other.per_second);
        print_figure("pilot / raw with grouped commits", &of(raw), "at least 0.45");
        print_figure("pilot / raw with one commit each", &of(single), "at least 3");
        print_figure("server CPU per transition", &format!("{:.1} µs", pilot.cpu_micros), "at most 40");
        if let [other] = rest {
            let cpu = format!("{:.2}", pilot.cpu_micros / other.cpu_micros);
            print_figure("pilot / other pilot, moves per second", &of(other), "about 1");
            print_figure("pilot / other pilot, CPU per transition", &cpu, "about 1");
        }
        println!("p99 {:.1} ms", pilot.p99_micros / 1e3);
    }
    println!("resident memory of the service: {:.0} MiB", here.server.resident_mib()?);
    if let Some(other) = &other {
        println!("resident memory of the other:   {:.0} MiB", other.server.resident_mib()?);
    }
    println!("load average after: {}", moves::load_average());
    Ok(())
}

/// A service with items to move, warmed up.
struct Running {
    server: Server,
    items: String,
    installation: Installation,
}

impl Running {
    fn start(name: &str, program: &Path) -> Result<Running, Failure> {
        let installation = Installation::make(name)?;
        let server = installation.start_program(program)?;
        let items = installation.prepare(&server, ITEMS)?;
        let running = Running { server, items, installation };
        running.measure(WARM_UP_SECONDS)?;
        Ok(running)
    }

    fn measure(&self, seconds: u32) -> Result<Moves, Failure> {
        self.installation.measure(&self.server, &self.items, seconds)
    }
}

/// Each on its own file, which is removed afterwards.
fn raw(mode: &str) -> Result<Moves, Failure> {
    let directory = Directory::make("raw")?;
    let mut command = moves::example("raw_commit");
    let report = output_of(command.arg(directory.path()).args([mode, &ROUND_SECONDS.to_string(), CLIENTS]))?;
    Moves::read(&report, None)
}
