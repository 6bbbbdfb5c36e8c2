//! Nodes of two builds on one ledger, and nodes that come and go.

use std::sync::Arc;

use pilot_core::time::Time;
use pilot_store::conformance::remark;
use pilot_store::postgres::{Access, Identity, Postgres};
use pilot_store::{Duty, Outcome, Store, StoreError};
use pilot_testing::postgres::{Cluster, until};

fn open(url: &str, name: &str, build: &str) -> pilot_store::Result<Postgres> {
    let access = Access { url: url.to_owned(), ..Access::default() };
    let identity = Identity { name: name.to_owned(), build: build.to_owned() };
    Postgres::open(&access, identity, Arc::new(|| Time::from_unix_micros(1_800_000_000_000_000)), Arc::new(|_| {}))
}

#[track_caller]
fn is_recorded(outcome: &pilot_store::Result<Outcome>) {
    assert!(matches!(outcome, Ok(Outcome::Recorded { .. })), "{outcome:?}");
}

/// What the next build does to the tables before it writes: it adds, and removes nothing.
const EXPAND: &str = "ALTER TABLE item ADD COLUMN next_thing text; ALTER TABLE entry ADD COLUMN next_thing bytea; \
                      CREATE TABLE next_thing (id bigint PRIMARY KEY); UPDATE pilot_schema SET version = 2";
/// What it does once no node of the earlier build is left.
const CONTRACT: &str = "UPDATE pilot_schema SET oldest_writer = 2";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_of_two_builds_write_in_turn_until_the_tables_are_no_longer_the_older_ones() {
    let cluster = Cluster::shared();
    let database = cluster.fresh_database();
    let older = open(database.url(), "a", "1.0.0").unwrap();
    is_recorded(&older.settle(remark(0)).await);
    cluster.sql(database.name(), EXPAND);
    let newer = open(database.url(), "b", "1.1.0").unwrap();
    for number in 1..9 {
        let node = if number % 2 == 0 { &older } else { &newer };
        is_recorded(&node.settle(remark(number)).await);
    }
    let builds = |node: &Postgres| node.nodes().into_iter().map(|node| node.build).collect::<Vec<_>>();
    until("each sees the other's build", || {
        [&older, &newer].iter().all(|node| builds(node) == ["1.0.0", "1.1.0"]).then_some(())
    });
    cluster.sql(database.name(), CONTRACT);
    until("a node that may not write stands down", || older.check_current().is_err().then_some(()));
    let refused = older.settle(remark(9)).await;
    assert!(matches!(&refused, Err(StoreError::Unavailable(why)) if why.contains("newer pilot")), "{refused:?}");
    let refused = open(database.url(), "a", "1.0.0").err();
    assert!(matches!(&refused, Some(StoreError::Refused(why)) if why.contains("newer pilot")), "{refused:?}");
    assert_eq!(cluster.sql(database.name(), "SELECT size FROM head").trim(), "9");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_an_earlier_build_get_the_duties_that_came_later_and_its_nodes_go_on() {
    let cluster = Cluster::shared();
    let database = cluster.fresh_database();
    let older = open(database.url(), "a", "1.0.0").unwrap();
    cluster.sql(database.name(), "DELETE FROM duty WHERE name = 'webhooks'");
    until("it has the others", || (older.holds(Duty::Timers) && !older.holds(Duty::Webhooks)).then_some(()));
    let newer = open(database.url(), "b", "1.1.0").unwrap();
    until("one of them has it", || (older.holds(Duty::Webhooks) || newer.holds(Duty::Webhooks)).then_some(()));
    for (number, node) in [&older, &newer].into_iter().enumerate() {
        is_recorded(&node.settle(remark(number as u64)).await);
    }
    drop(open(database.url(), "c", "1.1.0").unwrap());
    assert_eq!(cluster.sql(database.name(), "SELECT count(*) FROM duty").trim(), Duty::ALL.len().to_string());
}

/// So many starts that ended without a word, the last of them this many seconds ago.
fn add_nodes(cluster: &Cluster, database: &str, nodes: u32, seconds_ago: u32) {
    cluster.sql(
        database,
        &format!(
            "INSERT INTO node SELECT 'gone' || n, 'gone', '1.0.0', 0, 0, t.now - {seconds_ago} * 1000000::bigint - n, 0 \
             FROM generate_series(1, {nodes}) n, \
             (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now) t"
        ),
    );
}

#[test]
fn however_often_a_node_was_started_and_killed_only_the_last_hundred_are_listed() {
    let cluster = Cluster::shared();
    let database = cluster.fresh_database();
    let node = open(database.url(), "a", "1.0.0").unwrap();
    add_nodes(cluster, database.name(), 5_000, 60);
    until("the list is as long as it gets", || (node.nodes().len() == 100).then_some(()));
    let nodes = node.nodes();
    let alive: Vec<_> = nodes.iter().filter(|node| node.is_alive).map(|node| node.name.as_str()).collect();
    assert_eq!(alive, ["a"], "the live ones are among them");
}

#[test]
fn a_ledger_takes_no_sixty_fifth_node() {
    let cluster = Cluster::shared();
    let database = cluster.fresh_database();
    drop(open(database.url(), "a", "1.0.0").unwrap());
    // Of the near future, so that they are alive for as long as this takes.
    cluster.sql(database.name(), "INSERT INTO node SELECT 'n' || n, 'n', '1.0.0', 0, 0, t.now + 60000000, 0 FROM generate_series(1, 64) n, (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now) t");
    let refused = open(database.url(), "b", "1.0.0").err();
    assert!(matches!(&refused, Some(StoreError::Refused(why)) if why.contains("64 nodes")), "{refused:?}");
    cluster.sql(database.name(), "DELETE FROM node WHERE id = 'n1'");
    assert!(open(database.url(), "b", "1.0.0").is_ok());
}
