//! What the session check costs compared with a bare axum handler with a static body: same machine, same run, one core
//! each.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::load::{Figures, Server};
use super::moves::{load_average, print_figure};
use crate::step::{Failure, cargo, output_of, run_timed, target_dir};
use crate::tools::{self, TASKSET, WRK};

const CREDENTIALS: &str = "1000";
const ROUNDS: usize = 3;
const WARM_UP_SECONDS: u32 = 2;
const ROUND_SECONDS: u32 = 5;
const PER_CPU_SECOND_TARGET: &str = "at least 0.85";
const P99_TARGET: &str = "at most 1.5";

pub(super) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let other = super::options::other_program(arguments)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores < 2 {
        return Err(Failure::environment("server and load need one core each, but this machine has only one"));
    }
    tools::install_missing(&[WRK, TASKSET])?;
    run_timed("build", &mut cargo(&["build", "--release", "--package", "pilot"]))?;
    run_timed("build", &mut cargo(&["build", "--release", "--package", "pilot-server", "--example", "bare_axum"]))?;
    let release = target_dir().join("release");
    let credentials = many_credentials()?;
    let here = Installation::make("here", &credentials)?;
    let log = here.path.join("axum.log");
    let mut servers = vec![
        ("pilot", here.serve(&release.join("pilot"))?),
        ("axum", Server::start_pinned(&release.join("examples/bare_axum"), &[], &log)?),
    ];
    let there = Installation::make("other", &credentials)?;
    if let Some(program) = other {
        servers.push(("other", there.serve(&program)?));
    }
    let (token, _) = credentials;
    compare(&servers, &format!("Authorization: Bearer {token}"))
}

/// In turn, so that whatever else the machine does affects all of them equally.
fn compare(servers: &[(&str, Server)], header: &str) -> Result<(), Failure> {
    println!("load average before: {}", load_average());
    for (_, server) in servers {
        server.measure("/v1/session", header, WARM_UP_SECONDS)?;
    }
    println!("server  round    requests   req/s   CPU s   req/CPU s   p50 µs   p99 µs");
    let mut rounds = vec![Vec::new(); servers.len()];
    for round in 1..=ROUNDS {
        for ((name, server), all) in servers.iter().zip(&mut rounds) {
            let figures = server.measure("/v1/session", header, ROUND_SECONDS)?;
            print_row(name, &round.to_string(), &figures);
            all.push(figures);
        }
    }
    let medians: Vec<_> = rounds.iter().map(|rounds| medians(rounds)).collect();
    for ((name, _), figures) in servers.iter().zip(&medians) {
        print_row(name, "median", figures);
    }
    println!();
    if let [pilot, axum, rest @ ..] = medians.as_slice() {
        let speed = |other: &Figures| format!("{:.3}", pilot.per_cpu_second / other.per_cpu_second);
        let wait = |other: &Figures| format!("{:.3}", pilot.p99_micros / other.p99_micros);
        print_figure("pilot / axum, requests per CPU second", &speed(axum), PER_CPU_SECOND_TARGET);
        print_figure("pilot / axum, p99", &wait(axum), P99_TARGET);
        if let [other] = rest {
            print_figure("pilot / other, requests per CPU second", &speed(other), "about 1");
            print_figure("pilot / other, p99", &wait(other), "about 1");
        }
    }
    Ok(())
}

fn print_row(name: &str, round: &str, figures: &Figures) {
    let Figures { requests, per_second, cpu_seconds, per_cpu_second, p50_micros, p99_micros } = figures;
    println!(
        "{name:<7} {round:<6} {requests:>10.0} {per_second:>7.0} {cpu_seconds:>7.2} {per_cpu_second:>11.0} {p50_micros:>8.0} {p99_micros:>8.0}"
    );
}

/// The median of each figure separately.
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

/// A token, and the credential file in which it is one of many.
type Credentials = (String, String);

fn many_credentials() -> Result<Credentials, Failure> {
    let example = ["run", "--quiet", "--release", "--package", "pilot-core", "--example", "many_credentials"];
    let made = output_of(cargo(&example).args(["--", CREDENTIALS]))?;
    let (token, file) = made.split_once('\n').unwrap_or_default();
    if file.is_empty() {
        return Err(Failure::environment("the example many_credentials printed nothing"));
    }
    Ok((token.to_owned(), file.to_owned()))
}

/// A configured service in its own directory, removed when dropped.
struct Installation {
    path: PathBuf,
}

impl Installation {
    fn make(name: &str, (_, credentials): &Credentials) -> Result<Installation, Failure> {
        let path = std::env::temp_dir().join(format!("pilot-bench-{name}-{}", std::process::id()));
        let directory = fs::DirBuilder::new().mode(0o700).create(&path);
        directory.map_err(|error| Failure::environment(format!("{}: {error}", path.display())))?;
        let installation = Installation { path };
        installation.write("credentials.json", credentials)?;
        installation.write("pilot.toml", "listen = \"127.0.0.1:0\"\n[credentials]\nfile = \"credentials.json\"\n")?;
        Ok(installation)
    }

    fn serve(&self, program: &Path) -> Result<Server, Failure> {
        let config = self.path.join("pilot.toml");
        let arguments = ["serve", "--config", &config.to_string_lossy()];
        Server::start_pinned(program, &arguments, &self.path.join("pilot.log"))
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
