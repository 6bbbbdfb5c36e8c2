//! The nodes that share the ledger, and which of them does what only one has to do.

use std::time::Duration;

use pilot_core::time::Time;
use tokio_postgres::{Error, Row};

use tokio::time::Instant;

use crate::{Duty, NodeState};

/// Without a clean commit for this long, a node cannot know that its credentials are still valid, and answers nobody.
pub(super) const STALE: Duration = Duration::from_secs(1);
/// How often a node renews its duties.
pub(super) const RENEWED: Duration = Duration::from_secs(2);
/// How long a lease lasts, and for how long of it the holder acts: it stops before anyone else can begin.
const LEASED: Duration = Duration::from_secs(6);
const TRUSTED: Duration = Duration::from_secs(5);
/// A node that was not heard of for this long answers nobody, so nobody waits for it.
pub(super) const ALIVE: Duration = STALE;

/// Takes duties that are free, and keeps those that are held. Leases save work; they decide nothing.
pub(super) const LEASE: &str = "UPDATE duty SET node = $1, fence = fence + (node <> $1)::integer, \
     until = t.now + 6000000 FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now) t \
     WHERE name = ANY($2) AND (node = $1 OR until < t.now)";
/// The ones heard of last: a node that starts and fails over and over is a new one each time.
pub(super) const NODES: &str = "SELECT * FROM (SELECT id, name, build, applied, seen, started FROM node \
     ORDER BY seen DESC, id LIMIT 100) n ORDER BY started, id";
/// Fewer than are read, so that no live node is overlooked.
pub(super) const NODES_MAX: i64 = 64;
pub(super) const DUTIES: &str = "SELECT name, node, fence, until FROM duty ORDER BY name";

/// The team as of the last clean beat.
pub(super) struct Team {
    pub(super) nodes: Vec<NodeRow>,
    duties: Vec<DutyRow>,
    /// When this node last renewed its duties, by the monotonic clock.
    renewed_at: Option<Instant>,
    /// The database's time when this was read.
    time: Time,
}

pub(super) struct NodeRow {
    pub(super) id: String,
    name: String,
    build: String,
    pub(super) applied: u64,
    seen: Time,
    started: Time,
}

struct DutyRow {
    name: String,
    node: String,
    fence: i64,
    until: Time,
}

/// Every duty that this program knows.
pub(super) fn all() -> Vec<&'static str> {
    Duty::ALL.iter().map(|duty| duty.as_str()).collect()
}

impl Default for Team {
    fn default() -> Team {
        Team { nodes: Vec::new(), duties: Vec::new(), renewed_at: None, time: Time::EPOCH }
    }
}

impl Team {
    pub(super) fn read(nodes: &[Row], duties: &[Row], time: Time, renewed_at: Option<Instant>) -> Result<Team, Error> {
        let micros = |row: &Row, column: usize| row.try_get(column).map(Time::from_unix_micros);
        let node = |row: &Row| {
            Ok(NodeRow {
                id: row.try_get(0)?,
                name: row.try_get(1)?,
                build: row.try_get(2)?,
                applied: u64::try_from(row.try_get::<_, i64>(3)?).unwrap_or(0),
                seen: micros(row, 4)?,
                started: micros(row, 5)?,
            })
        };
        let duty = |row: &Row| {
            let (name, node, fence) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            Ok(DutyRow { name, node, fence, until: micros(row, 3)? })
        };
        Ok(Team {
            nodes: nodes.iter().map(node).collect::<Result<_, Error>>()?,
            duties: duties.iter().map(duty).collect::<Result<_, Error>>()?,
            renewed_at,
            time,
        })
    }

    /// The fence under which this node does it, if it does.
    pub(super) fn fence(&self, duty: Duty, me: &str) -> Option<u64> {
        let renewed_at = self.renewed_at.filter(|renewed_at| renewed_at.elapsed() < TRUSTED)?;
        let row = self.duties.iter().find(|row| row.name == duty.as_str() && row.node == me)?;
        // A row that was read before the last renewal was lost says so by its time.
        debug_assert!(TRUSTED < LEASED && renewed_at <= Instant::now());
        u64::try_from(row.fence).ok()
    }

    fn is_alive(&self, row: &NodeRow) -> bool {
        self.time.since(row.seen) <= ALIVE
    }

    /// The smallest number of entries that every live node has applied.
    pub(super) fn applied(&self) -> Option<u64> {
        self.nodes.iter().filter(|row| self.is_alive(row)).map(|row| row.applied).min()
    }

    /// Whether every other node has been silent for so long that it answers nobody.
    pub(super) fn is_only_alive(&self, me: &str) -> bool {
        self.nodes.iter().filter(|row| self.is_alive(row)).all(|row| row.id == me)
    }

    pub(super) fn is_alone(&self, me: &str) -> bool {
        // Longer than for waiting: a hint too many costs little.
        let is_near = |row: &&NodeRow| self.time.since(row.seen) <= 10 * ALIVE;
        self.nodes.iter().filter(is_near).all(|row| row.id == me)
    }

    pub(super) fn states(&self, me: &str, size: u64) -> Vec<NodeState> {
        let duties_of = |id: &str| {
            let held = self.duties.iter().filter(|row| row.node == id && row.until > self.time);
            held.map(|row| row.name.clone()).collect()
        };
        let state = |row: &NodeRow| NodeState {
            id: row.id.clone(),
            name: row.name.clone(),
            build: row.build.clone(),
            is_this: row.id == me,
            is_alive: self.is_alive(row),
            applied: row.applied,
            lag: size.saturating_sub(row.applied),
            seen_at: Some(row.seen),
            started_at: Some(row.started),
            duties: duties_of(&row.id),
        };
        self.nodes.iter().map(state).collect()
    }
}
