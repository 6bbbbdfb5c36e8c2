//! Reading the whole ledger.

use std::path::Path;

use pilot_store::sqlite::fsck::{Progress, Report, fsck};

use crate::exit::Failure;
use crate::output::ProgressLine;

/// Reads the whole store, and shows how far it has come to whoever watches.
pub(crate) fn examine(path: &Path) -> Result<Report, Failure> {
    let line = ProgressLine::default();
    let mut show = |Progress { step, done, of }: Progress| {
        let percent = done.saturating_mul(100).checked_div(of).unwrap_or(100);
        line.show(&format!("checking {step}: {percent} %"));
    };
    fsck(path, &mut show).map_err(|error| Failure::Environment(error.to_string()))
}
