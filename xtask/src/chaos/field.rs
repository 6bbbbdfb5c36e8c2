//! The cluster as faults see it: who is primary and who must have every commit, and what mends a machine.

use crate::ha::database::{self, ask};
use crate::ha::network::{self, DATABASES, NODES, database_address, database_name, node_address, node_name};
use crate::ha::place::Place;
use crate::ha::process::{output, wait_until};
use crate::ha::service;
use crate::step::Failure;

use super::machine;

const START_SECONDS: u64 = 60;
/// Until a cluster that was mended is whole by itself: an old primary is rewound.
const REJOIN_SECONDS: u64 = 60;
/// Until it is whole when members are copied again.
const WHOLE_SECONDS: u64 = 120;

/// Backends of the service whose commit waits for the standby, and whether they have entries to commit.
const WAITING: &str = "SELECT a.pid, EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid \
     AND l.relation = 'entry'::regclass AND l.mode = 'RowExclusiveLock') AS writes \
     FROM pg_stat_activity a WHERE a.wait_event = 'SyncRep' AND a.usename = 'pilot'";

pub(crate) struct Field<'p> {
    pub(crate) place: &'p Place,
}

pub(crate) fn primary() -> Result<usize, Failure> {
    database::primary().ok_or_else(|| Failure::environment("there is no primary"))
}

impl Field<'_> {
    /// The standby that has every acknowledged commit, and the other one.
    pub(crate) fn standbys(&self) -> Result<(usize, usize), Failure> {
        let primary = primary()?;
        let sql = "SELECT application_name FROM pg_stat_replication WHERE sync_state = 'sync'";
        let name = self.sql(primary, sql).unwrap_or_default();
        let is_it = |member: &usize| database_name(*member) == name.trim();
        let synchronous = DATABASES.into_iter().find(is_it);
        let other = DATABASES.into_iter().find(|member| *member != primary && !is_it(member));
        synchronous.zip(other).ok_or_else(|| Failure::environment("there is no synchronous standby"))
    }

    /// Asks a member itself, over its socket: that works while it is cut off.
    pub(crate) fn sql(&self, member: usize, statement: &str) -> Option<String> {
        ask(self.place, member, "pilot", statement)
    }

    fn figures(&self, member: usize, statement: &str) -> Vec<u64> {
        let answer = self.sql(member, statement).unwrap_or_default();
        answer.trim().split('|').filter_map(|figure| figure.parse().ok()).collect()
    }

    /// How many commits wait for the standby, and how many of those have entries.
    pub(crate) fn waiting(&self, member: usize) -> (u64, u64) {
        let sql = format!("SELECT count(*), count(*) FILTER (WHERE writes) FROM ({WAITING}) w");
        pair(&self.figures(member, &sql))
    }

    /// Ends these waits, so that commits become visible which no standby may have.
    pub(crate) fn cancel_waits(&self, member: usize) -> (u64, u64) {
        let sql = format!(
            "WITH w AS MATERIALIZED ({WAITING}) \
             SELECT count(*) FILTER (WHERE pg_cancel_backend(pid)), count(*) FILTER (WHERE writes) FROM w"
        );
        pair(&self.figures(member, &sql))
    }

    /// A node's backends that have the lock on the ledger's end and wait for the node to go on.
    pub(crate) fn between_flights(&self, member: usize, node: usize) -> u64 {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_activity a WHERE a.state = 'idle in transaction' AND a.client_addr = '{}' \
             AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.relation = 'head'::regclass \
             AND l.mode = 'RowShareLock')",
            node_address(node)
        );
        self.figures(member, &sql).first().copied().unwrap_or(0)
    }

    /// Whether a member takes writes, as it sees itself.
    pub(crate) fn is_writable(&self, member: usize) -> bool {
        self.sql(member, "SELECT pg_is_in_recovery()").is_some_and(|answer| answer.trim() == "f")
    }

    /// Whether an old primary takes no writes any more because its Patroni saw to it.
    pub(crate) fn has_stood_down(&self, member: usize) -> bool {
        let name = database_name(member);
        let patroni = machine::running(&name, "patroni");
        let is_alive = !patroni.is_empty() && patroni.iter().all(|process| !machine::is_stopped(*process));
        let is_in_recovery = || {
            let answer = self.sql(member, "SELECT pg_is_in_recovery()");
            answer.is_some_and(|answer| answer.trim() == "t")
        };
        is_alive && (machine::running(&name, "postgres").is_empty() || is_in_recovery())
    }

    /// The index of the last entry that a member shows, and its leaf.
    pub(crate) fn last_entry(&self, member: usize) -> Option<(u64, String)> {
        let answer = self.sql(member, "SELECT idx, encode(leaf, 'hex') FROM entry ORDER BY idx DESC LIMIT 1")?;
        let (index, leaf) = answer.trim().split_once('|')?;
        Some((index.parse().ok()?, leaf.to_owned()))
    }

    pub(crate) fn has_entry(&self, member: usize, (index, leaf): &(u64, String)) -> bool {
        let sql = format!("SELECT encode(leaf, 'hex') = '{leaf}' FROM entry WHERE idx = {index}");
        self.sql(member, &sql).is_some_and(|answer| answer.trim() == "t")
    }

    /// Connects every machine, lets every process go on, and starts those that are missing.
    pub(crate) fn mend(&self) -> Result<(), Failure> {
        network::rejoin()?;
        for member in DATABASES {
            let name = database_name(member);
            network::connect(&name, true)?;
            machine::resume(&name);
            if machine::running(&name, "etcd").is_empty() {
                database::start_etcd(self.place, member)?;
            }
            if machine::running(&name, "patroni").is_empty() {
                database::start_patroni(self.place, member)?;
            }
        }
        for node in NODES {
            let name = node_name(node);
            network::connect(&name, true)?;
            machine::resume(&name);
            if machine::running(&name, "pilot").is_empty() {
                service::start_node(self.place, node)?;
            }
        }
        Ok(())
    }

    /// Gives the members that had to be copied again for that, as an operator would do.
    pub(crate) fn until_whole(&self) -> Result<Vec<usize>, Failure> {
        let mut copied = Vec::new();
        let whole = "one primary and two standbys again";
        if wait_until(whole, REJOIN_SECONDS, || database::is_whole(self.place)).is_err() {
            copied = self.astray()?;
            for member in &copied {
                eprintln!("  db{member} does not follow the primary; it is copied again");
                copy_again(*member)?;
            }
            wait_until(whole, WHOLE_SECONDS, || database::is_whole(self.place))?;
        }
        wait_until("three nodes ready again", START_SECONDS, || NODES.iter().all(|node| service::is_ready(*node)))?;
        Ok(copied)
    }

    /// Members that neither lead nor follow. Patroni 3.0 can start an old primary as a standby although it has a few
    /// bytes of log that its successor never had: if it was killed right after it had stood down.
    fn astray(&self) -> Result<Vec<usize>, Failure> {
        let primary = primary()?;
        let sql = "SELECT application_name FROM pg_stat_replication WHERE state = 'streaming'";
        let following = self.sql(primary, sql).unwrap_or_default();
        let follows = |member: &usize| following.lines().any(|name| name.trim() == database_name(*member));
        Ok(DATABASES.into_iter().filter(|member| *member != primary && !follows(member)).collect())
    }
}

/// What a watchdog does to a machine whose Patroni no longer runs: PostgreSQL does not survive it.
pub(crate) fn reset(member: usize) -> Result<(), Failure> {
    machine::kill(&database_name(member), &["patroni", "postgres"]).map(drop)
}

/// `patronictl reinit`
fn copy_again(member: usize) -> Result<(), Failure> {
    let url = format!("http://{}:8008/reinitialize", database_address(member));
    let arguments = ["--silent", "--fail", "--max-time", "10", "--data", r#"{"force":true}"#, &url];
    let asked = output(&mut network::on(None, "curl", &arguments));
    asked.map(drop).ok_or_else(|| Failure::environment(format!("db{member} cannot be copied again")))
}

/// Cuts a primary off, together with a node.
pub(crate) fn isolate(member: usize, node: usize) -> Result<(), Failure> {
    network::isolate(&[(database_name(member), database_address(member)), (node_name(node), node_address(node))])
}

fn pair(figures: &[u64]) -> (u64, u64) {
    match figures {
        [first, second] => (*first, *second),
        _ => (0, 0),
    }
}
