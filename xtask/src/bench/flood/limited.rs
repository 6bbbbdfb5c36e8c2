//! Rate limits under a flood: how long well-behaved actors wait for an answer while others send wrong tokens, and one
//! actor sends far too much.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::bench::load::Server;
use crate::bench::moves::{Directory, new_token, print_figure};
use crate::step::{Failure, Stopwatch, cannot_start, program, shown};

/// Far below the default budget of 20 reads a second.
const ACTORS: usize = 20;
const PACE: Duration = Duration::from_millis(66);
const ROUND_SECONDS: u64 = 8;
const ROUNDS: usize = 3;
const FLOOD_CONNECTIONS: &str = "64";

pub(super) fn run(pilot: &Path) -> Result<(), Failure> {
    let installation = Installation::make(pilot)?;
    let server = installation.start()?;
    println!("\nwith rate limits: {ACTORS} actors, 15 requests a second each, next to wrong tokens and a greedy actor");
    println!("round    quiet p99 ms   flood p99 ms   answers   of the flood, per second");
    let (mut quiet, mut flooded) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let calm = installation.behave(&server)?;
        let floods = [flood(&server, WRONG)?, flood(&server, &installation.greedy)?];
        let wet = installation.behave(&server)?;
        let mut per_second = 0.0;
        for child in floods {
            per_second += answers_per_second(child)?;
        }
        println!("{round:<6} {:>14.2} {:>14.2} {:>9} {per_second:>12.0}", calm.p99, wet.p99, wet.answers);
        quiet.push(calm.p99);
        flooded.push(wet.p99);
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let ratio = median(&mut flooded) / median(&mut quiet);
    print_figure("p99 of the well-behaved, flooded / quiet", &format!("{ratio:.2}"), "at most 2");
    Ok(())
}

const WRONG: &str = "not-a-token-of-anyone-not-a-token-of-anyone";

/// A service with limits, its well-behaved actors, and one that is not.
struct Installation<'a> {
    pilot: &'a Path,
    directory: Directory,
    tokens: Vec<String>,
    greedy: String,
}

/// What the well-behaved actors saw.
struct Seen {
    p99: f64,
    answers: usize,
}

impl Installation<'_> {
    fn make(pilot: &Path) -> Result<Installation<'_>, Failure> {
        let directory = Directory::make("flood-limited")?;
        let config = directory.path().join("pilot.toml");
        let failed = |error| Failure::environment(format!("{}: {error}", config.display()));
        fs::write(&config, "listen = \"127.0.0.1:0\"\n[rate_limits]\n").map_err(failed)?;
        let mut tokens = Vec::new();
        for number in 0..=ACTORS {
            tokens.push(new_token(pilot, &config, &format!("actor-{number}"), "auditor")?);
        }
        let greedy = tokens.pop().unwrap_or_default();
        Ok(Installation { pilot, directory, tokens, greedy })
    }

    fn start(&self) -> Result<Server, Failure> {
        let mut serve = program(&self.pilot.to_string_lossy(), &["serve", "--config"]);
        serve.arg(self.directory.path().join("pilot.toml"));
        Server::start(&mut serve, &self.directory.path().join("pilot.log"))
    }

    /// Every actor sends requests at its pace for a while, each on its own connection.
    fn behave(&self, server: &Server) -> Result<Seen, Failure> {
        let refused = AtomicBool::new(false);
        let mut waits: Vec<Duration> = thread::scope(|scope| {
            let ask = |(number, token): (usize, &String)| {
                let (address, token, refused) = (server.address().to_owned(), token.clone(), &refused);
                let offset = PACE * u32::try_from(number).unwrap_or(0) / u32::try_from(ACTORS).unwrap_or(1);
                scope.spawn(move || {
                    let waits = converse(&address, &token, offset);
                    waits.unwrap_or_else(|| {
                        refused.store(true, Ordering::Relaxed);
                        Vec::new()
                    })
                })
            };
            let asking: Vec<_> = self.tokens.iter().enumerate().map(ask).collect();
            asking.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
        });
        if refused.load(Ordering::Relaxed) {
            return Err(Failure::environment("a well-behaved actor was refused or got no answer"));
        }
        waits.sort();
        let p99 = waits.get(waits.len() * 99 / 100).copied().unwrap_or_default();
        Ok(Seen { p99: p99.as_secs_f64() * 1e3, answers: waits.len() })
    }
}

/// One actor's requests, and how long each answer took; `None` if one was not 200.
fn converse(address: &str, token: &str, offset: Duration) -> Option<Vec<Duration>> {
    let mut stream = BufReader::new(TcpStream::connect(address).ok()?);
    stream.get_ref().set_nodelay(true).ok()?;
    let request = format!("GET /v1/items HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n");
    let mut waits = Vec::new();
    let round = Stopwatch::start();
    for turn in 0.. {
        let at = offset + PACE * turn;
        if at > Duration::from_secs(ROUND_SECONDS) {
            break;
        }
        thread::sleep(at.saturating_sub(round.elapsed()));
        let asked = Stopwatch::start();
        stream.get_mut().write_all(request.as_bytes()).ok()?;
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        if !line.starts_with("HTTP/1.1 200") {
            return None;
        }
        let mut length = 0;
        while line.trim() != "" {
            line.clear();
            stream.read_line(&mut line).ok()?;
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        stream.read_exact(&mut vec![0; length]).ok()?;
        waits.push(asked.elapsed());
    }
    Some(waits)
}

/// As many requests as get through, for as long as a round.
fn flood(server: &Server, token: &str) -> Result<Child, Failure> {
    let seconds = format!("{}s", ROUND_SECONDS + 1);
    let mut command = program("wrk", &["-t1", "-c", FLOOD_CONNECTIONS, "-d", &seconds, "-H"]);
    command.arg(format!("Authorization: Bearer {token}")).arg(format!("http://{}/v1/items", server.address()));
    let line = shown(&command);
    command.stdout(Stdio::piped()).spawn().map_err(|error| cannot_start(&line, &error))
}

fn answers_per_second(child: Child) -> Result<f64, Failure> {
    let output = child.wait_with_output().map_err(|error| cannot_start("wrk", &error))?;
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let figure = report.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:")?.trim().parse().ok());
    figure.ok_or_else(|| Failure::environment(format!("the flood failed; wrk reported:\n{report}")))
}
