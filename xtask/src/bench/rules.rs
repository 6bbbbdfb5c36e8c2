//! How many decisions the rule engine makes per second.

use crate::step::{self, Failure, cargo};
use crate::tools::exists;

const EXAMPLE: &str = "crates/pilot-core/examples/bench_decide.rs";

pub(super) fn run(arguments: &[&str]) -> Result<(), Failure> {
    super::options::none(arguments)?;
    if !exists(EXAMPLE) {
        return Err(Failure::environment(format!("{EXAMPLE} does not exist, so there is nothing to measure")));
    }
    step::run(&mut cargo(&["run", "--quiet", "--release", "--package", "pilot-core", "--example", "bench_decide"]))
}
