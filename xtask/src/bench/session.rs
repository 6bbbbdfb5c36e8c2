//! What the session check costs beside a bare axum handler with a static body: same machine, same run, one core each.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::load::{Figures, Server};
use crate::step::{Failure, cargo, output_of, run_timed, target_dir};
use crate::tools::{self, TASKSET, WRK};

const CREDENTIALS: &str = "1000";
const ROUNDS: usize = 3;
const WARM_UP_SECONDS: u32 = 2;
const ROUND_SECONDS: u32 = 5;
const PER_CPU_SECOND_TARGET: f64 = 0.85;
const P99_TARGET: f64 = 1.5;

pub fn run() -> Result<(), Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores < 2 {
        return Err(Failure::environment("server and load need a core each, and this machine has one"));
    }
    tools::install_missing(&[WRK, TASKSET])?;
    run_timed("build", &mut cargo(&["build", "--release", "--package", "pilot"]))?;
    run_timed("build", &mut cargo(&["build", "--release", "--package", "pilot-server", "--example", "bare_axum"]))?;
    let installation = Installation::make()?;
    let release = target_dir().join("release");
    let config = installation.path.join("pilot.toml");
    let arguments = ["serve", "--config", &config.to_string_lossy()];
    let pilot = Server::start_pinned(&release.join("pilot"), &arguments, &installation.path.join("pilot.log"))?;
    let axum = Server::start_pinned(&release.join("examples/bare_axum"), &[], &installation.path.join("axum.log"))?;
    compare(&pilot, &axum, &format!("Authorization: Bearer {}", installation.token))
}

/// Turn and turn about, so that whatever else the machine does meets both.
fn compare(pilot: &Server, axum: &Server, header: &str) -> Result<(), Failure> {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load average before: {}", load.split(' ').take(3).collect::<Vec<_>>().join(" "));
    for server in [pilot, axum] {
        server.measure("/v1/session", header, WARM_UP_SECONDS)?;
    }
    println!("server  round    requests   req/s   CPU s   req/CPU s   p50 µs   p99 µs");
    let (mut of_pilot, mut of_axum) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        for (name, server, all) in [("pilot", pilot, &mut of_pilot), ("axum", axum, &mut of_axum)] {
            let figures = server.measure("/v1/session", header, ROUND_SECONDS)?;
            print_row(name, &round.to_string(), &figures);
            all.push(figures);
        }
    }
    let (pilot, axum) = (medians(&of_pilot), medians(&of_axum));
    print_row("pilot", "median", &pilot);
    print_row("axum", "median", &axum);
    let speed = pilot.per_cpu_second / axum.per_cpu_second;
    println!(
        "\npilot / axum, requests per server CPU second   {speed:.3}   (to reach: at least {PER_CPU_SECOND_TARGET})"
    );
    println!(
        "pilot / axum, p99                              {:.3}   (to reach: at most {P99_TARGET})",
        pilot.p99_micros / axum.p99_micros
    );
    Ok(())
}

fn print_row(name: &str, round: &str, figures: &Figures) {
    let Figures { requests, per_second, cpu_seconds, per_cpu_second, p50_micros, p99_micros } = figures;
    println!(
        "{name:<7} {round:<6} {requests:>10.0} {per_second:>7.0} {cpu_seconds:>7.2} {per_cpu_second:>11.0} {p50_micros:>8.0} {p99_micros:>8.0}"
    );
}

/// Each figure's own median.
fn medians(rounds: &[Figures]) -> Figures {
    let median = |figure: fn(&Figures) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(figure).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    Figures {
        requests: median(|round| round.requests),
        per_second: median(|round| round.per_second),
        cpu_seconds: median(|round| round.cpu_seconds),
        per_cpu_second: median(|round| round.per_cpu_second),
        p50_micros: median(|round| round.p50_micros),
        p99_micros: median(|round| round.p99_micros),
    }
}

/// A configured service in a directory of its own, removed when dropped.
struct Installation {
    path: PathBuf,
    token: String,
}

impl Installation {
    fn make() -> Result<Installation, Failure> {
        let example = ["run", "--quiet", "--release", "--package", "pilot-core", "--example", "many_credentials"];
        let made = output_of(cargo(&example).args(["--", CREDENTIALS]))?;
        let Some((token, credentials)) = made.split_once('\n') else {
            return Err(Failure::environment("the example many_credentials printed nothing"));
        };
        let path = std::env::temp_dir().join(format!("pilot-bench-{}", std::process::id()));
        let directory = fs::DirBuilder::new().mode(0o700).create(&path);
        directory.map_err(|error| Failure::environment(format!("{}: {error}", path.display())))?;
        let installation = Installation { path, token: token.to_owned() };
        installation.write("credentials.json", credentials)?;
        installation.write("pilot.toml", "listen = \"127.0.0.1:0\"\n[credentials]\nfile = \"credentials.json\"\n")?;
        Ok(installation)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.path.join(name);
        write_private(&path, text).map_err(|error| Failure::environment(format!("{}: {error}", path.display())))
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}
