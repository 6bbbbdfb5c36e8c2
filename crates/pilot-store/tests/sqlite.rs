//! The embedded engine passes the suite every engine must pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pilot_store::conformance::{self, Engine, TestClock};
use pilot_store::sqlite::Sqlite;
use pilot_store::sqlite::fsck::fsck;
use pilot_store::{Outcome, Store};

struct Embedded {
    directory: PathBuf,
    clock: TestClock,
}

impl Embedded {
    fn new() -> Embedded {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("pilot-store-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory).unwrap();
        Embedded { directory, clock: TestClock::default() }
    }
}

impl Engine for Embedded {
    fn open(&self) -> Arc<dyn Store> {
        let clock = self.clock.clone();
        Arc::new(Sqlite::open(&self.directory.join("pilot.db"), Arc::new(move || clock.now())).unwrap())
    }

    fn clock(&self) -> &TestClock {
        &self.clock
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
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
                let report = fsck(&engine.directory.join("pilot.db"), &mut |_| ()).unwrap();
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
    a_history_is_whole_and_in_order_with_its_documents,
    what_is_due_comes_earliest_first,
    definitions_and_facts_are_kept,
    the_tree_is_that_of_its_entries_at_every_turn,
    writes_handed_in_before_the_end_are_not_lost,
);

/// Remarks with these numbers, so many at a time.
async fn remarks(store: &Sqlite, numbers: std::ops::Range<u64>, together: usize) {
    let numbers: Vec<u64> = numbers.collect();
    for numbers in numbers.chunks(together) {
        let pending: Vec<_> = numbers.iter().map(|number| store.settle(conformance::remark(*number))).collect();
        for pending in pending {
            assert!(matches!(pending.await, Ok(Outcome::Recorded { .. })));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_write_ahead_log_stays_within_bounds_however_many_share_a_commit() {
    for (together, entries) in [(1, 15_000), (20, 60_000)] {
        let engine = Embedded::new();
        let (path, clock) = (engine.directory.join("pilot.db"), engine.clock.clone());
        let store = Sqlite::open_to_fill(&path, Arc::new(move || clock.now())).unwrap();
        let log_bytes = || std::fs::metadata(engine.directory.join("pilot.db-wal")).unwrap().len();
        remarks(&store, 0..entries / 10, together).await;
        let of_a_tenth = log_bytes();
        remarks(&store, entries / 10..entries, together).await;
        let in_the_end = log_bytes();
        println!("{together} together: {of_a_tenth} bytes after a tenth of {entries} entries, {in_the_end} in the end");
        // Three quarters of 48 MiB more may be written while that much is carried over, and the disk may be slow.
        assert!(in_the_end < 3 * (48 << 20), "{together} together: {in_the_end} bytes");
        drop(store);
        assert_eq!(engine.open().head().borrow().size(), entries);
        let report = fsck(&path, &mut |_| ()).unwrap();
        assert!(report.faults.is_empty(), "{:#?}", report.faults);
    }
}
