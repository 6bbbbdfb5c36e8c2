//! `cargo xtask notices`: other people's mail server, to which the tests send mails, and Microsoft's reader of the cards
//! that Teams gets.

use crate::step::Failure;
use crate::tools;

const INSTALLED: &str = "tools/notices-1";
const SCRIPTS: &str = "crates/pilot-notices/tests/readers";

pub(crate) fn install_missing() -> Result<(), Failure> {
    tools::install_packages("readers of notices", SCRIPTS)?;
    tools::install_missing_python(INSTALLED, "xtask/notices.txt").map(|_| ())
}
