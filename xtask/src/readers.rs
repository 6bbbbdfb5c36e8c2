//! `cargo xtask readers`: other people's libraries, with which the tests read permit tokens.

use crate::step::Failure;
use crate::tools;

const INSTALLED: &str = "tools/pyjwt-2.15.1";
const SCRIPTS: &str = "crates/pilot/tests/permits/readers";

pub(crate) fn install_missing() -> Result<(), Failure> {
    tools::install_packages("readers of permit tokens", SCRIPTS)?;
    tools::install_missing_python(INSTALLED, "xtask/pyjwt.txt").map(|_| ())
}
