//! Durable transitions on PostgreSQL, by one node and by two, compared with pgbench, which writes the same rows with one
//! transaction for each transition.
//!
//! pgbench has it easier: its transactions have no order, so they do not wait for each other, and their entries are in
//! no tree.

use std::fs;
use std::path::PathBuf;

use super::super::load;
use super::super::moves::{
    self, CLIENTS, ITEMS, Installation, Moves, ROUND_SECONDS, Round, WARM_UP_SECONDS, compare, print_figure,
};
use super::database::{self, Server};
use crate::step::Failure;

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

pub(super) fn run() -> Result<(), Failure> {
    moves::build()?;
    let database = Server::start()?;
    let (one, two) = (Ledger::start(&database, "one", 1)?, Ledger::start(&database, "two", 2)?);
    let peer = Peer::prepare(&database)?;
    println!("{CLIENTS} clients, {ITEMS} items; load average before: {}", moves::load_average());
    let (statements, function): (Round<'_>, Round<'_>) =
        (&|| database.pgbench("peer", &peer.statements), &|| database.pgbench("peer", &peer.function));
    let (of_one, of_two): (Round<'_>, Round<'_>) = (&|| one.measure(), &|| two.measure());
    let medians = compare(&[
        ("pgbench", statements),
        ("pgbench, function", function),
        ("pilot, one node", of_one),
        ("pilot, two nodes", of_two),
    ])?;
    if let [statements, function, one, two] = medians.as_slice() {
        let ratio = |of: &Moves, to: &Moves| format!("{:.2}", of.per_second / to.per_second);
        print_figure("one node / pgbench", &ratio(one, statements), "at least 3");
        print_figure("one node / pgbench with one function", &ratio(one, function), "at least 1");
        print_figure("two nodes / one node", &ratio(two, one), "at least 1");
        println!("p99 {:.1} ms with one node, {:.1} ms with two\n", one.p99_micros / 1e3, two.p99_micros / 1e3);
    }
    measure_slow_commits(&database, &one, &two)?;
    print_growth(&database)?;
    println!("load average after: {}", moves::load_average());
    Ok(())
}

/// What the head allows if each commit takes this much longer.
fn measure_slow_commits(database: &Server, one: &Ledger, two: &Ledger) -> Result<(), Failure> {
    println!("each commit takes longer by   clients   one node, moves/s   two nodes, moves/s");
    let (one_many, two_many) = (one.more_items()?, two.more_items()?);
    for milliseconds in COMMIT_MILLISECONDS {
        database.delay_commits(milliseconds)?;
        for (clients, of_one, of_two) in [(CLIENTS, &one.items, &two.items), (MANY_CLIENTS, &one_many, &two_many)] {
            let of_one = one.measure_with(clients, of_one, ROUND_SECONDS)?.per_second;
            let of_two = two.measure_with(clients, of_two, ROUND_SECONDS)?.per_second;
            println!("{milliseconds:>22} ms {clients:>12} {of_one:>19.0} {of_two:>20.0}");
        }
    }
    database.delay_commits(0)?;
    println!();
    Ok(())
}

/// Bytes for each entry, of what was written by now.
fn print_growth(database: &Server) -> Result<(), Failure> {
    let statement = "SELECT size, pg_total_relation_size('entry') / size, pg_total_relation_size('tile') / size, \
                     pg_total_relation_size('document') / size FROM head";
    let found = database.sql("one", statement)?;
    let [entries, entry, tile, document] = found.trim().split('|').collect::<Vec<_>>()[..] else {
        return Err(Failure::environment(format!("psql printed {found}")));
    };
    println!(
        "after {entries} entries: {entry} bytes an entry with its indexes, {tile} of tiles, {document} of comments"
    );
    Ok(())
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

    fn more_items(&self) -> Result<String, Failure> {
        self.prepare(MANY_ITEMS)
    }

    fn measure(&self) -> Result<Moves, Failure> {
        self.measure_with(CLIENTS, &self.items, ROUND_SECONDS)
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
