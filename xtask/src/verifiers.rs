//! `cargo xtask verifiers`: two verifiers of evidence, one in Rust and one in Python, compared on bundles most of which are
//! forged.

use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::programs;
use crate::step::{Failure, cannot_start, root, run_timed, shown, target_dir};
use crate::tools;

const INSTALLED: &str = "tools/cryptography-50.0.2";
/// Takes half a minute on one core.
const DEFAULT_COUNT: u64 = 1_000;
const PROCESSES: u64 = 2;

pub(crate) fn command(arguments: &[&str]) -> Result<(), Failure> {
    let number = |text: &str| text.parse().map_err(|_| Failure::usage(format!("`{text}` is not a number")));
    match arguments {
        [] => run(DEFAULT_COUNT, fresh_seed()),
        [count] => run(number(count)?, fresh_seed()),
        [count, seed] => run(number(count)?, number(seed)?),
        _ => Err(Failure::usage("usage: cargo xtask verifiers [COUNT] [SEED]")),
    }
}

/// The same bundles every time: a change is judged by what it does, not by luck. The command tries others.
pub(crate) fn run_default() -> Result<(), Failure> {
    run(DEFAULT_COUNT, 1)
}

/// Another one in each run. Room for many seeds after it.
fn fresh_seed() -> u64 {
    RandomState::new().hash_one(()) >> 24
}

/// Not an optimised build: with the features of the whole workspace it is the one that the tests have made already.
fn run(count: u64, seed: u64) -> Result<(), Failure> {
    let python = tools::install_missing_python(INSTALLED, "xtask/cryptography.txt")?.join("bin/python3");
    // Its own tests first: an error that both verifiers have does not show in a comparison.
    let mut tests = Command::new(&python);
    tests.args(["-m", "unittest", "discover", "--quiet", "--start-directory", "clients/python/tests"]);
    run_timed("tests", tests.current_dir(root()).env("PYTHONDONTWRITEBYTECODE", "1"))?;
    programs::build()?;
    println!("{count} bundles from seed {seed} on; to repeat: cargo xtask verifiers {count} {seed}");
    let share = count.div_ceil(PROCESSES).max(1);
    let starts = (0..PROCESSES).map(|number| number * share).filter(|start| *start < count);
    let pairs: Vec<_> = starts.map(|start| Pair::start(&python, share.min(count - start), seed + start)).collect();
    // All of them to their end, so that no process is left behind.
    let verdicts: Vec<_> = pairs.into_iter().map(|pair| pair.and_then(Pair::finish)).collect();
    verdicts.into_iter().collect()
}

/// One process that forges bundles and judges them, and one that reads and compares.
struct Pair {
    forger: Child,
    comparer: Child,
}

impl Pair {
    fn start(python: &Path, count: u64, seed: u64) -> Result<Pair, Failure> {
        let mut forger = Command::new(target_dir().join("debug/examples/forged_bundles"));
        forger.args([count.to_string(), seed.to_string()]).stdout(Stdio::piped());
        let mut forger = started(&mut forger)?;
        let mut comparer = Command::new(python);
        comparer.arg(root().join("clients/python/compare.py"));
        // Nothing is left in the source tree.
        comparer.env("PYTHONDONTWRITEBYTECODE", "1");
        let comparer = started(comparer.stdin(forger.stdout.take().map_or_else(Stdio::null, Stdio::from)))?;
        Ok(Pair { forger, comparer })
    }

    fn finish(mut self) -> Result<(), Failure> {
        for (child, what) in [(&mut self.comparer, "the verifiers differ"), (&mut self.forger, "the forger failed")] {
            let status = child.wait().map_err(|error| Failure::environment(error.to_string()))?;
            if !status.success() {
                return Err(Failure::refuted(format!("{what} ({status})")));
            }
        }
        Ok(())
    }
}

fn started(command: &mut Command) -> Result<Child, Failure> {
    command.spawn().map_err(|error| cannot_start(&shown(command), &error))
}
