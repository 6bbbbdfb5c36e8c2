//! The embedded engine passes the suite every engine must pass.

use std::sync::Arc;

use pilot_core::limits::IDEMPOTENCY_KEY_KEPT;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_store::conformance::{self, Cast, Engine, TestClock, actor, remark};
use pilot_store::sqlite::Sqlite;
use pilot_store::sqlite::fsck::fsck;
use pilot_store::{Key, Outcome, Situation, Store, StoreError, Subject, Write};
use tempfile::TempDir;

struct Embedded {
    directory: TempDir,
    clock: TestClock,
}

impl Embedded {
    fn new() -> Embedded {
        Embedded { directory: tempfile::tempdir().unwrap(), clock: TestClock::default() }
    }
}

impl Engine for Embedded {
    fn open(&self) -> Arc<dyn Store> {
        let clock = self.clock.clone();
        Arc::new(Sqlite::open(&self.directory.path().join("pilot.db"), Arc::new(move || clock.now())).unwrap())
    }

    fn clock(&self) -> &TestClock {
        &self.clock
    }
}

/// Runs a case of the suite; afterwards nothing in the file may contradict anything else in it.
macro_rules! conforms {
    ($($case:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let engine = Embedded::new();
                conformance::$case(&engine).await;
                let [controlled, _] = pilot_core::workflow::builtin::builtin();
                let text = pilot_core::workflow::builtin::CONTROLLED_OPERATION.to_owned();
                let kept = pilot_store::StoredDefinition { digest: controlled.digest().to_string(), text };
                engine.open().keep_definitions(vec![kept]).await.unwrap();
                let report = fsck(&engine.directory.path().join("pilot.db"), &mut |_| ()).unwrap();
                let faults: Vec<_> = report.faults.iter().filter(|fault| fault.place != "definition sha256:0").collect();
                assert!(faults.is_empty(), "{faults:#?}");
            }
        )*
    };
}

conforms!(
    indices_have_no_gaps_and_refusals_write_nothing,
    time_never_runs_backwards,
    of_many_who_write_at_once_exactly_the_allowed_number_wins,
    a_key_gives_the_same_answer_again_until_it_is_forgotten,
    duplicates_that_arrive_together_are_recorded_once,
    items_are_found_by_what_is_known_of_them,
    a_sorted_list_has_every_item_once_and_a_count_is_exact,
    lists_go_by_order_of_creation_whatever_the_ids_are,
    a_history_is_whole_and_in_order_with_its_documents,
    entries_about_an_item_are_counted_when_it_matters,
    what_is_due_comes_earliest_first,
    definitions_and_facts_are_kept,
    a_write_decides_by_the_facts_it_reads_as_they_are_then,
    facts_can_change_without_an_entry,
    an_item_is_shown_with_its_content_a_fact_and_its_newest_entries_first,
    the_tree_is_that_of_its_entries_at_every_turn,
    writes_handed_in_before_the_end_are_not_lost,
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_write_ahead_log_stays_within_bounds_while_writing_goes_on() {
    let engine = Embedded::new();
    let (path, clock) = (engine.directory.path().join("pilot.db"), engine.clock.clone());
    let store = Sqlite::open_to_fill(&path, Arc::new(move || clock.now())).unwrap();
    let log_bytes = || std::fs::metadata(engine.directory.path().join("pilot.db-wal")).unwrap().len();
    // One at a time: each writes several pages.
    let write = async |numbers: std::ops::Range<u64>| {
        for number in numbers {
            assert!(matches!(store.settle(remark(number)).await, Ok(Outcome::Recorded { .. })));
        }
    };
    write(0..4_000).await;
    let of_four_thousand = log_bytes();
    write(4_000..40_000).await;
    let (in_the_end, of_all) = (log_bytes(), 10 * of_four_thousand);
    println!("{in_the_end} bytes, and {of_all} were written");
    // It is carried over at 48 MiB; when the disk is slow, it grows up to four times that.
    let bound = 5 * (48 << 20);
    assert!(in_the_end < bound && bound < of_all, "{in_the_end} bytes of {of_all}");
    drop(store);
    assert_eq!(engine.open().head().borrow().size(), 40_000);
    let report = fsck(&path, &mut |_| ()).unwrap();
    assert!(report.faults.is_empty(), "{:#?}", report.faults);
}

#[tokio::test]
async fn keys_that_are_older_than_promised_are_removed_also_by_a_service_that_is_often_restarted() {
    let engine = Embedded::new();
    let keyed = |number: u32| {
        let mut scope = [0; 32];
        scope[..4].copy_from_slice(&number.to_be_bytes());
        Write { key: Some(Key { scope, body: [0; 32] }), ..remark(number.into()) }
    };
    let write = async |numbers: std::ops::Range<u32>| {
        let store = engine.open();
        let pending: Vec<_> = numbers.map(|number| store.settle(keyed(number))).collect();
        for written in pending {
            assert!(matches!(written.await.unwrap(), Outcome::Recorded { .. }));
        }
    };
    // More than are removed at once.
    write(0..1_500).await;
    engine.clock.step(i64::try_from(IDEMPOTENCY_KEY_KEPT.as_secs()).unwrap() + 1);
    let path = engine.directory.path().join("pilot.db");
    let kept = || {
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.query_row("SELECT count(*) FROM idempotency", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(kept(), 1_500);
    // Never as many entries in one run as there are between two rounds.
    for run in 0..30 {
        write(2_000 + run * 60..2_060 + run * 60).await;
    }
    assert_eq!(kept(), 30 * 60);
}

#[tokio::test]
async fn an_item_that_someone_changed_behind_the_stores_back_is_damage_and_nothing_is_recorded_on_it() {
    let engine = Embedded::new();
    let (store, cast) = (engine.open(), Arc::new(Cast::default()));
    let (id, ana) = (cast.id(), actor("ana", Role::Initiator));
    store.settle(cast.creation(&id, "title", "ana", "low")).await.unwrap();
    let other = rusqlite::Connection::open(engine.directory.path().join("pilot.db")).unwrap();
    other.execute("UPDATE item SET version = version + 1", []).unwrap();
    let outcome = store.settle(cast.action(&id, &ana, "submit", None)).await;
    assert!(matches!(outcome, Err(StoreError::Damaged(_))), "{outcome:?}");
    assert!(store.settle(cast.action(&id, &ana, "submit", None)).await.is_err());
    assert_eq!(store.head().borrow().size(), 1);
}

#[tokio::test]
async fn a_writing_thread_that_panics_is_damage_and_nobody_else_may_write() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("pilot.db");
    let store = Sqlite::open(&path, Arc::new(|| Time::EPOCH)).unwrap();
    store.settle(remark(0)).await.unwrap();
    let write = Write::new(Subject::Ledger, None, |_: &Situation<'_>| panic!("this cannot be"));
    let outcome = store.settle(write).await;
    assert!(matches!(outcome, Err(StoreError::Damaged(_))), "{outcome:?}");
    assert!(matches!(store.check(), Err(StoreError::Damaged(_))));
    assert!(store.settle(remark(1)).await.is_err());
    let second = Sqlite::open(&path, Arc::new(|| Time::EPOCH));
    assert!(second.is_err_and(|error| error.to_string().contains("another process")));
}
