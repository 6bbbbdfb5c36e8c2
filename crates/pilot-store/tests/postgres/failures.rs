//! Whatever happens to the server, to connections and to other nodes: nothing acknowledged is lost, nothing is recorded
//! twice, and nothing that a failover could undo leaves a node.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_store::conformance::{Cast, actor, remark};
use pilot_store::postgres::Postgres;
use pilot_store::{Duty, NoRecord, Outcome, Record, Situation, Store, StoreError, Subject, Write};
use pilot_testing::postgres::{Cluster, Settings, until};
use tokio::task::JoinSet;

use super::open_node;

fn node(url: &str) -> Arc<Postgres> {
    named_node(url, "node")
}

fn named_node(url: &str, name: &str) -> Arc<Postgres> {
    Arc::new(open_node(url, name, Arc::new(|| Time::from_unix_micros(1_800_000_000_000_000))).unwrap())
}

fn index_of(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Recorded { entry, .. } => entry.index,
        other => panic!("{other:?}"),
    }
}

/// The versions of the remarks in the ledger, each with how often it is there.
fn recorded(cluster: &Cluster, database: &str) -> BTreeMap<u64, usize> {
    let sql = "SELECT convert_from(data, 'UTF8')::json->'details'->>'version' FROM entry ORDER BY idx";
    let mut found = BTreeMap::new();
    for line in cluster.sql(database, sql).lines() {
        *found.entry(line.trim().parse().unwrap()).or_default() += 1;
    }
    found
}

/// A server whose commits need a standby, and the database on it.
fn replicated() -> (Cluster, Cluster, String) {
    let primary = Cluster::start(&Settings::default());
    let database = primary.fresh_database().name().to_owned();
    let standby = primary.standby("standby");
    primary.require_standby("standby");
    (primary, standby, database)
}

/// The process ids of the backends whose commit waits for the standby.
fn waiting(primary: &Cluster, database: &str) -> Vec<u32> {
    let sql = format!(
        "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = '{database}' AND query = 'COMMIT' ORDER BY pid"
    );
    primary.sql("postgres", &sql).lines().map(|line| line.trim().parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_wait_was_cancelled_is_acknowledged_only_when_a_standby_has_it() {
    let (primary, standby, database) = replicated();
    let store = node(&primary.url(&database));
    assert_eq!(index_of(&store.settle(remark(0)).await.unwrap()), 0);
    standby.pause();
    let pending = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.settle(remark(1)).await }
    });
    // The one that has an entry to wait for, not the heartbeat.
    until("the commit waits", || {
        primary.sql(&database, "SELECT 1 FROM entry WHERE idx = 1 UNION SELECT 1 FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE c.relname = 'entry' AND l.mode = 'RowExclusiveLock'").lines().next().map(drop)
    });
    until("all wait", || (waiting(&primary, &database).len() >= 2).then_some(()));
    for pid in waiting(&primary, &database) {
        primary.sql("postgres", &format!("SELECT pg_cancel_backend({pid})"));
    }
    // Everyone can see it now, and no standby has it.
    until("it is visible", || (primary.sql(&database, "SELECT count(*) FROM entry").trim() == "2").then_some(()));
    assert_eq!(store.head().borrow().size(), 1, "visible is not durable");
    assert_eq!(store.entries(0, 10).await.unwrap().len(), 1);
    assert!(!pending.is_finished());
    standby.resume();
    assert_eq!(index_of(&pending.await.unwrap().unwrap()), 1);
    assert_eq!(recorded(&primary, &database), BTreeMap::from([(0, 1), (1, 1)]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_connection_was_lost_is_looked_for_and_acknowledged_once() {
    let (primary, standby, database) = replicated();
    let store = node(&primary.url(&database));
    for round in 0..3_u64 {
        standby.pause();
        let pending = tokio::spawn({
            let store = Arc::clone(&store);
            async move { store.settle(remark(round)).await }
        });
        until("they wait", || (waiting(&primary, &database).len() >= 2).then_some(()));
        for pid in waiting(&primary, &database) {
            primary.sql("postgres", &format!("SELECT pg_terminate_backend({pid})"));
        }
        until("it is visible", || {
            (primary.sql(&database, "SELECT count(*) FROM entry").trim() == (round + 1).to_string()).then_some(())
        });
        assert!(!pending.is_finished());
        standby.resume();
        assert_eq!(index_of(&pending.await.unwrap().unwrap()), round);
    }
    assert_eq!(recorded(&primary, &database), (0..3).map(|number| (number, 1)).collect());
}

/// Writes without pause until told to stop, and returns the numbers that were acknowledged.
async fn load(stores: Vec<Arc<Postgres>>, writers: u64, stop: Arc<AtomicBool>) -> Vec<(u64, u64)> {
    let mut tasks = JoinSet::new();
    for writer in 0..writers {
        let (stores, stop) = (stores.clone(), Arc::clone(&stop));
        tasks.spawn(async move {
            let mut acknowledged = Vec::new();
            for round in 0.. {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let number = writer * 1_000_000 + round;
                let store = &stores[usize::try_from(number).unwrap() % stores.len()];
                match store.settle(remark(number)).await {
                    Ok(outcome) => acknowledged.push((number, index_of(&outcome))),
                    Err(StoreError::Unavailable(_) | StoreError::Hangs(_)) => {}
                    Err(other) => panic!("{other}"),
                }
            }
            acknowledged
        });
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_lost_connections_and_a_crash_of_the_server_nothing_acknowledged_is_lost_or_doubled() {
    let mut cluster = Cluster::start(&Settings::default());
    let database = cluster.fresh_database().name().to_owned();
    let stores = vec![named_node(&cluster.url(&database), "a"), named_node(&cluster.url(&database), "b")];
    let stop = Arc::new(AtomicBool::new(false));
    let writing = tokio::spawn(load(stores.clone(), 16, Arc::clone(&stop)));
    let grown = |cluster: &Cluster, by: u64| {
        let size =
            |cluster: &Cluster| -> u64 { cluster.sql(&database, "SELECT size FROM head").trim().parse().unwrap() };
        let before = size(cluster);
        until("writing goes on", || (size(cluster) >= before + by).then_some(()));
    };
    for _ in 0..10 {
        grown(&cluster, 50);
        let sql = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}' AND pid <> pg_backend_pid() AND random() < 0.7"
        );
        cluster.sql("postgres", &sql);
    }
    for _ in 0..3 {
        grown(&cluster, 50);
        cluster.kill();
        cluster.start_again();
    }
    grown(&cluster, 50);
    stop.store(true, Ordering::SeqCst);
    let acknowledged = writing.await.unwrap();
    assert!(acknowledged.len() > 500, "{} were acknowledged", acknowledged.len());
    let there = recorded(&cluster, &database);
    assert!(there.values().all(|count| *count == 1), "something is recorded twice");
    for (number, index) in &acknowledged {
        assert!(there.contains_key(number), "entry {index} is lost");
    }
    drop(stores);
    let again = node(&cluster.url(&database));
    assert_eq!(again.head().borrow().size(), there.values().sum::<usize>() as u64);
}

/// A write whose fact PostgreSQL cannot store.
fn unstorable() -> Write {
    let decide = |situation: &Situation<'_>| {
        let record = (remark(0).decide)(situation)?;
        let fact = pilot_store::Fact { name: "with \0 in it".into(), value: Some(vec![1]) };
        Ok::<_, NoRecord>(Record { facts: vec![fact], ..record })
    };
    Write::new(Subject::Ledger, None, decide)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_does_not_fit_the_database_fails_by_itself() {
    let database = Cluster::shared().fresh_database();
    let store = node(database.url());
    for round in 0..5_u64 {
        let before: Vec<_> = (0..20).map(|number| store.settle(remark(round * 100 + number))).collect();
        let faulty = store.settle(unstorable());
        let after: Vec<_> = (20..40).map(|number| store.settle(remark(round * 100 + number))).collect();
        for pending in before.into_iter().chain(after) {
            index_of(&pending.await.unwrap());
        }
        let refused = faulty.await;
        assert!(matches!(&refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    }
    assert_eq!(store.head().borrow().size(), 200);
    assert!(store.check().is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_someone_changed_are_damage_and_nothing_is_recorded_on_them() {
    let damages = [
        "UPDATE item SET entries = 1",
        "UPDATE head SET root = '\\x00'",
        "UPDATE head SET size = 1",
        "UPDATE head SET size = 9",
        "DELETE FROM head",
        "DELETE FROM entry WHERE idx = 1",
    ];
    for damage in damages {
        let database = Cluster::shared().fresh_database();
        let (store, cast) = (node(database.url()), Arc::new(Cast::default()));
        let (id, ana) = (cast.id(), actor("ana", Role::Initiator));
        store.settle(cast.creation(&id, "title", "ana", "low")).await.unwrap();
        store.settle(cast.action(&id, &ana, "submit", None)).await.unwrap();
        Cluster::shared().sql(database.name(), damage);
        let outcome = match damage {
            // This node knows better than the row, and another one has to read it.
            "DELETE FROM entry WHERE idx = 1" => match open_node(database.url(), "b", Arc::new(|| Time::EPOCH)) {
                Ok(_) => panic!("{damage}: another node opens it"),
                Err(error) => Err(error),
            },
            _ => store.settle(cast.action(&id, &actor("ben", Role::Approver), "approve", None)).await.map(drop),
        };
        assert!(matches!(&outcome, Err(StoreError::Damaged(_))), "{damage}: {outcome:?}");
        let entries = Cluster::shared().sql(database.name(), "SELECT count(*) FROM entry WHERE idx > 1");
        assert_eq!(entries.trim(), "0", "{damage}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_cannot_reach_the_database_says_so_within_a_second_and_a_half_and_goes_on_when_it_can() {
    let cluster = Cluster::start(&Settings::default());
    let database = cluster.fresh_database().name().to_owned();
    let store = node(&cluster.url(&database));
    store.settle(remark(0)).await.unwrap();
    assert!(store.check_current().is_ok());
    cluster.pause();
    until("it knows that it knows nothing", || store.check_current().is_err().then_some(()));
    // Told in time, and that nothing was written or that it is not known.
    let told = store.settle(remark(1)).await;
    assert!(matches!(told, Err(StoreError::Hangs(_) | StoreError::Unavailable(_))), "{told:?}");
    assert!(store.check().is_err());
    cluster.resume();
    until("it goes on", || store.check().is_ok().then_some(()));
    index_of(&store.settle(remark(2)).await.unwrap());
    let there = recorded(&cluster, &database);
    assert!(there.values().all(|count| *count == 1) && there.contains_key(&2), "{there:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_was_replaced_without_knowing_is_left_for_its_successor() {
    let (primary, standby, database) = replicated();
    let (port, other) = (primary.port(), standby.port());
    let store = node(&format!("postgres://postgres@127.0.0.1:{port},127.0.0.1:{other}/{database}"));
    assert_eq!(index_of(&store.settle(remark(0)).await.unwrap()), 0);
    standby.promote();
    // The old one calls itself writable, and confirms nothing: nobody receives its log any more.
    until("it knows that it knows nothing", || store.check_current().is_err().then_some(()));
    until("it has found the other", || store.check().is_ok().then_some(()));
    assert_eq!(index_of(&store.settle(remark(1)).await.unwrap()), 1);
    assert_eq!(recorded(&standby, &database), BTreeMap::from([(0, 1), (1, 1)]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_that_lost_acknowledged_entries_is_noticed_and_nothing_is_built_on_it() {
    // Without a required standby, the primary acknowledges what the standby does not have.
    let mut primary = Cluster::start(&Settings::default());
    let database = primary.fresh_database().name().to_owned();
    let mut standby = primary.standby("standby");
    let (port, other) = (primary.port(), standby.port());
    let store = node(&format!("postgres://postgres@127.0.0.1:{port},127.0.0.1:{other}/{database}"));
    for number in 0..5 {
        store.settle(remark(number)).await.unwrap();
    }
    until("the standby has them", || (standby.sql(&database, "SELECT size FROM head").trim() == "5").then_some(()));
    standby.kill();
    for number in 5..10 {
        store.settle(remark(number)).await.unwrap();
    }
    primary.kill();
    standby.start_again();
    standby.promote();
    until("it is noticed", || matches!(store.check(), Err(StoreError::Damaged(_))).then_some(()));
    assert!(matches!(store.settle(remark(99)).await, Err(StoreError::Damaged(_))));
    assert_eq!(standby.sql(&database, "SELECT size FROM head").trim(), "5", "nothing was built on it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_configuration_was_replaced_writes_nothing_more_and_answers_nobody() {
    let database = Cluster::shared().fresh_database();
    let (old, new) = (named_node(database.url(), "old"), named_node(database.url(), "new"));
    let adopting = || {
        let decide = |situation: &Situation<'_>| Ok(Record { adopts: true, ..(remark(0).decide)(situation)? });
        Write::new(Subject::Ledger, None, decide)
    };
    let adopted = index_of(&old.settle(adopting()).await.unwrap());
    new.join(adopted);
    index_of(&new.settle(remark(1)).await.unwrap());
    index_of(&old.settle(remark(2)).await.unwrap());
    index_of(&new.settle(adopting()).await.unwrap());
    let refused = old.settle(remark(3)).await;
    assert!(matches!(&refused, Err(StoreError::Unavailable(why)) if why.contains("configuration")), "{refused:?}");
    until("it answers nobody", || old.check_current().is_err().then_some(()));
    index_of(&new.settle(remark(4)).await.unwrap());
    assert!(new.check_current().is_ok());
    assert_eq!(new.head().borrow().size(), 5);
    // It may have had all the duties, and goes on running. They are not lost with it.
    until("the other has its duties", || Duty::ALL.iter().all(|duty| new.holds(*duty)).then_some(()));
    assert!(Duty::ALL.iter().all(|duty| !old.holds(*duty)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_declines_a_duty_leaves_it_to_one_that_does_not() {
    let database = Cluster::shared().fresh_database();
    let idle = named_node(database.url(), "idle");
    until("it has everything", || Duty::ALL.iter().all(|duty| idle.holds(*duty)).then_some(()));
    idle.decline(Duty::Webhooks);
    assert!(!idle.holds(Duty::Webhooks), "at once, whatever the lease says");
    let busy = named_node(database.url(), "busy");
    until("the other has it", || busy.holds(Duty::Webhooks).then_some(()));
    assert!(!idle.holds(Duty::Webhooks) && idle.holds(Duty::Timers));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_nodes_one_has_each_duty_and_when_it_leaves_another_takes_it() {
    let database = Cluster::shared().fresh_database();
    let nodes: Vec<_> = ["a", "b", "c"].map(|name| named_node(database.url(), name)).into();
    let holders = |nodes: &[Arc<Postgres>], duty| nodes.iter().filter(|node| node.holds(duty)).count();
    for duty in Duty::ALL {
        until("someone does it", || (holders(&nodes, duty) == 1).then_some(()));
    }
    until("all see all", || nodes.iter().all(|node| node.nodes().len() == 3).then_some(()));
    let first = nodes.iter().position(|node| node.holds(Duty::Timers)).unwrap();
    let (left, rest): (Vec<_>, Vec<_>) = nodes.into_iter().enumerate().partition(|(number, _)| *number == first);
    let rest: Vec<_> = rest.into_iter().map(|(_, node)| node).collect();
    drop(left);
    for duty in Duty::ALL {
        until("another does it", || (holders(&rest, duty) == 1).then_some(()));
    }
    until("it is gone", || rest.iter().all(|node| node.nodes().len() == 2).then_some(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_could_lose_what_it_acknowledged_is_refused() {
    for (name, value) in [("fsync", "off"), ("full_page_writes", "off")] {
        let cluster = Cluster::start(&Settings { options: vec![(name, value)], ..Settings::default() });
        let database = cluster.fresh_database().name().to_owned();
        let refused = open_node(&cluster.url(&database), "node", Arc::new(|| Time::EPOCH)).err();
        assert!(matches!(&refused, Some(StoreError::Refused(why)) if why.contains(name)), "{refused:?}");
    }
}

/// A commit that waits for a standby keeps the head locked; those who wait behind it are told in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_standby_everyone_is_told_in_time_and_nothing_is_lost_when_it_is_back() {
    let (primary, standby, database) = replicated();
    let stores = [named_node(&primary.url(&database), "a"), named_node(&primary.url(&database), "b")];
    standby.pause();
    let pending: Vec<_> =
        (0..20_u64).map(|number| stores[usize::from(number % 2 == 1)].settle(remark(number))).collect();
    let mut unknown = Vec::new();
    for (number, told) in (0..20_u64).zip(pending) {
        match told.await {
            Err(StoreError::Hangs(_)) => unknown.push(number),
            Err(StoreError::Unavailable(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(!unknown.is_empty(), "the first group was sent");
    assert!(stores.iter().all(|store| store.check_current().is_err()), "nobody is let in");
    standby.resume();
    for (number, store) in (100..).zip(&stores) {
        until("it goes on", || store.check().is_ok().then_some(()));
        index_of(&store.settle(remark(number)).await.unwrap());
    }
    let there = recorded(&primary, &database);
    assert!(there.values().all(|count| *count == 1), "{there:?}");
    assert!(
        there.keys().filter(|number| **number < 20).all(|number| unknown.contains(number)),
        "{there:?}, {unknown:?}"
    );
}

/// Every node knows what every other wrote, without being told by a notification.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notifications_are_only_hints() {
    let database = Cluster::shared().fresh_database();
    let stores = [named_node(database.url(), "a"), named_node(database.url(), "b")];
    Cluster::shared().sql(database.name(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()");
    for number in 0..3_u64 {
        index_of(&stores[0].settle(remark(number)).await.unwrap());
        let mut head = stores[1].head();
        let follows = head.wait_for(|head| head.size() > number);
        tokio::time::timeout(Duration::from_secs(30), follows).await.expect("it follows").unwrap();
    }
}
