//! When a command must be stopped so that it has ended before the lease does.

use std::time::Duration;

use crate::work::boot::Moment;

/// What is left between the last process and the end of the lease.
const MARGIN: Duration = Duration::from_secs(10);

/// The lease as its holder counts it: from the moment of *asking* for it, which is before the service counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fence {
    asked_at: Moment,
    length: Duration,
    grace: Duration,
}

impl Fence {
    /// `grace` is how long a command has between being asked to end and being killed. It is shortened for a lease that
    /// would leave no time to work.
    pub(crate) fn new(asked_at: Moment, length: Duration, grace: Duration) -> Fence {
        Fence { asked_at, length, grace: grace.min(length / 4) }
    }

    /// A lease that was renewed.
    pub(crate) fn renewed(self, asked_at: Moment, length: Duration) -> Fence {
        Fence::new(asked_at, length, self.grace)
    }

    pub(crate) fn grace(self) -> Duration {
        self.grace
    }

    /// How long the keeper may take beyond its own limits before the agent does its work: less than what is left then.
    pub(crate) fn late(self) -> Duration {
        self.margin() / 2
    }

    fn margin(self) -> Duration {
        MARGIN.min(self.length / 10)
    }

    /// When the command is asked to end, if the lease is not renewed before.
    pub(crate) fn stop_at(self) -> Moment {
        self.asked_at.plus(self.length).minus(self.grace + self.margin())
    }

    pub(crate) fn renew_at(self) -> Moment {
        self.asked_at.plus(self.length / 3)
    }

    /// How often to try again if the service does not answer.
    pub(crate) fn retry_after(self) -> Duration {
        (self.length / 60).clamp(Duration::from_millis(100), Duration::from_secs(5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(length: u64, grace: u64) -> Fence {
        Fence::new(Moment::from_millis(0), Duration::from_secs(length), Duration::from_secs(grace))
    }

    #[test]
    fn a_command_is_stopped_a_grace_and_ten_seconds_before_the_lease_ends() {
        assert_eq!(fence(900, 30).stop_at(), Moment::from_millis(860_000));
        assert_eq!(fence(900, 30).renew_at(), Moment::from_millis(300_000));
    }

    #[test]
    fn a_short_lease_still_leaves_time_to_work_and_to_renew() {
        let short = fence(4, 30);
        assert_eq!(short.grace(), Duration::from_secs(1));
        assert_eq!(short.stop_at(), Moment::from_millis(2_600));
        assert!(short.renew_at() < short.stop_at());
    }
}
