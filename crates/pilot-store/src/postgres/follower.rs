//! The heartbeat: a small write four times a second, which proves that this server still takes commits and that
//! everything read before it is durable. It brings what other nodes wrote, and renews this node's duties.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pilot_evidence::merkle::Edge;
use tokio_postgres::{Error, Row};

use tokio::time::Instant;

use super::failure::{self, Failure};
use super::flight::{self, BEGIN, Head, LEAVES, LEAVES_MAX, number};
use super::node::Node;
use super::opening::{self, SCHEMA_VERSION};
use super::pipeline::{Unsent, in_order};
use super::session::{Heard, Session};
use super::team::{self, Team};
use crate::StoreError;

const PAUSE: Duration = Duration::from_millis(250);
/// A beat that follows a hint waits this long for more of them.
const TOGETHER: Duration = Duration::from_millis(5);
/// A beat that takes longer than this has no use any more. Longer than the server lets a lock be waited for, so that an
/// earlier beat whose commit still waits is not in the way of every later one.
const PATIENCE: Duration = Duration::from_secs(6);

const OWN_BEAT: &str = "INSERT INTO node (id, name, build, applied, beat, seen, started) \
     SELECT $1, $2, $3, $4, 0, t.now, t.now \
     FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now) t \
     ON CONFLICT (id) DO UPDATE SET beat = node.beat + 1, applied = excluded.applied, seen = excluded.seen";
const HEAD: &str = "SELECT size, root, last_at, epoch, \
     (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, \
     (SELECT oldest_writer FROM pilot_schema WHERE id = 0) FROM head WHERE id = 0";

pub(super) struct Follower {
    node: Arc<Node>,
    session: Option<Session>,
    renewed_at: Option<Instant>,
    /// Another configuration or program has taken over, so this node will never do anything again. Its duties run out.
    is_superseded: bool,
}

impl Follower {
    pub(super) fn new(node: Arc<Node>) -> Follower {
        Follower { node, session: None, renewed_at: None, is_superseded: false }
    }

    pub(super) async fn run(mut self) {
        let node = Arc::clone(&self.node);
        let mut stopping = node.is_stopping.subscribe();
        let (mut next, mut is_failing) = (Instant::now(), false);
        while !*stopping.borrow() {
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                () = node.hints.notified() => tokio::time::sleep(TOGETHER).await,
                _ = stopping.changed() => break,
            }
            next = Instant::now() + PAUSE;
            match self.beat().await {
                Ok(()) => {
                    if std::mem::replace(&mut is_failing, false) {
                        tracing::info!("this node reaches the ledger again");
                    }
                }
                Err(Failure::Damaged(cause)) => {
                    node.fail(&StoreError::Damaged(cause));
                    next = Instant::now() + PATIENCE;
                }
                Err(Failure::Superseded(cause)) => {
                    self.is_superseded = true;
                    node.fail(&StoreError::Unavailable(cause));
                }
                Err(other) => {
                    // One line, however long it lasts.
                    if !std::mem::replace(&mut is_failing, true) {
                        let cause = other.into_cause();
                        tracing::error!(cause, "this node cannot reach the ledger, and answers nobody until it can");
                    }
                    if let Some(session) = self.session.take() {
                        node.address.avoid(session.host);
                    }
                }
            }
        }
        self.leave().await;
    }

    /// One heartbeat. An error means that nothing is known to be durable that was not known before.
    pub(super) async fn beat(&mut self) -> Result<(), Failure> {
        let beaten = tokio::time::timeout(PATIENCE, self.beat_once()).await;
        beaten.unwrap_or_else(|_| Err(Failure::Transient("the database does not answer a heartbeat".into())))
    }

    async fn beat_once(&mut self) -> Result<(), Failure> {
        let node = Arc::clone(&self.node);
        let is_time = self.renewed_at.is_none_or(|renewed_at| renewed_at.elapsed() >= team::RENEWED);
        let renews = is_time && !self.is_superseded;
        let session = self.connected().await?;
        session.take_warning();
        let (session_server, host) = (session.server.clone(), session.host);
        let (sent_at, known) = (Instant::now(), node.known());
        let (size, applied) = (number(known.size()), number(node.applied.load(Ordering::Acquire)));
        let wanted: Vec<&str> = if renews { node.wanted() } else { Vec::new() };
        let asked = |text: &'static str, values| -> Unsent<'_, Result<Vec<Row>, Error>> {
            Box::pin(async move { session.query(text, values).await })
        };
        let beat_values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&node.id, &node.name, &node.build, &applied];
        let (lease_values, leaf_values): ([&(dyn tokio_postgres::types::ToSql + Sync); 2], [_; 1]) =
            ([&node.id, &wanted], [&size as &(dyn tokio_postgres::types::ToSql + Sync)]);
        let unsent: Vec<Unsent<'_, Result<Vec<Row>, Error>>> = vec![
            Box::pin(async { session.run(BEGIN).await.map(|()| Vec::new()) }),
            asked(OWN_BEAT, &beat_values),
            asked(team::LEASE, &lease_values),
            asked(HEAD, &[]),
            asked(LEAVES, &leaf_values),
            asked(team::NODES, &[]),
            asked(team::DUTIES, &[]),
            Box::pin(async { session.run("COMMIT").await.map(|()| Vec::new()) }),
        ];
        let answers = in_order(unsent).await.into_iter().collect::<Result<Vec<_>, _>>();
        let answers = answers.map_err(|error| not_damage(failure::of_statement(&error)))?;
        if session.take_warning() {
            return Err(Failure::Transient("PostgreSQL warned at the commit".into()));
        }
        let Ok([_, _, _, head, leaves, nodes, duties, _]) = <[Vec<Row>; 8]>::try_from(answers) else {
            return Err(Failure::Damaged("the database answers less than it was asked".into()));
        };
        let row = head.first().ok_or_else(|| Failure::Damaged("the head of the ledger is missing".into()))?;
        let head = Head::read(row).map_err(|error| failure::of_statement(&error))?;
        check_version(row.try_get(5).map_err(|error| failure::of_statement(&error))?)?;
        (node.hear)(head.time);
        node.check_joined(head.epoch)?;
        let edge = match head.size.checked_sub(known.size()) {
            Some(behind) if behind > LEAVES_MAX => caught_up(session, &known, &head).await?,
            _ => flight::grown(Edge::clone(&known), &leaves, &head)?,
        };
        if !wanted.is_empty() {
            self.renewed_at = Some(sent_at);
        }
        let team = Team::read(&nodes, &duties, head.time, self.renewed_at);
        node.team.send_replace(Arc::new(team.map_err(|error| failure::of_statement(&error))?));
        node.address.prefer(host);
        node.is_served_by(&session_server);
        node.is_durable(edge, sent_at);
        Ok(())
    }

    async fn connected(&mut self) -> Result<&Session, Failure> {
        if self.session.as_ref().is_some_and(Session::is_closed) {
            self.session = None;
        }
        if self.session.is_none() {
            let node = Arc::clone(&self.node);
            let heard: Heard = Box::new(move |size| {
                if size > node.durable.borrow().size() {
                    node.hints.notify_one();
                }
            });
            let failed = |error| Failure::Transient(failure::describe(&error));
            let session = Session::open_for_node(&self.node.address, Some(heard)).await.map_err(failed)?;
            session.run("LISTEN pilot").await.map_err(failed)?;
            self.note_replication(&session).await.map_err(failed)?;
            let texts = [OWN_BEAT, HEAD, LEAVES, team::LEASE, team::NODES, team::DUTIES];
            session.prepare(&texts).await.map_err(failed)?;
            self.session = Some(session);
        }
        self.session.as_ref().ok_or_else(|| Failure::Transient("there is no connection".into()))
    }

    /// What an acknowledgement is worth.
    async fn note_replication(&self, session: &Session) -> Result<(), Error> {
        let row = session.query_opt("SELECT current_setting('synchronous_standby_names') <> ''", &[]).await?;
        let is_replicated = row.map(|row| row.try_get(0)).transpose()?.unwrap_or(false);
        if !is_replicated {
            tracing::warn!(
                "the database waits for no standby (synchronous_standby_names is empty): if its server is lost, \
                 acknowledged entries are lost with it, unless its storage is replicated"
            );
        }
        self.node.is_replicated.store(is_replicated, Ordering::Relaxed);
        Ok(())
    }

    /// The others need not wait for this node's duties to expire.
    async fn leave(&mut self) {
        let id = self.node.id.clone();
        let Some(session) = &self.session else { return };
        let left = async {
            session.execute("UPDATE duty SET until = 0 WHERE node = $1", &[&id]).await?;
            session.execute("DELETE FROM node WHERE id = $1", &[&id]).await
        };
        if tokio::time::timeout(team::STALE, left).await.is_err() {
            tracing::warn!("this node could not sign off; the others take over its duties when they expire");
        }
    }
}

/// Someone may have changed the tables in a way that this program does not know, while it was running.
fn check_version(oldest_writer: Option<i32>) -> Result<(), Failure> {
    match oldest_writer {
        Some(oldest) if oldest <= SCHEMA_VERSION => Ok(()),
        _ => Err(Failure::Superseded(
            "a newer pilot has changed the tables, and this one may no longer write them; install the newer one".into(),
        )),
    }
}

/// A statement that fails here says nothing about the ledger, except that it cannot be asked.
fn not_damage(failure: Failure) -> Failure {
    match failure {
        Failure::Faulty { cause, .. } => Failure::Transient(cause),
        other => other,
    }
}

/// By tiles: cheaper than by entries, for a node that was away for long.
async fn caught_up(session: &Session, known: &Edge, head: &Head) -> Result<Edge, Failure> {
    let damaged = |error: StoreError| match error {
        StoreError::Damaged(what) => Failure::Damaged(what),
        other => Failure::Transient(other.to_string()),
    };
    let edge = opening::load_edge(session, head.size).await.map_err(damaged)?;
    if edge.root() != head.root {
        return Err(Failure::Damaged("the entries do not match the head stored with them".into()));
    }
    let size = known.size();
    let then = super::tiles::with_tree(session, &edge, |mut tree| tree.edge_at(size)).await.map_err(damaged)?;
    if then.root() != known.root() {
        return Err(Failure::Damaged(format!("the first {size} entries are not those that were acknowledged")));
    }
    Ok(edge)
}
