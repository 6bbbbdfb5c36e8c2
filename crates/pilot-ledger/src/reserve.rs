//! A reserve on the disk. Writing stops before the last byte is used, so that everything acknowledged can still be
//! signed, copied into the database, backed up and started from. It resumes when there is space again.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pilot_wire::exposition::Exposition;

/// How often the disk is checked, and how often when little is left.
const LOOK: Duration = Duration::from_millis(250);
const CLOSE_LOOK: Duration = Duration::from_millis(25);
/// Kept free on a large disk: more than is written between two checks, plus what copying the write-ahead log can take.
const BYTES_MAX: u64 = 64 * 1024 * 1024;
/// On a small disk, this fraction is kept free.
const PART: u64 = 16;

pub struct Reserve {
    directory: PathBuf,
    free: AtomicU64,
    kept: AtomicU64,
    /// A write found the disk full since the last check.
    was_met: AtomicBool,
}

impl Reserve {
    /// On the disk that holds this directory.
    pub fn new(directory: PathBuf) -> Reserve {
        let reserve = Reserve {
            directory,
            free: AtomicU64::new(u64::MAX),
            kept: AtomicU64::new(0),
            was_met: AtomicBool::new(false),
        };
        reserve.look();
        reserve
    }

    /// Whether writing has to stop.
    pub fn is_short(&self) -> bool {
        self.was_met.load(Ordering::Relaxed) || self.free.load(Ordering::Relaxed) < self.kept.load(Ordering::Relaxed)
    }

    /// A write found the disk full. Until the next check, no other write has to find out for itself.
    pub fn found_full(&self) {
        self.was_met.store(true, Ordering::Relaxed);
    }

    /// Short, or soon to be.
    fn is_near(&self) -> bool {
        self.is_short() || self.free.load(Ordering::Relaxed) / 4 < self.kept.load(Ordering::Relaxed)
    }

    /// If the disk cannot be queried, nothing is stopped: the store notices a full disk too, only later.
    fn look(&self) {
        let disk = rustix::fs::statvfs(&self.directory);
        self.was_met.store(false, Ordering::Relaxed);
        if let Ok(disk) = disk {
            self.found(disk.f_blocks.saturating_mul(disk.f_frsize), disk.f_bavail.saturating_mul(disk.f_frsize));
        }
    }

    fn found(&self, size: u64, free: u64) {
        self.kept.store(BYTES_MAX.min(size / PART), Ordering::Relaxed);
        self.free.store(free, Ordering::Relaxed);
    }

    pub fn metrics(&self, text: &mut Exposition) {
        let (free, kept) = (self.free.load(Ordering::Relaxed), self.kept.load(Ordering::Relaxed));
        text.gauge("pilot_disk_free_bytes", "Free space on the disk of the data directory.", free);
        text.gauge("pilot_disk_reserve_bytes", "Writes are refused while less space than this is free.", kept);
    }
}

/// Runs as long as the service does.
pub async fn run(reserve: Arc<Reserve>) {
    let mut was_short = false;
    loop {
        let looked = Arc::clone(&reserve);
        // A network disk may be slow to answer.
        let _ = tokio::task::spawn_blocking(move || looked.look()).await;
        let is_short = reserve.is_short();
        if is_short != was_short {
            let directory = reserve.directory.display();
            if is_short {
                tracing::error!("{directory}: the disk is nearly full; writes are refused until there is space again");
            } else {
                tracing::info!("{directory}: there is space again; writing resumes");
            }
            was_short = is_short;
        }
        tokio::time::sleep(if reserve.is_near() { CLOSE_LOOK } else { LOOK }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_met_the_end_of_the_disk_is_believed_until_a_look_finds_room() {
        for directory in ["/", "/a/directory/that/cannot/be/asked/about"] {
            let reserve = Reserve::new(PathBuf::from(directory));
            reserve.found(1 << 40, 1 << 39);
            reserve.found_full();
            assert!(reserve.is_short() && reserve.is_near());
            reserve.look();
            assert!(!reserve.is_short(), "{directory}");
        }
    }

    #[test]
    fn a_sixteenth_of_a_disk_is_kept_free_and_never_more_than_64_mib() {
        const MIB: u64 = 1024 * 1024;
        let reserve = Reserve::new(PathBuf::from("/"));
        for (size, free, is_short) in [
            (64 * MIB, 4 * MIB, false),
            (64 * MIB, 4 * MIB - 1, true),
            (64 * MIB, 0, true),
            (1 << 40, 64 * MIB, false),
            (1 << 40, 64 * MIB - 1, true),
            // A disk without a size, such as some network disks, has no reserve.
            (0, 0, false),
        ] {
            reserve.found(size, free);
            assert_eq!(reserve.is_short(), is_short, "{free} of {size}");
        }
    }
}
