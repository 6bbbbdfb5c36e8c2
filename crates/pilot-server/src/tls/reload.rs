//! Takes up a replaced certificate without a restart. The files are looked at once a second; no signal is needed.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{Tls, load};
use crate::app::App;
use crate::start::with_cause;

pub const LOOK: Duration = Duration::from_secs(1);

/// Device, inode, time of change and size: a file that was replaced differs in one of them.
type Stamp = Option<(u64, u64, i64, i64, u64)>;

/// Files that are looked at now and then.
pub struct Watched {
    paths: Vec<PathBuf>,
    looks: Mutex<Looks>,
}

struct Looks {
    applied: Vec<Stamp>,
    last: Vec<Stamp>,
}

impl Watched {
    pub fn new<'p>(paths: impl Iterator<Item = &'p PathBuf>) -> Watched {
        let paths: Vec<_> = paths.cloned().collect();
        let stamps: Vec<_> = paths.iter().map(|path| stamp(path)).collect();
        Watched { paths, looks: Mutex::new(Looks { applied: stamps.clone(), last: stamps }) }
    }

    /// Whether the files are others than those in use, and have come to rest.
    pub fn look(&self) -> bool {
        let stamps = self.paths.iter().map(|path| stamp(path)).collect();
        self.looks.lock().unwrap_or_else(PoisonError::into_inner).is_due(stamps)
    }
}

impl Looks {
    /// Whether the files are others than those in use, and are the same as a look ago: a certificate and its key are
    /// two files, and whoever replaces them needs a moment for the second.
    fn is_due(&mut self, now: Vec<Stamp>) -> bool {
        let settled = now == self.last;
        self.last.clone_from(&now);
        if !settled || now == self.applied {
            return false;
        }
        // Also when it turns out to be unusable: it is tried again when it changes again, not every second.
        self.applied = now;
        true
    }
}

fn stamp(path: &Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), metadata.size()))
}

impl Tls {
    /// Runs for as long as the service does.
    pub async fn follow(self: Arc<Self>, app: Arc<App>) {
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            looks.tick().await;
            let (tls, app) = (Arc::clone(&self), Arc::clone(&app));
            // Files may lie on a disk that does not answer; requests must not wait for it.
            let _ = tokio::task::spawn_blocking(move || tls.refresh(&app)).await;
        }
    }

    fn refresh(&self, app: &App) {
        if !self.watched.look() {
            return;
        }
        match load(&self.files, self.others) {
            Ok(loaded) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = loaded.config;
                app.metrics.certificate_loaded(loaded.certificate.not_after);
                app.metrics.certificate_reloaded(true);
                let not_after = loaded.certificate.not_after.to_string();
                tracing::info!(not_after, "the certificate was replaced; new connections get the new one");
            }
            Err(error) => {
                app.metrics.certificate_reloaded(false);
                let cause = with_cause(&error);
                tracing::warn!(cause, "the new certificate cannot be used; the previous one stays in force");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Vec<Stamp> {
        vec![Some((1, 1, second, 0, 10)), Some((1, 2, 0, 0, 10))]
    }

    #[test]
    fn a_replaced_file_is_taken_up_once_and_only_when_it_has_settled() {
        let mut looks = Looks { applied: at(0), last: at(0) };
        assert!(!looks.is_due(at(0)), "nothing changed");
        assert!(!looks.is_due(at(1)), "it may still be changing");
        assert!(!looks.is_due(at(2)), "it did");
        assert!(looks.is_due(at(2)));
        assert!(!looks.is_due(at(2)), "taken up already, or found unusable");
    }

    #[test]
    fn a_file_that_vanished_and_came_back_as_it_was_is_not_taken_up_again() {
        let gone = || vec![None, Some((1, 2, 0, 0, 10))];
        let mut looks = Looks { applied: at(0), last: at(0) };
        assert!(!looks.is_due(gone()));
        assert!(!looks.is_due(at(0)));
        assert!(!looks.is_due(at(0)));
    }
}
