//! How fast the service builds an evidence bundle of a whole ledger, and how long `pilot evidence verify` takes for it.

use std::process::Command;

use super::moves::{self, Installation, pilot, print_figure};
use crate::step::{Failure, Stopwatch, output_of};

const ENTRIES: u64 = 400_000;
const ROUNDS: usize = 3;

pub(super) fn run(arguments: &[&str]) -> Result<(), Failure> {
    super::options::none(arguments)?;
    moves::build()?;
    let installation = Installation::make("export")?;
    let token = installation.auditor()?;
    // The first start creates the directory and the log key.
    drop(installation.start()?);
    let mut fill = moves::example("fill_store");
    output_of(fill.arg(installation.store()).args([&ENTRIES.to_string(), "1"]))?;
    let server = installation.start()?;
    let count = f64::from(u32::try_from(ENTRIES).unwrap_or(u32::MAX));
    println!("load average before: {}", moves::load_average());
    println!("round   seconds   entries/s   server CPU s   entries/CPU s   resident MiB");
    let mut best: f64 = 0.0;
    let bundle = installation.path().join("all.zip");
    for round in 1..=ROUNDS {
        let _ = std::fs::remove_file(&bundle);
        let mut export =
            pilot(&["evidence", "export", "--from", "1970-01-01T00:00:00Z", "--to", "2100-01-01T00:00:00Z"]);
        export.arg("--out").arg(&bundle).arg("--token-file").arg(&token);
        export.args(["--url", &format!("http://{}", server.address())]);
        let (before, watch) = (server.cpu_seconds()?, Stopwatch::start());
        output_of(&mut export)?;
        let (wall, cpu) = (watch.elapsed().as_secs_f64(), server.cpu_seconds()? - before);
        let resident = server.resident_mib()?;
        println!(
            "{round:<7} {wall:>7.2}   {:>9.0}   {cpu:>12.2}   {:>13.0}   {resident:>12.0}",
            count / wall,
            count / cpu
        );
        best = best.max(count / cpu);
    }
    print_figure("best, entries per second of CPU", &format!("{best:.0}"), "at least 100000");
    let key = output_of(pilot(&["log", "key", "--config"]).arg(installation.path().join("pilot.toml")))?;
    let watch = Stopwatch::start();
    output_of(verify(&mut pilot(&["evidence", "verify"]), &bundle, &key))?;
    let seconds = watch.elapsed().as_secs_f64();
    print_figure("verify, entries per second", &format!("{:.0}", count / seconds), "–");
    println!("load average after: {}", moves::load_average());
    Ok(())
}

fn verify<'c>(command: &'c mut Command, bundle: &std::path::Path, key: &str) -> &'c mut Command {
    command.arg(bundle).args(["--key", key.trim()])
}
