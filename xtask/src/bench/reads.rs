//! What reading costs when the ledger has a million items: one item, lists, the inbox and searches.

use std::fs;

use super::load::Server;
use super::moves::{self, Installation};
use super::quiet;
use super::readers::{self, Answers, Readers};
use super::report::{Section, Table, Target};
use super::rounds::Rounds;
use crate::step::{Failure, output_of};

const ITEMS: u64 = 1_000_000;
/// Most items were created, submitted and rejected; three in twenty are open.
const ENTRIES_PER_ITEM: u64 = 3;
/// Items that are asked for one by one, spread over the ledger.
const SAMPLE: u64 = 1_000;
const ROUNDS: usize = 5;
const FEW: usize = 1;
const MANY: usize = 16;
/// A round has as many requests as a second allows, within these bounds.
const ROUND_MICROS: f64 = 1e6;
const REQUESTS_MIN: usize = 32;
const REQUESTS_MAX: usize = 4_000;
/// How deep a list is entered: pages of a thousand summaries.
const DEEP_PAGES: usize = 500;
const TARGET_MILLIS: f64 = 5.0;

pub(super) fn measure(_: &[&str]) -> Result<Section, Failure> {
    let installation = Installation::make("reads")?;
    let tokens = readers::tokens(&installation, "approver", MANY)?;
    let (server, items) = fill(&installation)?;
    // A service that finds items without a search index makes one.
    quiet::wait();
    let readers = Readers { server: &server, tokens: &tokens };
    let kinds = kinds(&readers, &items)?;
    let mut all: Vec<_> = kinds.iter().map(|_| [Measured::default(), Measured::default()]).collect();
    for _ in 0..ROUNDS {
        for (kind, measured) in kinds.iter().zip(&mut all) {
            for (clients, measured) in [FEW, MANY].into_iter().zip(measured) {
                measured.add(quiet::undisturbed(|| kind.measure(&readers, clients))?);
            }
        }
    }
    let bytes = fs::metadata(installation.store()).map_or(0, |found| found.len());
    Ok(section(&kinds, &all, bytes >> 20))
}

/// A service on the ledger, and the ids of some items.
fn fill(installation: &Installation) -> Result<(Server, Vec<String>), Failure> {
    // The first start creates the directory and the log key.
    drop(installation.start()?);
    let mut fill = moves::example("fill_store");
    let numbers = [ITEMS * ENTRIES_PER_ITEM, SAMPLE, ENTRIES_PER_ITEM].map(|number| number.to_string());
    let made = output_of(fill.arg(installation.store()).args(numbers))?;
    let ids = made.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    Ok((installation.start()?, ids))
}

/// One kind of request.
struct Kind {
    what: &'static str,
    paths: Vec<String>,
    has_target: bool,
}

fn kinds(readers: &Readers<'_>, items: &[String]) -> Result<Vec<Kind>, Failure> {
    let cursor = readers.follow("/v1/items?view=summary&limit=1000", DEEP_PAGES)?;
    let item =
        Kind { what: "one item", paths: items.iter().map(|id| format!("/v1/items/{id}")).collect(), has_target: false };
    let deep = format!("limit=50&cursor={cursor}");
    let lists = [
        ("list, first page", "limit=50"),
        ("list, from the middle on", &deep),
        ("list of a state, ended", "limit=50&state=rejected"),
        ("list of a state, open", "limit=50&state=draft"),
        ("inbox", "limit=50&waiting_for=me"),
        ("search, frequent word", "limit=50&q=region"),
        ("search, rare word", "limit=50&q=quagga"),
        ("search, no hit", "limit=50&q=xylophone"),
    ];
    let list = |(what, query)| Kind { what, paths: vec![format!("/v1/items?{query}")], has_target: true };
    Ok(std::iter::once(item).chain(lists.map(list)).collect())
}

impl Kind {
    /// As many requests as fit into a round, by the time that a few of them take.
    fn measure(&self, readers: &Readers<'_>, clients: usize) -> Result<Answers, Failure> {
        let trial = readers.ask(clients, clients, &self.paths)?;
        let clients_wait = trial.p50_micros.max(1.0);
        let mut count = clients;
        while count < REQUESTS_MAX && clients_wait * each(count, clients) < ROUND_MICROS {
            count *= 2;
        }
        readers.ask(clients, count.clamp(REQUESTS_MIN, REQUESTS_MAX), &self.paths)
    }
}

/// How many requests each client has.
fn each(count: usize, clients: usize) -> f64 {
    u32::try_from(count / clients).map_or(f64::MAX, f64::from)
}

/// Of one kind and number of clients, round by round.
#[derive(Default)]
struct Measured {
    p50_millis: Rounds,
    p99_millis: Rounds,
    cpu_micros: Rounds,
    bytes: Rounds,
}

impl Measured {
    fn add(&mut self, answers: Answers) {
        self.p50_millis.add(answers.p50_micros / 1e3);
        self.p99_millis.add(answers.p99_micros / 1e3);
        self.cpu_micros.add(answers.cpu_micros);
        self.bytes.add(answers.bytes);
    }
}

fn section(kinds: &[Kind], all: &[[Measured; 2]], store_mib: u64) -> Section {
    let columns = vec![
        "request",
        "KiB",
        "p50 ms",
        "p99 ms",
        "CPU µs",
        "p50 ms, 16 clients",
        "p99 ms, 16 clients",
        "CPU µs, 16 clients",
    ];
    let mut table = Table { columns, rows: Vec::new() };
    let mut figures = Vec::new();
    for (kind, [few, many]) in kinds.iter().zip(all) {
        if kind.has_target {
            figures.push(few.p99_millis.figure(format!("{}, p99", kind.what), "ms", Target::AtMost(TARGET_MILLIS)));
        }
        let mut row = vec![kind.what.to_owned(), format!("{:.1}", few.bytes.median() / 1024.0)];
        for Measured { p50_millis, p99_millis, cpu_micros, .. } in [few, many] {
            row.push(format!("{:.2}", p50_millis.median()));
            row.push(format!("{:.2}", p99_millis.median()));
            row.push(format!("{:.0}", cpu_micros.median()));
        }
        table.rows.push(row);
    }
    let about = format!(
        "A ledger of a million items, most of them rejected and three in twenty open, in {store_mib} MiB of SQLite. \
         Clients ask for the same over HTTP on connections that stay open, as actors of their own. Targets are for \
         one client; with {MANY}, requests wait for each other, because clients and service share the machine's cores. \
         CPU is that of the service for one request. The rare word is in ten items, the frequent one in every tenth."
    );
    Section { title: "Reads at a million items", about, figures, tables: vec![table], plots: vec![] }
}
