//! All tests of the workspace, and the end-to-end tests once more on PostgreSQL.

use std::ops::AddAssign;

use crate::programs::{self, linting_cargo};
use crate::step::{self, Failure, output_of, program, root};

/// End-to-end tests that are left out on PostgreSQL: parts of their names, and why.
const EMBEDDED_ONLY: &[(&str, &str)] = &[
    ("durability::disk::", "full, read-only and damaged disks of the machine that runs the service"),
    ("durability::faults::", "system calls on the ledger's file"),
    ("durability::hang::", "a disk that hangs under the ledger's file"),
    ("durability::linear::", "system calls on the ledger's file"),
    ("durability::power::", "what a power cut leaves of the ledger's file"),
    ("durability::syscalls::", "system calls on the ledger's file"),
    ("api::keys::an_answer_that_an_older_program_kept", "what an older version wrote into the ledger's file"),
    ("start_refusals::a_second_service_on_the_same_store", "two nodes on one database are what it is for"),
    ("start_refusals::a_store_of_a_newer_version", "the header of the ledger's file"),
    ("start_refusals::a_store_that_is_no_database", "the ledger's file"),
    ("operations::backup::", "copies and replaces the ledger's file; pilot-store's tests do it with databases"),
    ("operations::fsck::", "damages the ledger's file; pilot-store's tests damage databases"),
    ("operations::leaps::", "the machine's clock, which dates nothing on PostgreSQL"),
    ("operations::migrate::", "moves ledgers between both engines in any case"),
    ("operations::older::", "ledger files of older versions"),
    ("operations::revocations::", "replaces the ledger's file by an older one"),
    ("operations::second_place::", "replaces the ledger's file by an older one"),
    ("signer::a_log_whose_key_is_in_a_token", "replaces the ledger's file by a backup"),
    ("signer::a_restore_with_loss", "replaces the ledger's file by a backup"),
    ("witnesses::a_witness_or_a_checkpoint_that_ends_before", "replaces the ledger's file by an older one"),
    ("witnesses::a_second_history_under_the_same_key", "replaces the ledger's file by an older one"),
    ("monitor::a_log_that_contradicts", "copies the ledger's file"),
    ("audit_sink::a_ledger_that_does_not_continue", "copies the ledger's file"),
    ("nodes::", "run on PostgreSQL in any case"),
];

/// Passed and failed tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub passed: u64,
    pub failed: u64,
}

impl Counts {
    /// The sum of the closing lines of test programs: `test result: ok. 12 passed; 0 failed; 0 ignored; …`
    pub(super) fn of(printed: &str) -> Counts {
        let mut all = Counts::default();
        for counts in printed.lines().filter_map(|line| line.strip_prefix("test result: ")) {
            let words: Vec<_> = counts.split([' ', '.', ';']).filter(|word| !word.is_empty()).collect();
            for pair in words.windows(2) {
                match pair {
                    [number, "passed"] => all.passed += number.parse().unwrap_or(0),
                    [number, "failed"] => all.failed += number.parse().unwrap_or(0),
                    _ => {}
                }
            }
        }
        all
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// Everything that the tests and the steps after them run. Lints are errors here.
pub(super) fn build() -> Result<(), Failure> {
    step::run(&mut linting_cargo(&["test", "--workspace", "--no-run"]))?;
    programs::build()
}

pub(super) fn run() -> Result<(), Failure> {
    let mut is_any = false;
    // Without the documentation, which has no examples: that takes a start of its tool for every library.
    let mut command = linting_cargo(&["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"]);
    step::run_watching(&mut command, |line| is_any |= Counts::of(line).passed > 0)?;
    if is_any { Ok(()) } else { Err(Failure::refuted("no test was run")) }
}

/// Every end-to-end test that does not need the embedded store, once more on PostgreSQL.
pub(super) fn run_on_postgres() -> Result<(), Failure> {
    let built = end_to_end_tests()?;
    let known = output_of(&mut program(&built, &["--list"]))?;
    let mut tests = program(&built, &[]);
    tests.current_dir(root().join("crates/pilot")).env("PILOT_TEST_STORE", "postgres");
    println!("left out on PostgreSQL:");
    for (name, why) in EMBEDDED_ONLY {
        let count = known.lines().filter(|line| line.contains(name)).count();
        if count == 0 {
            return Err(Failure::refuted(format!("no test is called {name}; EMBEDDED_ONLY is out of date")));
        }
        println!("  {count:>3}  {name:<28} {why}");
        tests.args(["--skip", name]);
    }
    step::run(&mut tests)
}

/// The program with the end-to-end tests. Cargo tells where it is in one line of JSON for each program it built.
fn end_to_end_tests() -> Result<String, Failure> {
    let built =
        output_of(&mut linting_cargo(&["test", "--workspace", "--no-run", "--quiet", "--message-format", "json"]))?;
    let manifest = format!("\"manifest_path\":\"{}\"", root().join("crates/pilot/Cargo.toml").display());
    let line = built.lines().find(|line| line.contains(&manifest) && line.contains("\"name\":\"all\""));
    let path = line.and_then(|line| line.split("\"executable\":\"").nth(1)?.split('"').next());
    path.map(str::to_owned).ok_or_else(|| Failure::environment("cargo did not build the end-to-end tests"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_of_test_programs_are_added_up() {
        let printed = "\
test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.01s
test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
test a::passed ... ok
";
        assert_eq!(Counts::of(printed), Counts { passed: 13, failed: 2 });
    }
}
