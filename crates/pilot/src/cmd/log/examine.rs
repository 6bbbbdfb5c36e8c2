//! Reads the whole ledger.

use pilot_store::archive::{Archive, Progress, Report};

use crate::exit::Failure;
use crate::output::ProgressLine;

/// Reads the whole ledger, and shows the progress on a terminal.
pub(crate) fn examine(ledger: &dyn Archive) -> Result<Report, Failure> {
    let line = ProgressLine::default();
    let mut show = |Progress { step, done, of }: Progress| {
        let percent = done.saturating_mul(100).checked_div(of).unwrap_or(100);
        line.show(&format!("checking {step}: {percent} %"));
    };
    ledger.examine(&mut show).map_err(|error| Failure::Environment(error.to_string()))
}
