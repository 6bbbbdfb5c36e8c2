//! What the session check costs compared with nginx, with axum and with hyper alone: same machine, same run, one core
//! each.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::length::round_seconds;
use super::load::{self, Figures, Server};
use super::moves::Directory;
use super::page::number;
use super::quiet;
use super::report::{Drawing, Plot, Section, Table, Target};
use super::rounds::Rounds;
use crate::step::{Failure, output_of, target_dir};
use crate::tools::{self, TASKSET, WRK};

mod nginx;

const CREDENTIALS: &str = "1000";
const ROUNDS: usize = 5;
const WARM_UP_SECONDS: u32 = 2;

/// What the service is compared with, and the target for its requests per CPU second divided by theirs.
const PEERS: [(&str, Option<f64>); 5] = [
    ("nginx with a log", Some(1.0)),
    ("nginx", Some(0.9)),
    ("axum", Some(0.95)),
    ("hyper", None),
    ("other build", Some(1.0)),
];

pub(super) fn prepare(options: &[&str]) -> Result<(), Failure> {
    super::options::other_program(options)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores < 2 {
        return Err(Failure::environment("server and load need one core each, but this machine has only one"));
    }
    tools::install_missing(&[WRK, TASKSET])?;
    tools::install_missing_services(&[nginx::NGINX], &["nginx"])?;
    super::moves::build()
}

pub(super) fn measure(options: &[&str]) -> Result<Section, Failure> {
    let other = super::options::other_program(options)?;
    let release = target_dir().join("release");
    let credentials = Credentials::make()?;
    let place = |name: &str| Place::make(name, &credentials);
    let (here, there, peers) = (place("session")?, place("session-other")?, place("session-peers")?);
    let (quiet, logging) = (Directory::make("nginx")?, Directory::make("nginx-log")?);
    let peer = |name: &str| peers.serve_peer(&release.join("examples/session_peers"), name);
    let mut servers = vec![
        ("pilot", here.serve(&release.join("pilot"))?),
        ("nginx with a log", nginx::start(logging.path(), &credentials.tokens, true)?),
        ("nginx", nginx::start(quiet.path(), &credentials.tokens, false)?),
        ("axum", peer("axum")?),
        ("hyper", peer("hyper")?),
    ];
    if let Some(program) = other {
        servers.push(("other build", there.serve(&program)?));
    }
    let rounds = run_rounds(&servers, &format!("Authorization: Bearer {}", credentials.token))?;
    Ok(Section { about: about()?, ..section(&rounds) })
}

fn about() -> Result<String, Failure> {
    Ok(format!(
        "`GET /v1/session` with one of {CREDENTIALS} credentials, over 32 connections that stay open. The server has one \
         core and the load generator, wrk, the other. All servers answer the same JSON, and are measured in turns, \
         {ROUNDS} rounds of {} seconds each. Requests per CPU second count what the server's processes used, user and \
         system together.\n\n\
         {} looks the `Authorization` header up in a `map` of the same tokens; with a log, it writes the same fields as \
         the service for each request to a file, gathered in a buffer of 64 KiB. axum and hyper \
         (`crates/pilot-server/examples/session_peers.rs`) look the SHA3-256 digest of the token up in a hash map, with \
         the system's allocator, and do nothing else. The service writes its log to a file, counts, keeps its limits \
         and deadlines, and searches the log for tokens.",
        round_seconds(),
        nginx::version()?
    ))
}

/// Of one server.
type Measured = (&'static str, Vec<Figures>);

/// In turn, so that whatever else the machine does affects all of them equally.
fn run_rounds(servers: &[(&'static str, Server)], header: &str) -> Result<Vec<Measured>, Failure> {
    for (_, server) in servers {
        server.measure("/v1/session", header, WARM_UP_SECONDS.min(round_seconds()))?;
    }
    println!("server             round  req/s   CPU s   req/CPU s   p50 µs   p99 µs");
    let mut all: Vec<Measured> = servers.iter().map(|(name, _)| (*name, Vec::new())).collect();
    for round in 1..=ROUNDS {
        for ((name, server), (_, rounds)) in servers.iter().zip(&mut all) {
            let figures = quiet::undisturbed(|| server.measure("/v1/session", header, round_seconds()))?;
            print_row(name, round, &figures);
            rounds.push(figures);
        }
    }
    Ok(all)
}

fn print_row(name: &str, round: usize, figures: &Figures) {
    let Figures { per_second, cpu_seconds, per_cpu_second, p50_micros, p99_micros, .. } = figures;
    println!(
        "{name:<18} {round:>5} {per_second:>6.0} {cpu_seconds:>7.2} {per_cpu_second:>11.0} {p50_micros:>8.0} {p99_micros:>8.0}"
    );
}

fn section(all: &[Measured]) -> Section {
    let rounds_of = |wanted: &str, figure: fn(&Figures) -> f64| {
        let found = all.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, rounds)| rounds.iter().map(figure).collect::<Rounds>()).unwrap_or_default()
    };
    let speed = |name: &str| rounds_of(name, |figures| figures.per_cpu_second);
    let ratio = |name: &str| speed("pilot").over(&speed(name));
    let measured = |name: &str| all.iter().any(|(found, _)| *found == name);
    let figures = PEERS.iter().filter(|(name, _)| measured(name)).filter_map(|(name, target)| {
        let what = format!("pilot / {name}, requests per CPU second");
        Some(ratio(name).figure(what, "", Target::AtLeast((*target)?)))
    });
    let row = |name: &&'static str| {
        let [per_second, p50, p99]: [fn(&Figures) -> f64; 3] =
            [|figures| figures.per_second, |figures| figures.p50_micros, |figures| figures.p99_micros];
        let median = |figure| number(rounds_of(name, figure).median());
        let compared = format!("{:.2}", ratio(name).median());
        vec![(*name).to_owned(), median(per_second), number(speed(name).median()), compared, median(p50), median(p99)]
    };
    let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
    let bars = names.iter().map(|name| ((*name).to_owned(), speed(name).median())).collect();
    let columns = vec!["server", "requests/s", "requests/CPU s", "pilot / it", "p50 µs", "p99 µs"];
    Section {
        title: "Session check",
        figures: figures.collect(),
        tables: vec![Table { columns, rows: names.iter().map(row).collect() }],
        plots: vec![Plot {
            file: "session",
            title: "Session check".into(),
            drawing: Drawing::Bars { unit: "requests per second of server CPU", bars },
        }],
        ..Section::default()
    }
}

struct Credentials {
    /// That of the middle entry.
    token: String,
    file: String,
    /// Token, actor and role of each entry, one entry per line.
    tokens: String,
}

impl Credentials {
    fn make() -> Result<Credentials, Failure> {
        let example = || super::moves::example("many_credentials");
        let made = output_of(example().arg(CREDENTIALS))?;
        let tokens = output_of(example().args([CREDENTIALS, "tokens"]))?;
        match made.split_once('\n') {
            Some((token, file)) if !file.is_empty() => {
                Ok(Credentials { token: token.to_owned(), file: file.to_owned(), tokens })
            }
            _ => Err(Failure::environment("the example many_credentials printed nothing")),
        }
    }
}

/// A configured service in its own directory.
struct Place(Directory);

impl Place {
    fn make(name: &str, credentials: &Credentials) -> Result<Place, Failure> {
        let place = Place(Directory::make(name)?);
        place.write("credentials.json", &credentials.file)?;
        place.write("pilot.toml", "listen = \"127.0.0.1:0\"\n[credentials]\nfile = \"credentials.json\"\n")?;
        Ok(place)
    }

    fn serve(&self, program: &Path) -> Result<Server, Failure> {
        let mut serve = load::pinned(program, &["serve", "--config"]);
        Server::start(serve.arg(self.file("pilot.toml")), &self.file("pilot.log"))
    }

    fn serve_peer(&self, program: &Path, name: &str) -> Result<Server, Failure> {
        let mut serve = load::pinned(program, &[name]);
        Server::start(serve.arg(self.file("credentials.json")), &self.file(&format!("{name}.log")))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.file(name);
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| Failure::environment(format!("{}: {error}", path.display())))
    }
}
