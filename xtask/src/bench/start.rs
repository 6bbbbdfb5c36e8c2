//! How long a start takes, until the service listens, and how much memory it has then: with few and with many
//! credentials, on a new ledger and on one that knows them.

use std::fs;

use super::length::round_seconds;
use super::load::Server;
use super::moves::{self, ITEMS, Installation};
use super::quiet;
use super::report::{Drawing, Figure, Plot, Section, Table, Target};
use super::rounds::Rounds;
use crate::step::{Failure, Stopwatch, output_of};

const ROUNDS: usize = 5;
/// Beside the two who move items.
const CREDENTIALS: [u32; 3] = [0, 1_000, 20_000];

pub(super) fn prepare(arguments: &[&str]) -> Result<(), Failure> {
    super::options::none(arguments)?;
    moves::build()
}

pub(super) fn measure(_: &[&str]) -> Result<Section, Failure> {
    let mut all = CREDENTIALS.map(Measured::of);
    for _ in 0..ROUNDS {
        for measured in &mut all {
            measured.round()?;
        }
    }
    Ok(section(&all))
}

/// With so many credentials, round by round.
struct Measured {
    credentials: u32,
    first_millis: Rounds,
    second_millis: Rounds,
    resident_mib: Rounds,
    /// Of pages that several processes share, its part only.
    proportional_mib: Rounds,
    /// Resident, after a load of transitions.
    loaded_mib: Rounds,
}

impl Measured {
    fn of(credentials: u32) -> Measured {
        Measured {
            credentials,
            first_millis: Rounds::default(),
            second_millis: Rounds::default(),
            resident_mib: Rounds::default(),
            proportional_mib: Rounds::default(),
            loaded_mib: Rounds::default(),
        }
    }

    fn round(&mut self) -> Result<(), Failure> {
        let Started { installation, server, millis: [first, second] } =
            quiet::undisturbed(|| Started::twice(self.credentials))?;
        self.first_millis.add(first);
        self.second_millis.add(second);
        self.resident_mib.add(server.resident_mib()?);
        self.proportional_mib.add(proportional_mib(&server)?);
        let items = installation.prepare(&server, ITEMS)?;
        installation.measure(&server, &items, round_seconds())?;
        self.loaded_mib.add(server.resident_mib()?);
        Ok(())
    }
}

/// A service that was started twice.
struct Started {
    // Dropped in this order: the service ends before its directory is removed.
    server: Server,
    installation: Installation,
    millis: [f64; 2],
}

impl Started {
    /// On a new ledger, and then again on the same one.
    fn twice(credentials: u32) -> Result<Started, Failure> {
        let installation = Installation::make("start")?;
        add_credentials(&installation, credentials)?;
        let (server, first) = timed(&installation)?;
        server.stop()?;
        let (server, second) = timed(&installation)?;
        Ok(Started { server, installation, millis: [first, second] })
    }
}

fn timed(installation: &Installation) -> Result<(Server, f64), Failure> {
    let watch = Stopwatch::start();
    let server = installation.start()?;
    Ok((server, watch.elapsed().as_secs_f64() * 1e3))
}

/// Puts made-up ones before those that are in the file.
fn add_credentials(installation: &Installation, count: u32) -> Result<(), Failure> {
    if count == 0 {
        return Ok(());
    }
    let made = output_of(moves::example("many_credentials").arg(count.to_string()))?;
    let path = installation.path().join("credentials.json");
    let failed = |error| Failure::environment(format!("{}: {error}", path.display()));
    let there = fs::read_to_string(&path).map_err(failed)?;
    let merged = merged(&there, &made);
    fs::write(&path, merged.ok_or_else(|| Failure::environment("the credential files do not fit"))?).map_err(failed)
}

/// The first list of one file, with the entries of the other before its own.
fn merged(there: &str, made: &str) -> Option<String> {
    let list = "\"credentials\": [";
    let (head, tail) = there.split_once(list)?;
    let entries = made.split_once(list)?.1.rsplit_once(']')?.0;
    Some(format!("{head}{list}{},{tail}", entries.trim_end()))
}

fn proportional_mib(server: &Server) -> Result<f64, Failure> {
    let path = format!("/proc/{}/smaps_rollup", server.id());
    let text = fs::read_to_string(&path).map_err(|error| Failure::environment(format!("{path}: {error}")))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map(|kib| kib / 1024.0).ok_or_else(|| Failure::environment(format!("{path}: has no Pss")))
}

fn section(all: &[Measured]) -> Section {
    let columns = vec![
        "credentials",
        "first start ms",
        "fastest",
        "second start ms",
        "fastest",
        "resident MiB",
        "proportional MiB",
        "after a load",
    ];
    let row = |measured: &Measured| {
        let Measured { first_millis, second_millis, .. } = measured;
        let millis = [first_millis.median(), first_millis.least(), second_millis.median(), second_millis.least()];
        let memory = [&measured.resident_mib, &measured.proportional_mib, &measured.loaded_mib].map(Rounds::median);
        let numbers = millis.into_iter().chain(memory).map(|number| format!("{number:.1}"));
        std::iter::once((measured.credentials + 2).to_string()).chain(numbers).collect()
    };
    let about = format!(
        "From the start of the process until it prints `listening on`, {ROUNDS} times. A first start makes the \
         ledger and records every credential; a second finds them there. Memory is that of the second start, at \
         rest and after 64 clients have moved items for {} s; proportional memory counts pages that \
         processes share by their part.",
        round_seconds()
    );
    let bars = all.iter().flat_map(|measured| {
        let of = |which: &str| format!("{} credentials, {which}", measured.credentials + 2);
        [(of("first"), measured.first_millis.median()), (of("second"), measured.second_millis.median())]
    });
    Section {
        title: "Start",
        about,
        figures: figures(all),
        tables: vec![Table { columns, rows: all.iter().map(row).collect() }],
        plots: vec![Plot {
            file: "start",
            title: "Start until the service listens".into(),
            drawing: Drawing::Bars { unit: "ms", bars: bars.collect() },
        }],
    }
}

fn figures(all: &[Measured]) -> Vec<Figure> {
    let [few, thousand, many] = all else { return Vec::new() };
    vec![
        few.first_millis.figure("start on a new ledger", "ms", Target::AtMost(50.0)),
        few.second_millis.figure("start on a small ledger", "ms", Target::AtMost(50.0)),
        thousand.second_millis.figure("start with 1,000 credentials", "ms", Target::AtMost(100.0)),
        many.first_millis.figure("first start with 20,000 credentials", "ms", Target::AtMost(2_000.0)),
        thousand.resident_mib.figure("memory at rest with 1,000 credentials", "MiB", Target::AtMost(30.0)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_put_before_those_that_are_there() {
        let file = |entries: &str| format!("{{\n  \"schema_version\": 1,\n  \"credentials\": [{entries}\n  ]\n}}\n");
        let merged = merged(&file("\n    {\"ana\"}"), &format!("token\n{}", file("\n    {\"a\"},\n    {\"b\"}")));
        assert_eq!(merged.unwrap(), file("\n    {\"a\"},\n    {\"b\"},\n    {\"ana\"}"));
    }
}
