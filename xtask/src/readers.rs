//! `cargo xtask readers`: other people's libraries, with which the tests read permit tokens, attestations and
//! webhooks.

use crate::clients;
use crate::step::Failure;
use crate::tools;

const INSTALLED: &str = "tools/readers-2";
const SCRIPTS: &str = "crates/pilot/tests/permits/readers";

pub(crate) fn install_missing() -> Result<(), Failure> {
    tools::install_packages("readers of permit tokens", SCRIPTS)?;
    tools::install_missing_python(INSTALLED, "xtask/readers.txt")?;
    clients::install_missing()
}
