//! The engine for several nodes passes the suite every engine must pass, with one, two and three of them.

mod failures;
mod several;
mod tls;
mod upgrades;

use std::sync::Arc;

use pilot_store::Store;
use pilot_store::archive::Now;
use pilot_store::conformance::{Engine, TestClock};
use pilot_store::postgres::{Access, Identity, Postgres};
use pilot_testing::postgres::{Cluster, Database};

use several::Several;

pub fn open_node(url: &str, name: &str, now: Now) -> pilot_store::Result<Postgres> {
    let access = Access { url: url.to_owned(), ..Access::default() };
    Postgres::open(&access, Identity { name: name.to_owned(), build: "test".to_owned() }, now, Arc::new(|_| {}))
}

struct Shared {
    database: Database,
    nodes: usize,
    clock: TestClock,
}

impl Shared {
    fn by(nodes: usize) -> Shared {
        Shared { database: Cluster::shared().fresh_database(), nodes, clock: TestClock::default() }
    }
}

impl Engine for Shared {
    fn open(&self) -> Arc<dyn Store> {
        let open = |number: usize| -> Arc<dyn Store> {
            let clock = self.clock.clone();
            let now = Arc::new(move || clock.now());
            Arc::new(open_node(self.database.url(), &format!("node-{number}"), now).unwrap())
        };
        if self.nodes == 1 { open(0) } else { Arc::new(Several::new((0..self.nodes).map(open).collect())) }
    }

    fn clock(&self) -> &TestClock {
        &self.clock
    }
}

macro_rules! conforms {
    ($nodes:literal: $($case:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                conformance::$case(&super::Shared::by($nodes)).await;
            }
        )*
    };
}

macro_rules! conforms_with {
    ($($nodes:literal $module:ident),*) => {
        $(
            mod $module {
                use pilot_store::conformance;
                conforms!(
                    $nodes: indices_have_no_gaps_and_refusals_write_nothing,
                    time_never_runs_backwards,
                    of_many_who_write_at_once_exactly_the_allowed_number_wins,
                    a_key_gives_the_same_answer_again_until_it_is_forgotten,
                    duplicates_that_arrive_together_are_recorded_once,
                    items_are_found_by_what_is_known_of_them,
                    a_sorted_list_has_every_item_once_and_a_count_is_exact,
                    a_history_is_whole_and_in_order_with_its_documents,
                    entries_about_an_item_are_counted_when_it_matters,
                    what_is_due_comes_earliest_first,
                    definitions_and_facts_are_kept,
                    a_write_decides_by_the_facts_it_reads_as_they_are_then,
    facts_can_change_without_an_entry,
    an_item_is_shown_with_its_content_a_fact_and_its_newest_entries_first,
                    lists_go_by_order_of_creation_whatever_the_ids_are,
                    the_tree_is_that_of_its_entries_at_every_turn,
                    writes_handed_in_before_the_end_are_not_lost,
                );
            }
        )*
    };
}

conforms_with!(1 one_node, 2 two_nodes, 3 three_nodes);
