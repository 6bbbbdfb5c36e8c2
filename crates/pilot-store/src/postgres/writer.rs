//! Takes what has queued up, decides it under the lock on the end of the ledger, and commits it as a group.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pilot_core::time::Time;
use pilot_evidence::merkle::Edge;

use tokio::time::Instant;

use super::desk::Queued;
use super::failure::{self, Failure};
use super::flight::{self, BEAT, BEGIN, LOCK, Landing, Wanted, number};
use super::group::Group;
use super::node::Node;
use super::pipeline::{Unsent, in_order};
use super::session::Session;
use crate::{Outcome, StoreError};

/// The most writes one commit takes.
const GROUP_MAX: usize = 512;
/// A group that has grown to this many bytes takes no further write.
const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longer than the server lets a lock be waited for. A server that is silent for so long may have been replaced.
const FLIGHT_TIMEOUT: Duration = Duration::from_secs(6);
const SILENT: &str = "the database does not answer";
/// With the lock in hand, others are waited for at most this long, and not longer than a commit takes.
const GATHERED_MAX: Duration = Duration::from_millis(5);
/// A group of this size takes what is there, and waits for nobody.
const GROUP_LARGE: usize = 256;
const RETRY_PAUSE_MAX: Duration = Duration::from_millis(50);

pub(super) struct Writer {
    node: Arc<Node>,
    session: Option<Session>,
    retries: u32,
    /// How long the last commit took.
    commit_took: Duration,
}

/// How an attempt ended.
enum Attempt {
    /// Everything that fitted is settled; the rest has to wait for another group.
    Settled {
        outcomes: Vec<Outcome>,
        rest: Vec<Queued>,
        group: Vec<Queued>,
    },
    Failed {
        failure: Failure,
        group: Vec<Queued>,
        sent: Option<Sent>,
    },
}

/// A group whose commit was sent.
struct Sent {
    /// When what it was decided on was asked for. A later look says nothing about what others wrote since.
    at: Instant,
    outcomes: Vec<Outcome>,
    rest: Vec<Queued>,
    edge: Edge,
    /// The index of its first entry, and that entry. Without one, only facts were changed.
    first: Option<(u64, Vec<u8>)>,
    /// The entry with which another configuration was adopted.
    adopted: Option<u64>,
}

impl Attempt {
    /// Facts may be changed again; an entry must not be recorded twice.
    fn unknown(cause: String, group: Vec<Queued>, sent: Sent) -> Attempt {
        if sent.first.is_some() {
            return Attempt::Failed { failure: Failure::Unknown(cause), group, sent: Some(sent) };
        }
        Attempt::Failed { failure: Failure::Transient(cause), group: rejoined(group, sent.rest), sent: None }
    }
}

impl Writer {
    pub(super) fn new(node: Arc<Node>) -> Writer {
        Writer { node, session: None, retries: 0, commit_took: Duration::ZERO }
    }

    /// Runs until nobody can hand in anything more.
    pub(super) async fn run(mut self) {
        while self.node.desk.has_work().await {
            let group = self.node.desk.take(GROUP_MAX);
            self.settle(group).await;
        }
    }

    /// Until each write is answered, by whatever it takes within its deadline.
    async fn settle(&mut self, group: Vec<Queued>) {
        // Groups to settle one after the other: normally one, after a faulty one each write for itself.
        let mut groups = VecDeque::from([group]);
        while let Some(group) = groups.pop_front() {
            let group = self.node.desk.still_wanted(group);
            if group.is_empty() {
                continue;
            }
            if let Err(error) = self.node.check_trust() {
                self.answer_all(group, &error);
                continue;
            }
            match self.attempt(group).await {
                Attempt::Settled { outcomes, rest, group } => self.acknowledge(&group, outcomes, rest),
                Attempt::Failed { failure: Failure::Unknown(cause), group, sent: Some(sent) } => {
                    if let Some(again) = self.settle_unknown(group, sent, &cause).await {
                        groups.push_front(again);
                    }
                }
                Attempt::Failed { failure: Failure::Faulty { cause, .. }, group, .. } if group.len() > 1 => {
                    tracing::warn!(cause, "a write does not fit the database; its group is settled one by one");
                    for queued in group.into_iter().rev() {
                        groups.push_front(vec![queued]);
                    }
                }
                Attempt::Failed { failure: Failure::Transient(cause) | Failure::Unknown(cause), group, .. } => {
                    tracing::debug!(cause, "a group of writes is tried again");
                    self.pause().await;
                    groups.push_front(group);
                }
                Attempt::Failed { failure: Failure::Superseded(cause), group, .. } => {
                    let error = StoreError::Unavailable(cause);
                    self.node.fail(&error);
                    self.answer_all(group, &error);
                }
                Attempt::Failed { failure: Failure::Faulty { cause, contradicts: false }, group, .. } => {
                    tracing::error!(cause, "the database refuses a write");
                    self.answer_all(group, &StoreError::Unavailable(cause));
                }
                Attempt::Failed {
                    failure: Failure::Damaged(cause) | Failure::Faulty { cause, contradicts: true },
                    group,
                    ..
                } => {
                    let error = StoreError::Damaged(cause);
                    self.node.fail(&error);
                    self.answer_all(group, &error);
                }
            }
        }
    }

    fn acknowledge(&mut self, group: &[Queued], outcomes: Vec<Outcome>, rest: Vec<Queued>) {
        self.retries = 0;
        for (queued, outcome) in group.iter().zip(outcomes) {
            self.node.desk.answer(queued, Ok(outcome));
        }
        if !rest.is_empty() {
            self.node.desk.put_back(rest);
        }
    }

    fn answer_all(&self, group: Vec<Queued>, error: &StoreError) {
        for queued in group {
            self.node.desk.answer(&queued, Err(error.clone()));
        }
    }

    /// Longer with every failure in a row, and never the same on two nodes.
    async fn pause(&mut self) {
        self.retries = self.retries.saturating_add(1);
        let most = Duration::from_millis(1 << self.retries.min(6)).min(RETRY_PAUSE_MAX);
        let mixed = self.node.id.bytes().fold(self.retries, |mixed, byte| mixed.wrapping_mul(31) ^ u32::from(byte));
        let part = mixed % 256 + 1;
        tokio::time::sleep(most * part / 256).await;
    }

    async fn connected(&mut self) -> Result<&Session, Failure> {
        if self.session.as_ref().is_some_and(|session| session.is_closed() || !self.node.is_at(&session.server)) {
            self.session = None;
        }
        if self.session.is_none() {
            let failed = |error| Failure::Transient(failure::describe(&error));
            let session = Session::open_for_node(&self.node.address, None).await.map_err(failed)?;
            if !self.node.is_at(&session.server) {
                return Err(Failure::Transient("this node does not know yet which server takes commits".into()));
            }
            let prepared = tokio::time::timeout(FLIGHT_TIMEOUT, session.prepare(flight::STATEMENTS)).await;
            prepared.map_err(|_| Failure::Transient(SILENT.into()))?.map_err(failed)?;
            self.session = Some(session);
        }
        self.session.as_ref().ok_or_else(|| Failure::Transient("there is no connection".into()))
    }

    async fn attempt(&mut self, mut group: Vec<Queued>) -> Attempt {
        let node = Arc::clone(&self.node);
        // Other nodes wait for the lock with groups of their own; while one of them has it, ours gathers by itself.
        let is_alone = node.team.borrow().is_alone(&node.id);
        let moment = if is_alone { self.commit_took.min(GATHERED_MAX) } else { Duration::ZERO };
        let session = match self.connected().await {
            Ok(session) => session,
            Err(failure) => return Attempt::Failed { failure, group, sent: None },
        };
        session.take_warning();
        let (sent_at, known) = (Instant::now(), node.known());
        let wanted = Wanted::of(&group);
        let locked = tokio::time::timeout(FLIGHT_TIMEOUT, flight::lock_and_read(session, &wanted, &known)).await;
        let Ok(locked) = locked else {
            // Nothing was sent that could commit. Another server may be in charge by now.
            self.session = None;
            return Attempt::Failed { failure: Failure::Transient(SILENT.into()), group, sent: None };
        };
        let mut ground = match locked {
            Ok(ground) => ground,
            Err(failure) => {
                self.roll_back().await;
                return Attempt::Failed { failure, group, sent: None };
            }
        };
        if group.len() < GROUP_LARGE {
            let more = node.desk.take_more(GROUP_MAX - group.len(), moment).await;
            let wanted = Wanted::of(&more);
            group.extend(more);
            let read = flight::read_more(session, &wanted, &mut ground);
            let Ok(read) = tokio::time::timeout(FLIGHT_TIMEOUT, read).await else {
                self.session = None;
                return Attempt::Failed { failure: Failure::Transient(SILENT.into()), group, sent: None };
            };
            if let Err(failure) = read {
                self.roll_back().await;
                return Attempt::Failed { failure, group, sent: None };
            }
        }
        if let Err(failure) = node.check_joined(ground.epoch) {
            self.roll_back().await;
            return Attempt::Failed { failure, group, sent: None };
        }
        // From here on they may be recorded at any moment. Those who were told that nothing was written are left out.
        let mut group = node.desk.claim(group);
        let size_before = ground.edge.size();
        let mut decided = Group::on(ground);
        let outcomes = match decide_all(&mut decided, &group, &*node.now) {
            Ok(outcomes) => outcomes,
            Err(failure) => {
                node.desk.unclaim(&group);
                self.roll_back().await;
                return Attempt::Failed { failure, group, sent: None };
            }
        };
        let rest = group.split_off(outcomes.len());
        node.desk.unclaim(&rest);
        if !decided.changes.has_to_be_committed() {
            // Every write was refused: there is nothing to write, and no reason to wait for the disk.
            self.roll_back().await;
            return Attempt::Settled { outcomes, rest, group };
        }
        let first = decided.changes.entries.first().map(|entry| (entry.index, entry.bytes.clone()));
        let landing = flight::write_and_commit(session, &decided, size_before, &node.id);
        let committing = Instant::now();
        let landing = tokio::time::timeout(FLIGHT_TIMEOUT, landing).await;
        // Silence means that nobody knows: it is looked for where commits are taken then.
        let landing = landing.unwrap_or_else(|_| Landing::Failed(Failure::Unknown(SILENT.into())));
        let is_clean = !session.take_warning();
        let sent =
            Sent { at: sent_at, outcomes, rest, edge: decided.ground.edge, first, adopted: decided.changes.adopted };
        match landing {
            Landing::Committed if is_clean => {
                self.commit_took = committing.elapsed();
                node.desk.expect_back(group.len());
                node.has_committed(sent.edge, sent.at, sent.adopted);
                Attempt::Settled { outcomes: sent.outcomes, rest: sent.rest, group }
            }
            // Committed here, and perhaps nowhere else.
            Landing::Committed => Attempt::unknown("PostgreSQL warned at the commit".into(), group, sent),
            Landing::Failed(Failure::Unknown(cause)) => {
                self.session = None;
                Attempt::unknown(cause, group, sent)
            }
            Landing::Failed(failure) => {
                node.desk.unclaim(&group);
                self.roll_back().await;
                Attempt::Failed { failure, group: rejoined(group, sent.rest), sent: None }
            }
        }
    }

    /// Whatever the transaction was about, it is over; a connection of which that is not certain is given up.
    async fn roll_back(&mut self) {
        if let Some(session) = &self.session
            && !matches!(tokio::time::timeout(FLIGHT_TIMEOUT, session.run("ROLLBACK")).await, Ok(Ok(())))
        {
            self.session = None;
        }
    }

    /// Looks whether the group was recorded. Returns it if it was not, to be decided again.
    async fn settle_unknown(&mut self, group: Vec<Queued>, sent: Sent, cause: &str) -> Option<Vec<Queued>> {
        tracing::warn!(cause, "it is not known whether a group of writes was recorded; looking");
        loop {
            // Those still waiting decide how long this goes on: past their deadline, their keys tell them.
            if self.is_nobody_waiting(&group) {
                self.node.desk.put_back(sent.rest);
                return None;
            }
            match self.look(sent.first.as_ref()).await {
                Ok(true) => {
                    self.node.has_committed(sent.edge, sent.at, sent.adopted);
                    self.acknowledge(&group, sent.outcomes, sent.rest);
                    return None;
                }
                Ok(false) => {
                    self.node.desk.unclaim(&group);
                    return Some(rejoined(group, sent.rest));
                }
                Err(Failure::Damaged(cause)) => {
                    let error = StoreError::Damaged(cause);
                    self.node.fail(&error);
                    self.answer_all(rejoined(group, sent.rest), &error);
                    return None;
                }
                Err(
                    Failure::Transient(cause)
                    | Failure::Unknown(cause)
                    | Failure::Superseded(cause)
                    | Failure::Faulty { cause, .. },
                ) => {
                    tracing::debug!(cause, "the outcome of a group is still unknown");
                    self.session = None;
                    self.pause().await;
                }
            }
        }
    }

    fn is_nobody_waiting(&self, group: &[Queued]) -> bool {
        group.iter().all(|queued| !self.node.desk.is_waiting(queued))
    }

    /// Whether the entry at this index is ours, byte for byte. Groups are atomic, so one entry tells. The look is
    /// committed with a write, which proves that what it saw is durable.
    async fn look(&mut self, first: Option<&(u64, Vec<u8>)>) -> Result<bool, Failure> {
        let Some((index, bytes)) = first else { return Ok(false) };
        let id = self.node.id.clone();
        let session = self.connected().await?;
        session.take_warning();
        let sql = "SELECT data = $2 FROM entry WHERE idx = $1";
        session.prepare(&[sql]).await.map_err(|error| failure::of_statement(&error))?;
        let place = number(*index);
        let unsent: Vec<Unsent<'_, Result<Vec<tokio_postgres::Row>, tokio_postgres::Error>>> = vec![
            Box::pin(async { session.run(BEGIN).await.map(|()| Vec::new()) }),
            Box::pin(async { session.query(LOCK, &[]).await }),
            Box::pin(async { session.query(sql, &[&place, bytes]).await }),
            Box::pin(async { session.execute(BEAT, &[&id]).await.map(|_| Vec::new()) }),
            Box::pin(async { session.run("COMMIT").await.map(|()| Vec::new()) }),
        ];
        let Ok(answers) = tokio::time::timeout(FLIGHT_TIMEOUT, in_order(unsent)).await else {
            return Err(Failure::Transient(SILENT.into()));
        };
        let answers = match answers.into_iter().collect::<Result<Vec<_>, _>>() {
            Ok(answers) => answers,
            Err(error) => {
                self.roll_back().await;
                return Err(Failure::Transient(failure::describe(&error)));
            }
        };
        if session.take_warning() {
            return Err(Failure::Transient("PostgreSQL warned at the commit".into()));
        }
        let found = answers.get(2).and_then(|rows| rows.first()).map(|row| row.try_get::<_, bool>(0));
        match found {
            None => Ok(false),
            Some(Ok(is_ours)) => Ok(is_ours),
            Some(Err(error)) => Err(failure::of_statement(&error)),
        }
    }
}

/// In order, until the group is large enough.
fn decide_all(decided: &mut Group, group: &[Queued], now: &dyn Fn() -> Time) -> Result<Vec<Outcome>, Failure> {
    let mut outcomes = Vec::with_capacity(group.len());
    for queued in group {
        if decided.changes.bytes >= GROUP_BYTES_MAX {
            break;
        }
        outcomes.push(decided.settle(&queued.write, now())?);
    }
    Ok(outcomes)
}

fn rejoined(mut group: Vec<Queued>, rest: Vec<Queued>) -> Vec<Queued> {
    group.extend(rest);
    group
}
