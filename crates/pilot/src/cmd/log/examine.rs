//! Reading the whole ledger.

use std::io::{IsTerminal, Write};
use std::path::Path;

use pilot_store::sqlite::fsck::{Progress, Report, fsck};

use crate::exit::Failure;

/// Reads the whole store, and shows how far it has come to whoever watches.
pub fn examine(path: &Path) -> Result<Report, Failure> {
    let is_watched = std::io::stderr().is_terminal();
    let mut show = |progress: Progress| {
        if is_watched {
            show_progress(progress);
        }
    };
    let report = fsck(path, &mut show);
    if is_watched {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
    report.map_err(|error| Failure::Environment(error.to_string()))
}

fn show_progress(Progress { step, done, of }: Progress) {
    let percent = done.saturating_mul(100).checked_div(of).unwrap_or(100);
    let _ = write!(std::io::stderr(), "\r\x1b[Kchecking {step}: {percent} %");
}
