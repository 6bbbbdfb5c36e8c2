//! `cargo xtask mcp`: other people's clients of the Model Context Protocol, with which the tests call `pilot mcp`.

use crate::step::Failure;
use crate::tools;

const INSTALLED: &str = "tools/mcp-1";
const SCRIPTS: &str = "crates/pilot/tests/mcp/clients";

pub(crate) fn install_missing() -> Result<(), Failure> {
    tools::install_packages("MCP clients", SCRIPTS)?;
    tools::install_missing_python(INSTALLED, "xtask/mcp.txt").map(|_| ())
}
