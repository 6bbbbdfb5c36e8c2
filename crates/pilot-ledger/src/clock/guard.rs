//! Notices when the wall clock leaps ahead of the time that has really passed, and stops trusting it.
//!
//! Anyone who can answer the machine's NTP requests can set the wall clock to anything. Nobody can set the time since
//! boot. So the two are read together, and the change in their difference is what counts.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pilot_core::limits::CLOCK_LEAP_MAX;
use pilot_core::time::Time;
use pilot_wire::exposition::Exposition;

use super::record::Record;
use super::wall::Wall;

/// The wall clock may gain one part in this many of the time that passes without using up its allowance for leaps. That
/// is twice what the kernel lets a time service slew.
const GAIN: i64 = 1_000;

/// Time since the machine booted, including time it was suspended.
#[derive(Clone)]
pub enum SinceBoot {
    System,
    /// In microseconds; stands still until a test moves it.
    Manual(Arc<AtomicU64>),
}

impl SinceBoot {
    pub fn micros(&self) -> i64 {
        match self {
            SinceBoot::System => {
                let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
                time.tv_sec.saturating_mul(1_000_000).saturating_add(time.tv_nsec / 1_000)
            }
            SinceBoot::Manual(micros) => i64::try_from(micros.load(Ordering::SeqCst)).unwrap_or(i64::MAX),
        }
    }
}

/// The wall clock, as long as it can be trusted. Otherwise time continues from the last moment it could.
pub struct ClockGuard {
    wall: Wall,
    since_boot: SinceBoot,
    /// The largest trusted difference between wall time and time since boot, in microseconds.
    ceiling: AtomicI64,
    /// The difference when the wall clock was last trusted.
    agreed: AtomicI64,
    anchor: Mutex<Anchor>,
}

struct Anchor {
    /// Leaps are measured from this difference. It follows the wall clock forward, slowly, and never back: a clock that
    /// is set back and then corrected has not leapt.
    difference: i64,
    /// The time since boot when it last moved.
    moved: i64,
    /// True until the wall clock has been seen between the last time known before this start and that time plus the
    /// longest outage.
    is_awaited: bool,
}

/// One reading of both clocks.
#[derive(Clone, Copy)]
struct Reading {
    wall: i64,
    since_boot: i64,
}

impl Reading {
    fn difference(self) -> i64 {
        self.wall.saturating_sub(self.since_boot)
    }
}

impl ClockGuard {
    /// Trusts the wall clock as it is now.
    pub fn new(wall: Wall, since_boot: SinceBoot) -> ClockGuard {
        let guard = ClockGuard {
            wall,
            since_boot,
            ceiling: AtomicI64::new(0),
            agreed: AtomicI64::new(0),
            anchor: Mutex::new(Anchor { difference: 0, moved: 0, is_awaited: false }),
        };
        guard.accept();
        guard
    }

    /// Takes in what the last run and the ledger know about the time. Must be called before anything is dated in this
    /// run. `outage_max` is the longest the service may have been down.
    pub fn begin(&self, record: Option<&Record>, boot_id: &str, last_entry: Option<Time>, outage_max: Duration) {
        let now = self.read();
        if let Some(difference) = record.and_then(|record| record.difference_in(boot_id, now.since_boot)) {
            // The machine has not rebooted since, so the two differ only by the time that has passed.
            self.set(&mut self.anchor(), difference, now.since_boot, CLOCK_LEAP_MAX, false);
            self.agreed.store(difference, Ordering::Release);
        } else if let Some(known) = record.map(|record| record.wall).max(last_entry) {
            let difference = known.unix_micros().saturating_sub(now.since_boot);
            let outage_max = outage_max.max(CLOCK_LEAP_MAX);
            self.set(&mut self.anchor(), difference, now.since_boot, outage_max, true);
            self.agreed.store(now.difference().min(difference), Ordering::Release);
        } else {
            self.accept();
        }
        self.look();
    }

    /// Reads both clocks and follows the wall clock as far as it is trusted. Call this several times a second.
    pub fn look(&self) {
        let now = self.read();
        let mut anchor = self.anchor();
        if now.difference() > self.ceiling.load(Ordering::Acquire) {
            return;
        }
        self.agreed.store(now.difference(), Ordering::Release);
        let difference = if !anchor.is_awaited {
            let gained = now.since_boot.saturating_sub(anchor.moved) / GAIN;
            now.difference().clamp(anchor.difference, anchor.difference.saturating_add(gained.max(0)))
        } else if now.difference() >= anchor.difference {
            now.difference()
        } else {
            // Behind the last known time, so not set yet. Setting it may still have to bridge the whole outage.
            return;
        };
        self.set(&mut anchor, difference, now.since_boot, CLOCK_LEAP_MAX, false);
    }

    /// Trusts the wall clock from now on, because an operator says it is right.
    pub fn accept(&self) {
        let now = self.read();
        self.set(&mut self.anchor(), now.difference(), now.since_boot, CLOCK_LEAP_MAX, false);
        self.agreed.store(now.difference(), Ordering::Release);
    }

    /// Accepts the wall clock if it has run evenly since the operator looked at it.
    pub fn accept_as(&self, word: &Record, boot_id: &str) -> bool {
        let now = self.read();
        let leap_max = micros(CLOCK_LEAP_MAX);
        let meant = word.difference_in(boot_id, now.since_boot);
        let is_meant = meant.is_some_and(|meant| now.difference().saturating_sub(meant).abs() <= leap_max);
        if is_meant {
            self.accept();
        }
        is_meant
    }

    /// The wall clock's time; while it is not trusted, the time it would show without the leap.
    pub fn now(&self) -> Time {
        let now = self.read();
        if now.difference() <= self.ceiling.load(Ordering::Acquire) {
            return Time::from_unix_micros(now.wall);
        }
        Time::from_unix_micros(self.agreed.load(Ordering::Acquire).saturating_add(now.since_boot))
    }

    /// How far the wall clock is ahead, if it is not trusted.
    pub fn doubt(&self) -> Option<Duration> {
        let difference = self.read().difference();
        let is_doubted = difference > self.ceiling.load(Ordering::Acquire);
        let ahead = difference.saturating_sub(self.agreed.load(Ordering::Acquire));
        is_doubted.then(|| Duration::from_micros(u64::try_from(ahead).unwrap_or(0)))
    }

    /// Both clocks as they are now, for the next start; `None` while the wall clock is not trusted.
    pub fn record(&self, boot_id: &str) -> Option<Record> {
        let now = self.read();
        let is_awaited = self.anchor().is_awaited;
        let is_believed = !is_awaited && now.difference() <= self.ceiling.load(Ordering::Acquire);
        is_believed.then(|| Record::new(boot_id, now.since_boot, Time::from_unix_micros(now.wall)))
    }

    pub fn metrics(&self, text: &mut Exposition) {
        let doubt = self.doubt();
        let help = "Whether the machine's clock has jumped ahead and is not trusted: writes are refused.";
        text.gauge("pilot_clock_doubted", help, u8::from(doubt.is_some()));
        let ahead = doubt.unwrap_or_default().as_secs();
        text.gauge("pilot_clock_ahead_seconds", "How far it is ahead while it is not trusted.", ahead);
    }

    fn anchor(&self) -> MutexGuard<'_, Anchor> {
        self.anchor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, anchor: &mut Anchor, difference: i64, moved: i64, may_leap: Duration, is_awaited: bool) {
        *anchor = Anchor { difference, moved, is_awaited };
        self.ceiling.store(difference.saturating_add(micros(may_leap)), Ordering::Release);
    }

    fn read(&self) -> Reading {
        // The wall clock first: if the thread is suspended between the two reads, the wall clock seems behind, which is
        // harmless.
        let wall = self.wall.now().unix_micros();
        Reading { wall, since_boot: self.since_boot.micros() }
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;
    const MINUTE: i64 = 60;
    const DAY: i64 = 86_400;
    const WEEK: Duration = Duration::from_hours(7 * 24);
    const BEGUN: i64 = 1_800_000_000;

    struct Stage {
        wall: Arc<AtomicI64>,
        since_boot: Arc<AtomicU64>,
        guard: ClockGuard,
    }

    fn set_stage() -> Stage {
        let (wall, since_boot) = (Arc::new(AtomicI64::new(BEGUN * SECOND)), Arc::new(AtomicU64::new(5_000_000_000)));
        let clock = Wall::Manual(Arc::clone(&wall));
        let guard = ClockGuard::new(clock, SinceBoot::Manual(Arc::clone(&since_boot)));
        Stage { wall, since_boot, guard }
    }

    impl Stage {
        fn set(&self, seconds: i64) {
            self.wall.fetch_add(seconds * SECOND, Ordering::SeqCst);
            self.guard.look();
        }

        fn pass(&self, seconds: i64) {
            self.wall.fetch_add(seconds * SECOND, Ordering::SeqCst);
            self.since_boot.fetch_add(u64::try_from(seconds * SECOND).unwrap(), Ordering::SeqCst);
            self.guard.look();
        }

        /// Checks the time, in seconds since the beginning, and how far ahead the wall clock is if it is not trusted.
        #[track_caller]
        fn check(&self, now: i64, doubt: Option<u64>) {
            assert_eq!(self.guard.now(), Time::from_unix_micros((BEGUN + now) * SECOND));
            assert_eq!(self.guard.doubt().map(|ahead| ahead.as_secs()), doubt);
        }

        /// A start that finds `record`, and a last entry this many seconds before the beginning.
        fn begin(&self, record: Option<&Record>, boot_id: &str, last_entry: Option<i64>) {
            let last_entry = last_entry.map(|ago| Time::from_unix_micros((BEGUN - ago) * SECOND));
            self.guard.begin(record, boot_id, last_entry, WEEK);
        }
    }

    #[test]
    fn a_leap_of_more_than_ten_minutes_is_not_believed_and_time_goes_on_without_it() {
        let stage = set_stage();
        stage.pass(100);
        stage.set(200 * DAY);
        stage.check(100, Some(200 * 86_400));
        stage.pass(3);
        stage.check(103, Some(200 * 86_400));
        assert_eq!(stage.guard.record("b"), None, "nothing of it is left for the next start");
        stage.set(-200 * DAY);
        stage.check(103, None);
    }

    #[test]
    fn a_smaller_correction_is_followed_and_many_of_them_are_a_leap() {
        let stage = set_stage();
        stage.set(9 * MINUTE);
        stage.check(540, None);
        stage.set(2 * MINUTE);
        stage.check(540, Some(120));
        stage.set(-2 * MINUTE);
        stage.check(540, None);
        // The gain is forgiven as slowly as a clock may drift: in a week.
        stage.pass(7 * DAY);
        stage.set(9 * MINUTE);
        stage.check(7 * DAY + 1080, None);
    }

    #[test]
    fn a_clock_that_is_set_back_and_right_again_has_not_leapt() {
        let stage = set_stage();
        stage.set(-3600);
        stage.check(-3600, None);
        stage.pass(1800);
        stage.check(-1800, None);
        stage.set(3600);
        stage.check(1800, None);
    }

    #[test]
    fn a_machine_that_slept_has_lost_no_time() {
        let stage = set_stage();
        // Both clocks run on while the machine sleeps, and nobody reads them.
        stage.wall.fetch_add(30 * DAY * SECOND, Ordering::SeqCst);
        stage.since_boot.fetch_add(u64::try_from(30 * DAY * SECOND).unwrap(), Ordering::SeqCst);
        stage.check(30 * DAY, None);
    }

    #[test]
    fn an_operator_ends_the_doubt_about_the_clock_that_was_looked_at_and_no_other() {
        let stage = set_stage();
        stage.set(DAY);
        let word = Record::new("b", stage.guard.read().since_boot, stage.guard.wall.now());
        stage.set(200 * DAY);
        assert!(!stage.guard.accept_as(&word, "b"), "it has leapt again since");
        stage.set(-200 * DAY);
        assert!(!stage.guard.accept_as(&word, "c"), "of another start of the machine");
        stage.check(0, Some(86_400));
        stage.pass(60);
        assert!(stage.guard.accept_as(&word, "b"));
        stage.check(DAY + 60, None);
        stage.set(11 * MINUTE);
        stage.check(DAY + 60, Some(660));
    }

    #[test]
    fn a_start_on_the_same_machine_knows_how_much_time_has_passed() {
        let before = set_stage();
        let record = before.guard.record("b").unwrap();
        // The service was down for a month; the machine was not.
        let stage = set_stage();
        stage.pass(30 * DAY);
        stage.begin(Some(&record), "b", Some(0));
        stage.check(30 * DAY, None);
        // The clock leapt while the service was down.
        let stage = set_stage();
        stage.since_boot.fetch_add(60_000_000, Ordering::SeqCst);
        stage.wall.fetch_add((60 + 11 * MINUTE) * SECOND, Ordering::SeqCst);
        stage.begin(Some(&record), "b", Some(0));
        stage.check(60, Some(660));
    }

    #[test]
    fn after_a_restart_of_the_machine_the_clock_may_be_ahead_by_an_outage() {
        let record = set_stage().guard.record("b").unwrap();
        for (away, doubt) in
            [(DAY, None), (7 * DAY, None), (7 * DAY + 1, Some(7 * 86_400 + 1)), (200 * DAY, Some(200 * 86_400))]
        {
            let stage = set_stage();
            stage.wall.fetch_add(away * SECOND, Ordering::SeqCst);
            stage.begin(Some(&record), "c", None);
            stage.check(if doubt.is_none() { away } else { 0 }, doubt);
        }
        // Without a record, the last entry is what is known; without either, there is nothing to compare with.
        let stage = set_stage();
        stage.begin(None, "c", Some(8 * DAY));
        stage.check(-8 * DAY, Some(8 * 86_400));
        let stage = set_stage();
        stage.begin(None, "c", None);
        stage.check(0, None);
    }

    #[test]
    fn a_machine_without_a_clock_of_its_own_is_set_after_the_start() {
        let record = set_stage().guard.record("b").unwrap();
        let stage = set_stage();
        stage.wall.store(0, Ordering::SeqCst);
        stage.begin(Some(&record), "c", None);
        assert_eq!(stage.guard.doubt(), None);
        assert_eq!(stage.guard.record("c"), None, "a time before the last one known is not kept");
        stage.wall.store((BEGUN + DAY) * SECOND, Ordering::SeqCst);
        stage.guard.look();
        stage.check(DAY, None);
        stage.set(11 * MINUTE);
        stage.check(DAY, Some(660));
    }

    #[test]
    fn clocks_at_the_ends_of_time_overflow_nothing() {
        let stage = set_stage();
        for (wall, since_boot) in [(i64::MAX, 0), (i64::MIN, u64::MAX), (i64::MAX, u64::MAX), (i64::MIN, 0)] {
            stage.wall.store(wall, Ordering::SeqCst);
            stage.since_boot.store(since_boot, Ordering::SeqCst);
            stage.guard.look();
            let _ = (stage.guard.now().to_string(), stage.guard.doubt(), stage.guard.record("b"));
            stage.begin(None, "b", Some(0));
            stage.guard.accept();
        }
    }
}
