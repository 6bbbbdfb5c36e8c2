//! Durable transitions over HTTP compared with what the disk allows, which is plain SQLite writing the same rows, and
//! with what else a team could use.

use std::path::Path;

use self::peers::{Peer, Versions};
use super::length::round_seconds;
use super::load::Server;
use super::moves::{self, CLIENTS, Directory, ITEMS, Installation, Moves, Round, WARM_UP_SECONDS};
use super::report::{Drawing, Figure, Plot, Section, Target};
use super::rounds::Rounds;
use super::turns::Turns;
use crate::step::{Failure, output_of};

mod database;
mod nodes;
mod peers;

/// Entries to hash, to see what the log costs.
const LOGGED: &str = "200000";

const PILOT: &str = "pilot";
const GROUPED: &str = "raw, grouped";
const SINGLE: &str = "raw, one each";
const FASTIFY: &str = "Fastify + PostgreSQL";
const RESTATE: &str = "Restate";
const ALONE: &str = "pilot, one caller";
const RAW_ALONE: &str = "raw, one caller";
const OTHER: &str = "other build";

pub(super) fn prepare(options: &[&str]) -> Result<(), Failure> {
    if !is_postgres(options) {
        super::options::other_program(options)?;
        peers::install()?;
    }
    crate::postgres::install()?;
    moves::build()
}

pub(super) fn measure(options: &[&str]) -> Result<Section, Failure> {
    if is_postgres(options) {
        return nodes::measure();
    }
    let other = super::options::other_program(options)?;
    let here = Running::start("transitions", &moves::built())?;
    let other = other.map(|program| Running::start("transitions-other", &program)).transpose()?;
    let fastify = Peer::start_fastify(&here.installation)?;
    let restate = Peer::start_restate(&here.installation)?;
    let of_other = || other.as_ref().map_or(Err(Failure::environment("no other build")), Running::measure);
    let all: [(&'static str, Round<'_>); 8] = [
        (GROUPED, &|| raw("group", CLIENTS)),
        (PILOT, &|| here.measure()),
        (SINGLE, &|| raw("single", CLIENTS)),
        (FASTIFY, &|| fastify.measure(round_seconds())),
        (RESTATE, &|| restate.measure(round_seconds())),
        (RAW_ALONE, &|| raw("single", "1")),
        (ALONE, &|| here.measure_alone()),
        (OTHER, &of_other),
    ];
    let kinds = all.into_iter().filter(|(name, _)| other.is_some() || *name != OTHER);
    let turns = Turns::take(&kinds.collect::<Vec<_>>())?;
    let log_nanos = log_nanos(turns.per_second(PILOT).median())?;
    let memory = here.server.resident_mib()?;
    let bars = turns.bars(&[GROUPED, PILOT, FASTIFY, RESTATE]);
    Ok(Section {
        title: "Durable transitions",
        about: about(&Versions::read()?, log_nanos, memory),
        figures: figures(&turns, log_nanos),
        tables: vec![turns.table()],
        plots: vec![Plot {
            file: "transitions",
            title: format!("Durable transitions, {CLIENTS} callers"),
            drawing: Drawing::Bars { unit: "transitions per second", bars },
        }],
    })
}

fn is_postgres(options: &[&str]) -> bool {
    options == ["--store", "postgres"]
}

fn about(versions: &Versions, log_nanos: f64, memory: f64) -> String {
    let Versions { fastify, driver, postgres, restate, sdk, node } = versions;
    format!(
        "{CLIENTS} callers approve items and take approvals back over HTTP, each waiting until its transition is on disk; \
         {ITEMS} items, rounds of {} seconds, everything in turns. All share the machine's cores with the load generator. \
         CPU counts all processes of a server. The service used {memory:.0} MiB of memory, and has a third \
         credential that nobody uses, for whose token it searches every request.\n\n\
         The limit is plain SQLite writing the same rows without rules, tree or HTTP \
         (`crates/pilot-store/examples/raw_commit.rs`): with everything that has queued up in one commit, and with one \
         commit for each.\n\n\
         Fastify {fastify} on Node {node} with pg {driver} and {postgres} is what a careful team would write by hand \
         (`xtask/peers/fastify`): one process, 16 connections, a transaction for each transition that locks the item, \
         checks the rules and adds an entry to a hash chain of that item. Restate {restate} with its SDK {sdk} has a \
         virtual object for each item (`xtask/peers/restate`), with its default settings and on the same disk; it keeps \
         the state and the journal of each call, but no chain over all items.\n\n\
         The evidence log is what `crates/pilot-evidence/examples/log_cost.rs` measures: hashing an entry into the tree, \
         once to store it and once to sign it, encoding tiles, and two signatures a second. It takes {:.1} µs for each \
         entry. Writing tiles to disk and reading entries back are not in it.",
        round_seconds(),
        log_nanos / 1e3,
    )
}

fn figures(turns: &Turns, log_nanos: f64) -> Vec<Figure> {
    let ratio = |name: &str| turns.per_second(PILOT).over(&turns.per_second(name));
    let p50 = |name: &str| turns.rounds(name, |moves| moves.p50_micros);
    let cpu = turns.rounds(PILOT, |moves| moves.cpu_micros);
    // Nanoseconds of so many microseconds, in percent.
    let share = std::iter::repeat_n(log_nanos / 10.0, turns.count()).collect::<Rounds>().over(&cpu);
    let mut figures = vec![
        ratio(GROUPED).figure("pilot / raw with grouped commits", "", Target::AtLeast(0.60)),
        cpu.figure("server CPU per transition", "µs", Target::AtMost(28.0)),
        ratio(FASTIFY).figure("pilot / Fastify + PostgreSQL", "", Target::AtLeast(12.0)),
        ratio(RESTATE).figure("pilot / Restate", "", Target::AtLeast(40.0)),
        turns.rounds(PILOT, |moves| moves.p99_micros / 1e3).figure("p99", "ms", Target::AtMost(8.0)),
        p50(ALONE).over(&p50(RAW_ALONE)).figure("one caller alone / raw single commit, p50", "", Target::AtMost(1.3)),
        share.figure("evidence log, share of server CPU", "%", Target::AtMost(5.0)),
    ];
    if turns.names().contains(&OTHER) {
        let cpu = cpu.over(&turns.rounds(OTHER, |moves| moves.cpu_micros));
        figures.push(ratio(OTHER).figure("pilot / other build", "", Target::AtLeast(1.0)));
        figures.push(cpu.figure("pilot / other build, CPU per transition", "", Target::AtMost(1.0)));
    }
    figures
}

/// What the transparency log adds to each entry at that rate.
fn log_nanos(per_second: f64) -> Result<f64, Failure> {
    let report = output_of(moves::example("log_cost").args([LOGGED, &format!("{per_second:.0}")]))?;
    let found = report.trim().strip_prefix("nanos_per_entry ").and_then(|number| number.parse().ok());
    found.ok_or_else(|| Failure::environment(format!("the example log_cost printed {report}")))
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
        running.installation.measure(&running.server, &running.items, WARM_UP_SECONDS)?;
        Ok(running)
    }

    fn measure(&self) -> Result<Moves, Failure> {
        self.installation.measure(&self.server, &self.items, round_seconds())
    }

    fn measure_alone(&self) -> Result<Moves, Failure> {
        self.installation.measure_nodes(&[&self.server], "1", &self.items, round_seconds())
    }
}

/// Each on its own file, which is removed afterwards.
fn raw(mode: &str, callers: &str) -> Result<Moves, Failure> {
    let directory = Directory::make("raw")?;
    let mut command = moves::example("raw_commit");
    let report = output_of(command.arg(directory.path()).args([mode, &round_seconds().to_string(), callers]))?;
    Moves::read(&report, None)
}
