//! How fast the service builds an evidence bundle of a whole ledger, and how fast and with how much memory it is verified.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use super::load::Server;
use super::moves::{self, Installation, pilot};
use super::quiet;
use super::report::{Section, Table, Target};
use super::rounds::Rounds;
use crate::step::{Failure, Stopwatch, output_of, program};
use crate::tools::{self, TASKSET};

/// Just below the most that one bundle can hold: the service adds its starts.
const ENTRIES: u32 = 999_900;
const ROUNDS: usize = 5;
/// Where a bundle is verified.
const CORE: &str = "1";

pub(super) fn prepare(arguments: &[&str]) -> Result<(), Failure> {
    super::options::none(arguments)?;
    tools::install_missing(&[TASKSET])?;
    moves::build()
}

pub(super) fn measure(_: &[&str]) -> Result<Section, Failure> {
    let installation = Installation::make("export")?;
    let token = installation.auditor()?;
    // The first start creates the directory and the log key.
    drop(installation.start()?);
    let mut fill = moves::example("fill_store");
    output_of(fill.arg(installation.store()).args([&ENTRIES.to_string(), "1"]))?;
    let server = installation.start()?;
    // A service that finds items without a search index makes one.
    quiet::wait();
    let bundle = installation.path().join("all.zip");
    let mut exported = Exported::default();
    for _ in 0..ROUNDS {
        exported.round(&server, &bundle, &token)?;
    }
    drop(server);
    let key = output_of(pilot(&["log", "key", "--config"]).arg(installation.path().join("pilot.toml")))?;
    let mut verified = Verified::default();
    for _ in 0..ROUNDS {
        verified.round(&bundle, key.trim())?;
    }
    Ok(section(&exported, &verified))
}

/// Round by round.
#[derive(Default)]
struct Exported {
    per_second: Rounds,
    per_cpu_second: Rounds,
    resident_mib: Rounds,
}

impl Exported {
    fn round(&mut self, server: &Server, bundle: &Path, token: &Path) -> Result<(), Failure> {
        let (seconds, cpu_seconds) = quiet::undisturbed(|| Exported::once(server, bundle, token))?;
        self.per_second.add(f64::from(ENTRIES) / seconds);
        self.per_cpu_second.add(f64::from(ENTRIES) / cpu_seconds);
        self.resident_mib.add(server.resident_mib()?);
        Ok(())
    }

    /// How long it takes, and how much of that the service computes.
    fn once(server: &Server, bundle: &Path, token: &Path) -> Result<(f64, f64), Failure> {
        let _ = std::fs::remove_file(bundle);
        let mut export =
            pilot(&["evidence", "export", "--from", "1970-01-01T00:00:00Z", "--to", "2100-01-01T00:00:00Z"]);
        export.arg("--out").arg(bundle).arg("--token-file").arg(token);
        export.args(["--url", &format!("http://{}", server.address())]);
        let (before, watch) = (server.cpu_seconds()?, Stopwatch::start());
        output_of(&mut export)?;
        Ok((watch.elapsed().as_secs_f64(), server.cpu_seconds()? - before))
    }
}

/// Round by round.
#[derive(Default)]
struct Verified {
    /// Entries of which every byte was compared with what was signed, each second.
    integrity: Rounds,
    /// Entries for which the rules were asked again, each second.
    legality: Rounds,
    resident_mib: Rounds,
}

impl Verified {
    fn round(&mut self, bundle: &Path, key: &str) -> Result<(), Failure> {
        let [integrity, legality, resident_mib] = quiet::undisturbed(|| Verified::once(bundle, key))?;
        self.integrity.add(integrity);
        self.legality.add(legality);
        self.resident_mib.add(resident_mib);
        Ok(())
    }

    /// Times the stages of a verification by the lines that tell of them.
    fn once(bundle: &Path, key: &str) -> Result<[f64; 3], Failure> {
        let watch = Stopwatch::start();
        let mut child = pinned(&moves::example("judge"))
            .arg(bundle)
            .arg(key)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| Failure::environment(format!("the example `judge` cannot be started: {error}")))?;
        let lines = BufReader::new(child.stdout.take().ok_or_else(|| Failure::environment("it has no output"))?);
        let (mut begun, mut verdict, mut resident_mib) = (None, String::new(), f64::NAN);
        for line in lines.lines() {
            verdict = line.map_err(|error| Failure::environment(error.to_string()))?;
            if verdict == "Replaying" {
                begun = Some(watch.elapsed().as_secs_f64());
            }
            if let Some(line) = verdict.strip_prefix("VmHWM:") {
                resident_mib = line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(f64::NAN) / 1024.0;
            }
        }
        let all = watch.elapsed().as_secs_f64();
        let status = child.wait().map_err(|error| Failure::environment(error.to_string()))?;
        let Some(begun) = begun.filter(|_| status.success() && verdict.starts_with("The evidence holds")) else {
            return Err(Failure::refuted(format!("the bundle was not verified: {verdict} ({status})")));
        };
        Ok([f64::from(ENTRIES) / begun, f64::from(ENTRIES) / (all - begun), resident_mib])
    }
}

fn pinned(command: &Command) -> Command {
    program("taskset", &["--cpu-list", CORE, &command.get_program().to_string_lossy()])
}

fn section(exported: &Exported, verified: &Verified) -> Section {
    let figures = vec![
        exported.per_cpu_second.figure("export, entries per second of CPU", "", Target::AtLeast(100_000.0)),
        exported.per_second.figure("export, entries per second", "", Target::AtLeast(100_000.0)),
        verified.integrity.figure("verify integrity, entries per second", "", Target::AtLeast(200_000.0)),
        verified.legality.figure("verify legality, entries per second", "", Target::AtLeast(60_000.0)),
        verified.resident_mib.figure("verify, most memory", "MiB", Target::AtMost(512.0)),
    ];
    let row = |what: &str, per_second: &Rounds, memory: &Rounds| {
        let seconds = f64::from(ENTRIES) / per_second.median();
        let numbers =
            [format!("{:.0}", per_second.median()), format!("{seconds:.1}"), format!("{:.0}", memory.median())];
        std::iter::once(what.to_owned()).chain(numbers).collect()
    };
    let rows = vec![
        row("export", &exported.per_second, &exported.resident_mib),
        row("verify integrity", &verified.integrity, &verified.resident_mib),
        row("verify legality", &verified.legality, &verified.resident_mib),
    ];
    let about = format!(
        "One bundle of a whole ledger of {ENTRIES} entries: exported over HTTP by `pilot evidence export`, which \
         shares the machine's cores with the service, and verified on one core."
    );
    let tables = vec![Table { columns: vec!["what", "entries/s", "seconds", "resident MiB"], rows }];
    Section { title: "Evidence", about, figures, tables, plots: vec![] }
}
