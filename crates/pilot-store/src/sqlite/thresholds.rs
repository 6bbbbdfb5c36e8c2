//! How large the write-ahead log gets before it is copied into the database.

use std::path::Path;

/// The log is copied into the database once it has this many pages, 48 MiB. Pages are counted, not entries: an entry
/// that is alone in its commit writes several pages, and a start after a crash reads all of them.
const CARRIED_PAGES_MAX: u64 = 12_288;
/// A minimum, however small the disk: copying costs a sync, which fewer pages are not worth.
const CARRIED_PAGES_MIN: u64 = 64;
/// On a small disk, the log may take about this fraction before it is copied: as much as is kept free for copying it.
const PART: u64 = 16;
const PAGE_BYTES: u64 = 4_096;

/// When the log is copied, depending on the size of its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Thresholds {
    pub(super) carried_pages: u64,
}

impl Thresholds {
    /// For the disk that holds this file. A disk of unknown size is treated as large; then the log just grows longer.
    pub(super) fn at(path: &Path) -> Thresholds {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let size = rustix::fs::statvfs(directory).map_or(0, |disk| disk.f_blocks.saturating_mul(disk.f_frsize));
        Thresholds::of_disk(if size == 0 { u64::MAX } else { size })
    }

    fn of_disk(bytes: u64) -> Thresholds {
        Thresholds { carried_pages: (bytes / PART / PAGE_BYTES).clamp(CARRIED_PAGES_MIN, CARRIED_PAGES_MAX) }
    }

    /// If the log has this many pages and is still being copied, the disk cannot keep up, and all writes wait for it
    /// once.
    pub(super) fn waited_pages(self) -> u64 {
        4 * self.carried_pages
    }

    /// How much of the file is kept for reuse when the log restarts; growing a file costs more than overwriting it.
    pub(super) fn kept_bytes(self) -> u64 {
        self.waited_pages() * PAGE_BYTES
    }

    /// If a reader kept the log from restarting, the next attempt is made after this many more pages.
    pub(super) fn again_pages(self) -> u64 {
        self.carried_pages / 12
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sixteenth_of_a_disk_is_logged_before_it_is_carried_and_never_more_than_48_mib() {
        const MIB: u64 = 1024 * 1024;
        let pages = |bytes| Thresholds::of_disk(bytes).carried_pages;
        assert_eq!(pages(40 * MIB), 640);
        assert_eq!(pages(1 << 40), 12_288);
        assert_eq!(pages(u64::MAX), 12_288);
        assert_eq!(pages(1), 64);
    }
}
