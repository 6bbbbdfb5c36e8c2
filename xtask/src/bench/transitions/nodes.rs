//! Durable transitions on PostgreSQL, by one node and by two, compared with pgbench, which writes the same rows with one
//! transaction for each transition.
//!
//! pgbench has it easier: its transactions have no order, so they do not wait for each other, and their entries are in
//! no tree.

use std::fs;
use std::path::PathBuf;

use super::super::length::round_seconds;
use super::super::load;
use super::super::moves::{self, CLIENTS, ITEMS, Installation, Moves, WARM_UP_SECONDS};
use super::super::page::number;
use super::super::quiet;
use super::super::report::{Drawing, Figure, Plot, Section, Table, Target};
use super::super::turns::Turns;
use super::database::{self, Server};
use crate::step::Failure;

const PGBENCH: &str = "pgbench";
const PGBENCH_FUNCTION: &str = "pgbench, function";
const ONE: &str = "pilot, one node";
const TWO: &str = "pilot, two nodes";
const UNIT: &str = "transitions per second";
/// Enough to see what one head allows, whatever the clients wait for.
const MANY_CLIENTS: &str = "512";
const MANY_ITEMS: usize = 512;
const COMMIT_MILLISECONDS: [u32; 3] = [1, 2, 5];

/// What pgbench works on: items that have been submitted, and a sequence in place of the head.
const ITEMS_FOR_PGBENCH: &str = "
CREATE SEQUENCE place;
INSERT INTO item SELECT decode(lpad(to_hex(n), 32, '0'), 'hex'), n, 1, 'submitted', 'controlled-operation', 'ana',
  'An operation to measure', true, 2, 1, 1, 0, 0, 1, repeat('i', 275) FROM generate_series(0, 255) n;
CREATE FUNCTION move(which bytea, is_approval boolean) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  at bigint := nextval('place');
  nth bigint;
BEGIN
  UPDATE item SET version = version + 1, state = CASE WHEN is_approval THEN 'approved' ELSE 'submitted' END,
    waits_for = CASE WHEN is_approval THEN 4 ELSE 2 END, due_at = at,
    wakes_at = LEAST(wakes_at, at), last_entry = at, entries = entries + 1,
    data = repeat('i', 314) WHERE id = which RETURNING entries INTO nth;
  INSERT INTO entry VALUES (at, which, nth, sha256(which), decode(repeat('65', 447), 'hex'));
  IF NOT is_approval THEN
    INSERT INTO document VALUES (at, 1, decode(repeat('63', 85), 'hex'));
  END IF;
  RETURN at;
END $$;
";

/// Approves and takes back in turn, each client on four items of its own. The sizes are those of what pilot writes.
const STATEMENTS: &str = r"
\set number :client_id * 4 + random(0, 3)
\set is_approval random(0, 1)
BEGIN;
UPDATE item SET version = version + 1, state = CASE WHEN :is_approval = 1 THEN 'approved' ELSE 'submitted' END, waits_for = CASE WHEN :is_approval = 1 THEN 4 ELSE 2 END, due_at = version, wakes_at = LEAST(wakes_at, version), last_entry = last_entry + 1, entries = entries + 1, data = repeat('i', 314) WHERE id = decode(lpad(to_hex(:number::integer), 32, '0'), 'hex') RETURNING entries, nextval('place') AS at \gset
INSERT INTO entry VALUES (:at, decode(lpad(to_hex(:number::integer), 32, '0'), 'hex'), :entries, sha256('leaf'), decode(repeat('65', 447), 'hex'));
\if :is_approval
SELECT 1;
\else
INSERT INTO document VALUES (:at, 1, decode(repeat('63', 85), 'hex'));
\endif
COMMIT;
";

const FUNCTION: &str = r"
\set number :client_id * 4 + random(0, 3)
\set is_approval random(0, 1)
SELECT move(decode(lpad(to_hex(:number::integer), 32, '0'), 'hex'), :is_approval = 1);
";

pub(super) fn measure() -> Result<Section, Failure> {
    let database = Server::start()?;
    let (one, two) = (Ledger::start(&database, "one", 1)?, Ledger::start(&database, "two", 2)?);
    let peer = Peer::prepare(&database)?;
    let turns = Turns::take(&[
        (PGBENCH, &|| database.pgbench("peer", &peer.statements)),
        (PGBENCH_FUNCTION, &|| database.pgbench("peer", &peer.function)),
        (ONE, &|| one.measure()),
        (TWO, &|| two.measure()),
    ])?;
    let slow = measure_slow_commits(&database, &one, &two)?;
    let bars = turns.bars(&turns.names());
    Ok(Section {
        title: "Durable transitions on PostgreSQL",
        about: format!("{} {}", about()?, describe_growth(&database)?),
        figures: figures(&turns),
        tables: vec![turns.table(), slow_table(&slow)],
        plots: vec![
            Plot {
                file: "transitions-postgres",
                title: format!("Durable transitions on PostgreSQL, {CLIENTS} callers"),
                drawing: Drawing::Bars { unit: UNIT, bars },
            },
            Plot {
                file: "transitions-slow-commits",
                title: "Durable transitions on PostgreSQL with slow commits".into(),
                drawing: Drawing::Curves { unit: UNIT, along: "milliseconds more for each commit", curves: slow },
            },
        ],
    })
}

fn about() -> Result<String, Failure> {
    Ok(format!(
        "The same load on {}, with commits that wait for the disk, by one node and by two on one ledger. pgbench writes \
         the same rows with one transaction for each transition: as single statements, and as one function in the \
         database. It has it easier: its transactions have no order, so they do not wait for each other, and their \
         entries are in no tree. CPU is that of the nodes, without the database.\n\n\
         The second table shows what remains if each commit takes longer by so much, with its locks held, as a distant \
         standby would make it.",
        database::version()?
    ))
}

fn figures(turns: &Turns) -> Vec<Figure> {
    let ratio = |of: &str, to: &str| turns.per_second(of).over(&turns.per_second(to));
    vec![
        ratio(ONE, PGBENCH).figure("one node / pgbench", "", Target::AtLeast(3.0)),
        ratio(ONE, PGBENCH_FUNCTION).figure("one node / pgbench with one function", "", Target::AtLeast(1.0)),
        ratio(TWO, ONE).figure("two nodes / one node", "", Target::AtLeast(1.0)),
    ]
}

/// What the head allows if each commit takes this much longer: a curve for each number of callers and of nodes.
fn measure_slow_commits(database: &Server, one: &Ledger, two: &Ledger) -> Result<Curves, Failure> {
    let kinds = [
        (one, CLIENTS, one.items.clone()),
        (two, CLIENTS, two.items.clone()),
        (one, MANY_CLIENTS, one.prepare(MANY_ITEMS)?),
        (two, MANY_CLIENTS, two.prepare(MANY_ITEMS)?),
    ];
    let name = |ledger: &Ledger, clients: &str| match ledger.nodes.len() {
        1 => format!("one node, {clients} callers"),
        nodes => format!("{nodes} nodes, {clients} callers"),
    };
    let mut curves: Curves = kinds.iter().map(|(ledger, clients, _)| (name(ledger, clients), Vec::new())).collect();
    for milliseconds in COMMIT_MILLISECONDS {
        database.delay_commits(milliseconds)?;
        for ((ledger, clients, items), (name, curve)) in kinds.iter().zip(&mut curves) {
            let moves = quiet::undisturbed(|| ledger.measure_with(clients, items, round_seconds()))?;
            println!("{name}, {milliseconds} ms more for each commit: {:.0} moves/s", moves.per_second);
            curve.push((f64::from(milliseconds), moves.per_second));
        }
    }
    database.delay_commits(0)?;
    Ok(curves)
}

/// Transitions per second over milliseconds.
type Curves = Vec<(String, Vec<(f64, f64)>)>;

fn slow_table(curves: &Curves) -> Table {
    let row = |(name, points): &(String, Vec<(f64, f64)>)| {
        let cells = points.iter().map(|(_, per_second)| number(*per_second));
        std::iter::once(name.clone()).chain(cells).collect()
    };
    let columns = vec!["each commit takes longer by", "1 ms", "2 ms", "5 ms"];
    Table { columns, rows: curves.iter().map(row).collect() }
}

/// Bytes for each entry, of what was written by now.
fn describe_growth(database: &Server) -> Result<String, Failure> {
    let statement = "SELECT size, pg_total_relation_size('entry') / size, pg_total_relation_size('tile') / size, \
                     pg_total_relation_size('document') / size FROM head";
    let found = database.sql("one", statement)?;
    let [_, entry, tile, document] = found.trim().split('|').collect::<Vec<_>>()[..] else {
        return Err(Failure::environment(format!("psql printed {found}")));
    };
    Ok(format!("An entry takes {entry} bytes with its indexes, {tile} of tiles and {document} of comments."))
}

/// One ledger, and the nodes that write it.
struct Ledger {
    nodes: Vec<load::Server>,
    items: String,
    /// The first has the actors' tokens.
    installations: Vec<Installation>,
}

impl Ledger {
    fn start(database: &Server, name: &str, nodes: usize) -> Result<Ledger, Failure> {
        database.sql("postgres", &format!("CREATE DATABASE {name}"))?;
        let url = database.url(name);
        let mut ledger = Ledger { nodes: Vec::new(), items: String::new(), installations: Vec::new() };
        for number in 1..=nodes {
            let sections = format!("[store]\nurl = \"{url}\"\n[node]\nname = \"node{number}\"\n");
            let installation = match ledger.installations.first() {
                None => Installation::make_with(&format!("{name}-{number}"), &sections)?,
                Some(first) => first.another(&format!("{name}-{number}"), &sections)?,
            };
            ledger.nodes.push(installation.start()?);
            ledger.installations.push(installation);
        }
        ledger.items = ledger.prepare(ITEMS)?;
        ledger.measure_with(CLIENTS, &ledger.items, WARM_UP_SECONDS)?;
        Ok(ledger)
    }

    fn prepare(&self, items: usize) -> Result<String, Failure> {
        match (self.installations.first(), self.nodes.first()) {
            (Some(installation), Some(node)) => installation.prepare(node, items),
            _ => Err(Failure::environment("a ledger without nodes")),
        }
    }

    fn measure(&self) -> Result<Moves, Failure> {
        self.measure_with(CLIENTS, &self.items, round_seconds())
    }

    fn measure_with(&self, clients: &str, items: &str, seconds: u32) -> Result<Moves, Failure> {
        let nodes: Vec<_> = self.nodes.iter().collect();
        let installation = self.installations.first().ok_or_else(|| Failure::environment("a ledger without nodes"))?;
        installation.measure_nodes(&nodes, clients, items, seconds)
    }
}

/// A database with the same tables, and the scripts for it.
struct Peer {
    statements: PathBuf,
    function: PathBuf,
    _directory: moves::Directory,
}

impl Peer {
    fn prepare(database: &Server) -> Result<Peer, Failure> {
        database.sql("postgres", "CREATE DATABASE peer")?;
        database.sql("peer", &format!("{}{ITEMS_FOR_PGBENCH}", database::schema()?))?;
        let directory = moves::Directory::make("peer")?;
        let file = |name: &str, script: &str| {
            let path = directory.path().join(name);
            let written = fs::write(&path, script);
            written.map(|()| path).map_err(|error| Failure::environment(format!("{name}: {error}")))
        };
        let (statements, function) = (file("statements.sql", STATEMENTS)?, file("function.sql", FUNCTION)?);
        Ok(Peer { statements, function, _directory: directory })
    }
}
