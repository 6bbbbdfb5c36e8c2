//! `cargo xtask check`: everything a change must pass, in the order in which it fails fastest.

use std::time::Duration;

use crate::step::{self, Failure, Stopwatch, cargo, output_of, program, root, run_watching};
use crate::tools::{self, CC, CURL, CXX, JQ, OPENSSL, SSH_KEYGEN, STRACE, VISUDO};
use crate::{
    clients, console, deny, fuzz, manifests, mcp, notices, observe, pages, postgres, proxies, readers, schema, vault,
    verifiers,
};

const FUZZ_SECONDS: u32 = 10;

const PAGES: &str = "pages";

/// Whether the documentation's commands are run: that needs root and a kernel that lets it create machines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pages {
    Run,
    LeftOut,
}

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

type Step = (&'static str, fn(&mut Tests) -> Result<(), Failure>);

const STEPS: &[Step] = &[
    ("tools", |_| install_tools()),
    ("format", |_| format()),
    ("tidy", |_| {
        step::run(&mut cargo(&["test", "--quiet", "--package", "xtask", "--test", "tidy", "--test", "circles"]))
    }),
    // Before any Rust, because the program is built with the console's files.
    ("console", |_| console::check()),
    ("lints", |_| step::run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))),
    ("vault", |_| vault::install()),
    ("tests", Tests::run),
    ("verifiers", |_| verifiers::run_default()),
    ("clients", |_| clients::run()),
    ("PostgreSQL", Tests::run_on_postgres),
    (PAGES, |_| pages::run_all()),
    ("manifests", |_| manifests::check()),
    ("observe", |_| observe::check()),
    ("browser", |_| console::check_in_browser()),
    ("schema", |_| schema::run_default()),
    ("dependencies", |_| deny::run()),
    ("fuzzing", |_| fuzz::run(fuzz::TARGETS, FUZZ_SECONDS)),
];

pub(crate) fn run(pages: Pages) -> Result<(), Failure> {
    let whole = Stopwatch::start();
    let mut tests = Tests::default();
    let mut times = Vec::new();
    for (number, (name, step)) in (1..).zip(STEPS) {
        println!("\n=== {number}/{} {name}", STEPS.len());
        if *name == PAGES && pages == Pages::LeftOut {
            println!("SKIPPED, as requested: the commands of the operators' pages were not run");
            continue;
        }
        let watch = Stopwatch::start();
        let outcome = step(&mut tests);
        times.push((*name, watch.elapsed()));
        if let Err(failure) = outcome {
            print_summary(&times, whole.elapsed());
            return Err(Failure::refuted(format!("check stopped at step {number}, {name}: {failure}")));
        }
        println!("=== {number}/{} {name}: {:.1} s", STEPS.len(), watch.elapsed().as_secs_f64());
    }
    print_summary(&times, whole.elapsed());
    println!("tests: {} passed, {} failed", tests.passed, tests.failed);
    if pages == Pages::LeftOut {
        println!("pages: NOT RUN; run `cargo xtask pages` on a machine that can");
    }
    Ok(())
}

fn install_tools() -> Result<(), Failure> {
    tools::install_missing(&[CC, CXX, STRACE, CURL, JQ, OPENSSL, VISUDO, SSH_KEYGEN])?;
    tools::install_missing_token()?;
    tools::install_missing_syslog()?;
    postgres::install()?;
    tools::install_packages("identity provider", tools::PROVIDER)?;
    readers::install_missing()?;
    mcp::install_missing()?;
    notices::install_missing()?;
    proxies::install_missing()?;
    tools::install_missing_components()
}

fn format() -> Result<(), Failure> {
    step::run(&mut cargo(&["fmt", "--all", "--check"]))?;
    // A separate workspace, which the first command does not see.
    step::run(&mut cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))
}

/// The totals of the summary lines of all test programs.
#[derive(Default)]
struct Tests {
    passed: u64,
    failed: u64,
}

impl Tests {
    fn run(&mut self) -> Result<(), Failure> {
        let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
        run_watching(&mut command, |line| self.count(line))?;
        if self.passed == 0 { Err(Failure::refuted("no test was run")) } else { Ok(()) }
    }

    /// Every end-to-end test that does not need the embedded store, once more on PostgreSQL.
    fn run_on_postgres(&mut self) -> Result<(), Failure> {
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
        run_watching(&mut tests, |line| self.count(line))
    }

    /// `test result: ok. 12 passed; 0 failed; 0 ignored; …`
    fn count(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        let words: Vec<_> = counts.split([' ', '.', ';']).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            match pair {
                [number, "passed"] => self.passed += number.parse().unwrap_or(0),
                [number, "failed"] => self.failed += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

/// The program with the end-to-end tests. Cargo tells where it is in one line of JSON for each program it built.
fn end_to_end_tests() -> Result<String, Failure> {
    let built = output_of(&mut cargo(&["test", "--workspace", "--no-run", "--quiet", "--message-format", "json"]))?;
    let manifest = format!("\"manifest_path\":\"{}\"", root().join("crates/pilot/Cargo.toml").display());
    let line = built.lines().find(|line| line.contains(&manifest) && line.contains("\"name\":\"all\""));
    let path = line.and_then(|line| line.split("\"executable\":\"").nth(1)?.split('"').next());
    path.map(str::to_owned).ok_or_else(|| Failure::environment("cargo did not build the end-to-end tests"))
}

fn print_summary(times: &[(&str, Duration)], whole: Duration) {
    println!("\n{:<16}{:>10}", "step", "seconds");
    for (name, time) in times.iter().chain(&[("all", whole)]) {
        println!("{name:<16}{:>10.1}", time.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_of_test_programs_are_added_up() {
        let mut tests = Tests::default();
        for line in [
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.01s",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test a::passed ... ok",
        ] {
            tests.count(line);
        }
        assert_eq!((tests.passed, tests.failed), (13, 2));
    }
}
