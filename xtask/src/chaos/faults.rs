//! The faults, each with the proof that it happened.

use crate::ha::database;
use crate::ha::network::{self, DATABASES, database_name, node_name};
use crate::ha::process::{pause, signal, wait_until};
use crate::step::Failure;

use super::field::{Field, isolate, primary};
use super::machine;

/// How long it is tried to hit the moment that a fault needs.
const AIM_SECONDS: u64 = 20;
/// Patroni gives up without etcd after `retry_timeout`, and has until `ttl`.
const DEMOTION_SECONDS: u64 = 45;

/// What has to be seen while the fault lasts.
pub(crate) enum Expected {
    /// Another member becomes primary, and takes writes.
    Failover { from: usize },
    /// Writes go on, or come back, with the same primary or another.
    Writes,
    /// Nothing is acknowledged until the fault is mended.
    Silence,
}

/// What a fault has done.
pub(crate) struct Struck {
    pub(crate) expected: Expected,
    /// How it is known to have happened.
    pub(crate) proof: String,
    /// Nodes that the fault itself keeps from answering.
    pub(crate) deaf: Vec<usize>,
    /// Old primaries that a watchdog resets before they can go on.
    pub(crate) reset: Vec<usize>,
    /// An entry that was visible without being durable.
    pub(crate) visible: Option<(u64, String)>,
}

impl Struck {
    fn with(expected: Expected, proof: impl Into<String>) -> Struck {
        Struck { expected, proof: proof.into(), deaf: Vec::new(), reset: Vec::new(), visible: None }
    }
}

type Result<T> = std::result::Result<T, Failure>;

pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) strike: fn(&Field<'_>) -> Result<Struck>,
}

pub(crate) const FAULTS: [Fault; 20] = [
    Fault { name: "primary killed", strike: primary_killed },
    Fault { name: "primary stopped", strike: primary_stopped },
    Fault { name: "primary cut off", strike: primary_cut_off },
    Fault { name: "primary's machine killed", strike: primary_machine_killed },
    Fault { name: "primary and a node cut off together", strike: primary_cut_off_with_a_node },
    Fault { name: "patroni stopped on the primary", strike: patroni_stopped },
    Fault { name: "patroni killed on the primary", strike: patroni_killed },
    Fault { name: "waits for the standby cancelled", strike: waits_cancelled },
    Fault { name: "primary killed in the wait", strike: killed_in_the_wait },
    Fault { name: "waits cancelled, then primary killed", strike: cancelled_and_killed },
    Fault { name: "synchronous standby killed", strike: standby_killed },
    Fault { name: "synchronous standby stopped", strike: standby_stopped },
    Fault { name: "synchronous standby cut off", strike: standby_cut_off },
    Fault { name: "both standbys killed", strike: both_standbys_killed },
    Fault { name: "etcd minority killed", strike: etcd_minority_killed },
    Fault { name: "etcd majority killed", strike: etcd_majority_killed },
    Fault { name: "node killed", strike: node_killed },
    Fault { name: "node stopped", strike: node_stopped },
    Fault { name: "node cut off", strike: node_cut_off },
    Fault { name: "node stopped between its flights", strike: node_stopped_between_flights },
];

/// The node that faults of nodes happen to.
const NODE: usize = 2;

fn did_not_fire(why: &str) -> Failure {
    Failure::refuted(format!("the fault did not happen: {why}"))
}

fn fired(happened: bool, why: &str) -> Result<()> {
    if happened { Ok(()) } else { Err(did_not_fire(why)) }
}

fn failover(from: usize, proof: String, reset: Vec<usize>) -> Struck {
    Struck { reset, ..Struck::with(Expected::Failover { from }, proof) }
}

fn primary_killed(_: &Field<'_>) -> Result<Struck> {
    let primary = primary()?;
    let killed = machine::kill(&database_name(primary), &["postgres"])?;
    fired(killed > 0, "there was nothing to kill")?;
    Ok(failover(primary, format!("db{primary}: {killed} processes"), Vec::new()))
}

fn primary_stopped(_: &Field<'_>) -> Result<Struck> {
    let primary = primary()?;
    let stopped = machine::stop(&database_name(primary), "postgres")?;
    Ok(failover(primary, format!("db{primary}: {stopped} processes"), vec![primary]))
}

fn cut(machine: &str) -> Result<()> {
    network::connect(machine, false)?;
    fired(!network::is_connected(machine), "the link is up")
}

fn primary_cut_off(_: &Field<'_>) -> Result<Struck> {
    let primary = primary()?;
    cut(&database_name(primary))?;
    Ok(failover(primary, format!("db{primary}: link down"), vec![primary]))
}

fn primary_machine_killed(_: &Field<'_>) -> Result<Struck> {
    let primary = primary()?;
    let killed = machine::kill(&database_name(primary), &["etcd", "patroni", "postgres"])?;
    fired(killed > 2, "there was less to kill than runs there")?;
    Ok(failover(primary, format!("db{primary}: {killed} processes"), Vec::new()))
}

/// The node sees a primary that answers every query, and commits nothing.
fn primary_cut_off_with_a_node(field: &Field<'_>) -> Result<Struck> {
    let primary = primary()?;
    isolate(primary, NODE)?;
    fired(field.is_writable(primary), "the primary stood down at once")?;
    let proof = format!("db{primary} and node{NODE}: own bridge");
    Ok(Struck { deaf: vec![NODE], ..failover(primary, proof, vec![primary]) })
}

fn patroni_stopped(field: &Field<'_>) -> Result<Struck> {
    let primary = primary()?;
    machine::stop(&database_name(primary), "patroni")?;
    fired(field.is_writable(primary), "PostgreSQL stopped too")?;
    Ok(failover(primary, format!("db{primary}: its PostgreSQL runs on"), vec![primary]))
}

fn patroni_killed(field: &Field<'_>) -> Result<Struck> {
    let primary = primary()?;
    let killed = machine::kill(&database_name(primary), &["patroni"])?;
    fired(killed > 0 && field.is_writable(primary), "PostgreSQL ended too")?;
    Ok(failover(primary, format!("db{primary}: its PostgreSQL runs on"), vec![primary]))
}

/// Stops the standby's receiver, and waits until a commit with entries waits for it.
fn hold_commits(field: &Field<'_>, primary: usize, standby: usize) -> Result<u32> {
    let receiver = machine::log_receiver(&database_name(standby));
    let receiver = receiver.ok_or_else(|| did_not_fire("the standby receives nothing"))?;
    signal("STOP", &[receiver]);
    wait_until("commits that wait", AIM_SECONDS, || field.waiting(primary).1 > 0)
        .map_err(|failure| did_not_fire(&failure.to_string()))?;
    fired(machine::is_stopped(receiver), "the receiver went on")?;
    Ok(receiver)
}

fn waits_cancelled(field: &Field<'_>) -> Result<Struck> {
    let (primary, (standby, _)) = (primary()?, field.standbys()?);
    let receiver = hold_commits(field, primary, standby)?;
    let (mut cancelled, mut with_entries) = (0, 0);
    for _ in 0..8 {
        let (some, some_with_entries) = field.cancel_waits(primary);
        cancelled += some;
        with_entries += some_with_entries;
        pause(250);
    }
    signal("CONT", &[receiver]);
    fired(with_entries > 0, "no commit with entries was cancelled")?;
    Ok(Struck::with(Expected::Writes, format!("{cancelled} waits, {with_entries} with entries")))
}

/// What the standby's kernel has received reaches the standby after all: the commits survive, and nobody knows.
fn killed_in_the_wait(field: &Field<'_>) -> Result<Struck> {
    let (primary, (standby, _)) = (primary()?, field.standbys()?);
    let receiver = hold_commits(field, primary, standby)?;
    let (waiting, _) = field.waiting(primary);
    let killed = machine::kill(&database_name(primary), &["postgres"]);
    signal("CONT", &[receiver]);
    fired(killed? > 0, "there was nothing to kill")?;
    Ok(failover(primary, format!("db{primary}: {waiting} commits waited"), Vec::new()))
}

/// The standby is cut off while commits wait and are cancelled, and then takes over without them: what was visible is
/// undone.
fn cancelled_and_killed(field: &Field<'_>) -> Result<Struck> {
    let (primary, (standby, _)) = (primary()?, field.standbys()?);
    cut(&database_name(standby))?;
    let waits = wait_until("commits that wait", AIM_SECONDS, || field.waiting(primary).1 > 0);
    let (cancelled, with_entries) = field.cancel_waits(primary);
    let visible = field.last_entry(primary);
    let killed = machine::kill(&database_name(primary), &["postgres"]);
    network::connect(&database_name(standby), true)?;
    waits.map_err(|failure| did_not_fire(&failure.to_string()))?;
    fired(killed? > 0 && with_entries > 0 && visible.is_some(), "no commit with entries was cancelled")?;
    let proof = format!("db{primary}: {cancelled} waits, {with_entries} with entries");
    Ok(Struck { visible, ..failover(primary, proof, Vec::new()) })
}

fn standby_killed(field: &Field<'_>) -> Result<Struck> {
    let (standby, _) = field.standbys()?;
    let killed = machine::kill(&database_name(standby), &["patroni", "postgres"])?;
    fired(killed > 1, "there was less to kill than runs there")?;
    Ok(Struck::with(Expected::Writes, format!("db{standby}: {killed} processes")))
}

fn standby_stopped(field: &Field<'_>) -> Result<Struck> {
    let (standby, _) = field.standbys()?;
    let stopped = machine::stop(&database_name(standby), "postgres")?;
    Ok(Struck::with(Expected::Writes, format!("db{standby}: {stopped} processes")))
}

fn standby_cut_off(field: &Field<'_>) -> Result<Struck> {
    let (standby, _) = field.standbys()?;
    cut(&database_name(standby))?;
    Ok(Struck::with(Expected::Writes, format!("db{standby}: link down")))
}

fn both_standbys_killed(field: &Field<'_>) -> Result<Struck> {
    let (one, other) = field.standbys()?;
    let mut killed = 0;
    for member in [one, other] {
        killed += machine::kill(&database_name(member), &["patroni", "postgres"])?;
    }
    fired(killed > 3, "there was less to kill than runs there")?;
    Ok(Struck::with(Expected::Silence, format!("db{one}, db{other}: {killed} processes")))
}

fn etcd_minority_killed(_: &Field<'_>) -> Result<Struck> {
    let primary = primary()?;
    // The primary's own member: Patroni has to find another one.
    machine::kill(&database_name(primary), &["etcd"])?;
    Ok(Struck::with(Expected::Writes, format!("db{primary}: etcd")))
}

fn etcd_majority_killed(_: &Field<'_>) -> Result<Struck> {
    let primary = primary()?;
    let others: Vec<usize> = DATABASES.into_iter().filter(|member| *member != primary).collect();
    for member in &others {
        fired(machine::kill(&database_name(*member), &["etcd"])? > 0, "etcd did not run")?;
    }
    // Until then writes are acknowledged, and rightly so.
    let demoted = wait_until("the primary stands down", DEMOTION_SECONDS, || database::primary().is_none());
    let after = demoted.map_err(|failure| did_not_fire(&failure.to_string()))?;
    let proof = format!("two members; db{primary} stood down after {:.0} s", after.as_secs_f64());
    Ok(Struck::with(Expected::Silence, proof))
}

fn without_a_node(proof: String) -> Struck {
    Struck { deaf: vec![NODE], ..Struck::with(Expected::Writes, proof) }
}

fn node_killed(_: &Field<'_>) -> Result<Struck> {
    fired(machine::kill(&node_name(NODE), &["pilot"])? > 0, "it did not run")?;
    Ok(without_a_node(format!("node{NODE}")))
}

fn node_stopped(_: &Field<'_>) -> Result<Struck> {
    machine::stop(&node_name(NODE), "pilot")?;
    Ok(without_a_node(format!("node{NODE}")))
}

fn node_cut_off(_: &Field<'_>) -> Result<Struck> {
    cut(&node_name(NODE))?;
    Ok(without_a_node(format!("node{NODE}: link down")))
}

/// Stops the node, and looks whether that was between its flights: then its backend has the lock on the ledger's end,
/// and nobody to tell it what to do. Otherwise the node goes on, and it is tried again.
fn node_stopped_between_flights(field: &Field<'_>) -> Result<Struck> {
    let (primary, name) = (primary()?, node_name(NODE));
    for attempt in 1..=200 {
        let pilot = machine::running(&name, "pilot");
        signal("STOP", &pilot);
        // Twice: what was on its way when the node was stopped has arrived by the second time.
        if field.between_flights(primary, NODE) > 0 && field.between_flights(primary, NODE) > 0 {
            fired(pilot.iter().all(|process| machine::is_stopped(*process)), "the node went on")?;
            return Ok(without_a_node(format!("node{NODE}: lock held, at attempt {attempt}")));
        }
        signal("CONT", &pilot);
        pause(100);
    }
    Err(did_not_fire("the node was never between its flights"))
}
