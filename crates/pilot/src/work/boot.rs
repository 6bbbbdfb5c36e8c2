//! Time since boot: it never jumps, and it counts the time the machine was asleep, as the service's clock does.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment of this boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

impl Moment {
    pub(crate) fn now() -> Moment {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Moment(Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default()))
    }

    pub(crate) fn from_millis(millis: u64) -> Moment {
        Moment(Duration::from_millis(millis))
    }

    pub(crate) fn millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn plus(self, span: Duration) -> Moment {
        Moment(self.0.saturating_add(span))
    }

    pub(crate) fn minus(self, span: Duration) -> Moment {
        Moment(self.0.saturating_sub(span))
    }

    /// How long until this moment; nothing if it has passed.
    pub(crate) fn left(self) -> Duration {
        self.0.saturating_sub(Moment::now().0)
    }

    pub(crate) fn is_past(self) -> bool {
        self.left().is_zero()
    }
}

/// Which boot this is: processes of another one are gone.
pub(crate) fn id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_or_else(|_| String::new(), |id| id.trim().to_owned())
}
