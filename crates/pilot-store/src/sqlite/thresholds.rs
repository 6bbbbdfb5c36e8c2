//! How long the write-ahead log gets before it is carried into the database.

use std::path::Path;

/// Once the log has this many pages, 48 MiB, it is carried into the database. Pages are counted and not entries: one
/// entry alone in its commit writes several pages, and a start after a crash reads all of them.
const CARRIED_PAGES_MAX: u64 = 12_288;
/// However small the disk is, carrying costs a sync, and is not worth it for less.
const CARRIED_PAGES_MIN: u64 = 64;
/// Of a small disk, the log takes about this part before it is carried: as much as is kept free for carrying it.
const PART: u64 = 16;
const PAGE_BYTES: u64 = 4_096;

/// When the log is carried, by the size of the disk it is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Thresholds {
    pub(super) carried_pages: u64,
}

impl Thresholds {
    /// For the disk that holds this file. A disk whose size is unknown is treated as large: then the log only grows
    /// longer.
    pub(super) fn at(path: &Path) -> Thresholds {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let size = rustix::fs::statvfs(directory).map_or(0, |disk| disk.f_blocks.saturating_mul(disk.f_frsize));
        Thresholds::of_disk(if size == 0 { u64::MAX } else { size })
    }

    fn of_disk(bytes: u64) -> Thresholds {
        Thresholds { carried_pages: (bytes / PART / PAGE_BYTES).clamp(CARRIED_PAGES_MIN, CARRIED_PAGES_MAX) }
    }

    /// When it has this many and is still being carried, the disk cannot keep up: everyone waits for it once.
    pub(super) fn waited_pages(self) -> u64 {
        4 * self.carried_pages
    }

    /// How much of the file is kept for reuse when the log is restarted; growing costs more than overwriting.
    pub(super) fn kept_bytes(self) -> u64 {
        self.waited_pages() * PAGE_BYTES
    }

    /// A reader held on to the log, so it could not be restarted: it is tried again after this many more.
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
