//! How fast the service builds an evidence bundle of a whole ledger, and how fast and with how much memory it is verified.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use super::moves::{self, Installation, pilot, print_figure};
use crate::step::{Failure, Stopwatch, output_of};

/// Just below the most that one bundle can hold: the service adds its starts.
const ENTRIES: u64 = 999_900;
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
    println!("\nround   integrity s   entries/s   rules s   entries/s   resident MiB");
    let (mut integrity, mut rules, mut most) = (0.0_f64, 0.0_f64, 0_u64);
    for round in 1..=ROUNDS {
        let judged = judge(&bundle, key.trim())?;
        let (first, second) = (count / judged.integrity, count / judged.rules);
        println!(
            "{round:<7} {:>11.2}   {first:>9.0}   {:>7.2}   {second:>9.0}   {:>12}",
            judged.integrity, judged.rules, judged.resident_mib
        );
        (integrity, rules, most) = (integrity.max(first), rules.max(second), most.max(judged.resident_mib));
    }
    print_figure("best, entries per second of integrity", &format!("{integrity:.0}"), "at least 200000");
    print_figure("best, entries per second of legality", &format!("{rules:.0}"), "at least 60000");
    print_figure("most memory, MiB", &most.to_string(), "at most 512");
    println!("load average after: {}", moves::load_average());
    Ok(())
}

struct Judged {
    /// Seconds until every byte was compared with what was signed.
    integrity: f64,
    /// Seconds of asking the rules again.
    rules: f64,
    resident_mib: u64,
}

/// Times the stages of a verification by the lines that tell of them.
fn judge(bundle: &Path, key: &str) -> Result<Judged, Failure> {
    let mut command = moves::example("judge");
    let watch = Stopwatch::start();
    let mut child = command
        .arg(bundle)
        .arg(key)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| Failure::environment(format!("the example `judge` cannot be started: {error}")))?;
    let lines = BufReader::new(child.stdout.take().ok_or_else(|| Failure::environment("it has no output"))?);
    let (mut begun, mut verdict, mut resident_mib) = (None, String::new(), 0);
    for line in lines.lines() {
        verdict = line.map_err(|error| Failure::environment(error.to_string()))?;
        if verdict == "Replaying" {
            begun = Some(watch.elapsed().as_secs_f64());
        }
        if let Some(line) = verdict.strip_prefix("VmHWM:") {
            resident_mib = line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(u64::MAX) / 1024;
        }
    }
    let all = watch.elapsed().as_secs_f64();
    let status = child.wait().map_err(|error| Failure::environment(error.to_string()))?;
    match begun.filter(|_| status.success() && verdict.starts_with("The evidence holds")) {
        Some(integrity) => Ok(Judged { integrity, rules: all - integrity, resident_mib }),
        None => Err(Failure::refuted(format!("the bundle was not verified: {verdict} ({status})"))),
    }
}
