//! The ledger's time, for everything that is compared with the ledger.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use pilot_core::time::Time;
use pilot_wire::clock::Stopwatch;

use super::machine::Clock;

/// Never goes back and never stands still: the later of the machine's clock and the last time given out plus what has
/// elapsed since.
#[derive(Clone)]
pub struct LedgerClock(Arc<Parts>);

struct Parts {
    machine: Clock,
    elapsed: Elapsed,
    /// Microseconds to add to the elapsed time. It only grows, whenever the machine's clock is set forward.
    offset: AtomicI64,
}

/// Elapsed time, whatever the machine's clock is set to.
pub enum Elapsed {
    Measured(Stopwatch),
    /// In microseconds; stands still until a test moves it.
    Manual(Arc<AtomicU64>),
}

impl Elapsed {
    pub fn measured() -> Elapsed {
        Elapsed::Measured(Stopwatch::start())
    }

    fn micros(&self) -> i64 {
        let micros = match self {
            Elapsed::Measured(stopwatch) => stopwatch.micros(),
            Elapsed::Manual(micros) => micros.load(Ordering::SeqCst),
        };
        i64::try_from(micros).unwrap_or(i64::MAX)
    }
}

impl LedgerClock {
    pub fn new(machine: Clock, elapsed: Elapsed) -> LedgerClock {
        let offset = machine.now().unix_micros().saturating_sub(elapsed.micros());
        LedgerClock(Arc::new(Parts { machine, elapsed, offset: AtomicI64::new(offset) }))
    }

    /// Makes this clock no earlier than the ledger's last entry.
    pub fn begin_at(&self, last_entry: Time) {
        self.raise(last_entry.unix_micros().saturating_sub(self.0.elapsed.micros()));
    }

    pub fn now(&self) -> Time {
        let (offset, _, elapsed) = self.read();
        Time::from_unix_micros(offset.saturating_add(elapsed))
    }

    /// How far the machine's clock is behind this one.
    pub fn machine_behind(&self) -> Duration {
        let (offset, of_machine, _) = self.read();
        Duration::from_micros(u64::try_from(offset.saturating_sub(of_machine)).unwrap_or(0))
    }

    /// The current offset, the offset that the machine's clock alone would give, and the elapsed time.
    fn read(&self) -> (i64, i64, i64) {
        // The machine's clock first: if the thread is suspended between the two reads, the offset comes out too small,
        // which has no effect. The other way round, the time it was suspended would be added for good.
        let machine = self.0.machine.now().unix_micros();
        let elapsed = self.0.elapsed.micros();
        let of_machine = machine.saturating_sub(elapsed);
        (self.raise(of_machine), of_machine, elapsed)
    }

    fn raise(&self, offset: i64) -> i64 {
        // Almost always nothing changes; not writing then keeps the cache line shared.
        let before = self.0.offset.load(Ordering::Acquire);
        if offset <= before { before } else { self.0.offset.fetch_max(offset, Ordering::AcqRel).max(offset) }
    }
}

/// From this difference on, the machine's clock is reported as behind.
const BEHIND: Duration = Duration::from_secs(1);
/// Less than [`BEHIND`], so that a step of exactly that size, such as a leap second, is not reported over and over.
const TOGETHER: Duration = Duration::from_millis(500);

/// Notices when the machine's clock falls behind the ledger's time and when it has caught up, once each.
#[derive(Default)]
pub struct Watch {
    is_behind: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    FellBehind,
    CaughtUp,
}

impl Watch {
    pub fn look(&mut self, behind: Duration) -> Option<Change> {
        if !self.is_behind && behind > BEHIND {
            self.is_behind = true;
            return Some(Change::FellBehind);
        }
        if self.is_behind && behind < TOGETHER {
            self.is_behind = false;
            return Some(Change::CaughtUp);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Stage {
        machine: Arc<AtomicI64>,
        elapsed: Arc<AtomicU64>,
        clock: LedgerClock,
    }

    fn stage() -> Stage {
        let (machine, elapsed) = (Arc::new(AtomicI64::new(SECOND * 1_000_000)), Arc::new(AtomicU64::new(0)));
        let clock = LedgerClock::new(Clock::Manual(Arc::clone(&machine)), Elapsed::Manual(Arc::clone(&elapsed)));
        Stage { machine, elapsed, clock }
    }

    const SECOND: i64 = 1_000_000;

    impl Stage {
        /// Sets the machine's clock, by this many seconds.
        fn set(&self, seconds: i64) {
            self.machine.fetch_add(seconds * SECOND, Ordering::SeqCst);
        }

        /// Lets time pass on both clocks.
        fn pass(&self, seconds: u32) {
            self.machine.fetch_add(i64::from(seconds) * SECOND, Ordering::SeqCst);
            self.elapsed.fetch_add(u64::from(seconds) * 1_000_000, Ordering::SeqCst);
        }

        fn check(&self, now: i64, behind: u64) {
            assert_eq!(self.clock.now(), Time::from_unix_micros((1_000_000 + now) * SECOND), "the ledger's time");
            assert_eq!(self.clock.machine_behind(), Duration::from_secs(behind), "how far the machine is behind");
        }
    }

    #[test]
    fn a_step_back_changes_nothing_and_time_goes_on_at_its_pace() {
        let stage = stage();
        stage.check(0, 0);
        stage.pass(10);
        stage.check(10, 0);
        stage.set(-3600);
        stage.check(10, 3600);
        stage.pass(5);
        stage.check(15, 3600);
        // Corrected in two steps.
        stage.set(3000);
        stage.check(15, 600);
        stage.set(600);
        stage.check(15, 0);
        stage.pass(1);
        stage.check(16, 0);
    }

    #[test]
    fn a_step_forward_is_followed_at_once_and_kept_when_it_is_undone() {
        let stage = stage();
        let ten_years = 10 * 365 * 86_400;
        stage.set(ten_years);
        stage.check(ten_years, 0);
        stage.set(-ten_years);
        stage.pass(7);
        stage.check(ten_years + 7, u64::try_from(ten_years).unwrap());
    }

    #[test]
    fn it_begins_at_the_last_entry_when_the_machine_is_behind_it() {
        let stage = stage();
        stage.clock.begin_at(Time::from_unix_micros((1_000_000 + 60) * SECOND));
        stage.check(60, 60);
        stage.pass(2);
        stage.check(62, 60);
        // An entry in the past changes nothing.
        stage.clock.begin_at(Time::EPOCH);
        stage.check(62, 60);
    }

    #[test]
    fn a_clock_at_the_ends_of_time_overflows_nothing() {
        let stage = stage();
        stage.machine.store(i64::MAX, Ordering::SeqCst);
        let latest = stage.clock.now();
        stage.elapsed.store(u64::MAX, Ordering::SeqCst);
        stage.machine.store(i64::MIN, Ordering::SeqCst);
        assert_eq!(stage.clock.now(), latest);
        assert!(stage.clock.machine_behind() > Duration::from_hours(24 * 365 * 9000));
    }

    #[test]
    fn the_real_clock_never_goes_back_between_threads() {
        let clock = LedgerClock::new(Clock::System, Elapsed::measured());
        let latest = AtomicI64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        // The latest time anyone saw before this thread asks.
                        let before = latest.load(Ordering::SeqCst);
                        let now = clock.now().unix_micros();
                        assert!(now >= before, "{now} after {before}");
                        latest.fetch_max(now, Ordering::SeqCst);
                    }
                });
            }
        });
    }

    #[test]
    fn falling_behind_and_catching_up_are_each_noticed_once() {
        let mut watch = Watch::default();
        let seen: Vec<_> = [0, 999, 1_000, 1_001, 3_600_000, 1_000, 500, 499, 0, 999, 2_000]
            .into_iter()
            .filter_map(|millis| watch.look(Duration::from_millis(millis)).map(|change| (millis, change)))
            .collect();
        let expected = [(1_001, Change::FellBehind), (499, Change::CaughtUp), (2_000, Change::FellBehind)];
        assert_eq!(seen, expected);
    }
}
