//! Waits until nothing else uses the machine, and says what was used during a measurement all the same.

use std::fs;
use std::time::Duration;

use super::length;
use crate::processor::{self, Machine};
use crate::step::{Failure, Stopwatch};

const LOOK: Duration = Duration::from_secs(2);
/// That many quiet looks in a row.
const LOOKS: u32 = 3;
/// Of all processors: that much is always in use.
const BUSY_MAX: f64 = 0.05;
/// Of all processors: more than that may not be stolen while something is measured.
const STOLEN_MAX: f64 = 0.02;
/// How often it is measured again for that.
const AGAIN_MAX: usize = 3;

/// Waits; if the machine does not become quiet in time, says so and goes on.
pub(super) fn wait() {
    let (watch, most) = (Stopwatch::start(), Duration::from_secs(length::wait_seconds_max().into()));
    let mut quiet = 0;
    while quiet < LOOKS {
        if watch.elapsed() >= most {
            println!("the machine is not quiet after {} s of waiting; measuring all the same", most.as_secs());
            return;
        }
        let before = Machine::now();
        std::thread::sleep(LOOK);
        quiet = if is_quiet(Machine::now().since(before)) { quiet + 1 } else { 0 };
    }
}

fn is_quiet(used: Machine) -> bool {
    (used.busy + used.stolen) / used.all() <= BUSY_MAX
}

/// A round during which other virtual machines took too much is measured again. Only what was stolen decides which round
/// counts, never its result.
pub(super) fn undisturbed<T>(mut measure: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    least_disturbed(|| {
        let before = Machine::now();
        let measured = measure()?;
        let used = Machine::now().since(before);
        // Too short to be counted is too short to be disturbed.
        Ok((if used.all() > 0.0 { used.stolen / used.all() } else { 0.0 }, measured))
    })
}

fn least_disturbed<T>(mut measure: impl FnMut() -> Result<(f64, T), Failure>) -> Result<T, Failure> {
    let (mut stolen, mut best) = measure()?;
    for again in 1..=AGAIN_MAX {
        if stolen <= STOLEN_MAX {
            break;
        }
        println!("{:.0} % were stolen; measured again ({again} of {AGAIN_MAX})", stolen * 100.0);
        let (next, measured) = measure()?;
        if next < stolen {
            (stolen, best) = (next, measured);
        }
    }
    Ok(best)
}

/// The machine before a measurement.
pub(super) struct Before {
    load: String,
    machine: Machine,
    own: f64,
}

impl Before {
    pub(super) fn now() -> Before {
        Before { load: load(), machine: Machine::now(), own: processor::own_seconds() }
    }

    /// After the measurement.
    pub(super) fn until_now(self) -> Conditions {
        let (used, own) = (Machine::now().since(self.machine), processor::own_seconds() - self.own);
        Conditions {
            load_before: self.load,
            load_after: load(),
            others: others(used, own),
            stolen: used.stolen / used.all(),
        }
    }
}

/// By processes that the benchmark did not start, and by the kernel on its own; of all processors.
fn others(used: Machine, own: f64) -> f64 {
    ((used.busy - own) / used.all()).max(0.0)
}

/// What else the machine did during a measurement.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Conditions {
    /// The averages over 1, 5 and 15 minutes.
    pub load_before: String,
    pub load_after: String,
    /// Of all processors.
    pub others: f64,
    pub stolen: f64,
}

fn load() -> String {
    read_load(&fs::read_to_string("/proc/loadavg").unwrap_or_default())
}

/// `0.52 0.58 0.59 1/467 12345`
fn read_load(text: &str) -> String {
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_quiet_if_hardly_any_of_its_time_is_used_or_stolen() {
        let used = |busy, stolen| Machine { busy, idle: 4.0 - busy - stolen, stolen };
        for (machine, expected) in [(used(0.1, 0.0), true), (used(0.3, 0.0), false), (used(0.1, 0.2), false)] {
            assert_eq!(is_quiet(machine), expected, "{machine:?}");
        }
        assert!(!is_quiet(Machine::default()), "nothing could be read");
    }

    #[test]
    fn a_disturbed_round_is_measured_again_a_few_times_and_the_least_disturbed_one_counts() {
        for (stolen, expected) in [
            (&[0.0, 0.5][..], (0, 1)),
            (&[0.02, 0.0], (0, 1)),
            (&[0.3, 0.01, 0.0], (1, 2)),
            (&[0.3, 0.1, 0.2, 0.4, 0.0], (1, 4)),
        ] {
            let mut rounds = 0;
            let counts = least_disturbed(|| {
                rounds += 1;
                Ok((stolen[rounds - 1], rounds - 1))
            });
            assert_eq!((counts.unwrap(), rounds), expected, "{stolen:?}");
        }
        let failed = least_disturbed(|| Err::<(f64, ()), _>(Failure::environment("it is gone")));
        assert_eq!(failed.unwrap_err().to_string(), "it is gone");
    }

    #[test]
    fn what_others_used_is_the_rest_of_what_was_used() {
        let used = Machine { busy: 6.0, idle: 4.0, stolen: 0.0 };
        assert_eq!((others(used, 5.0), others(used, 6.5)), (0.1, 0.0));
    }

    #[test]
    fn the_load_is_read() {
        assert_eq!(read_load("0.52 0.58 0.59 1/467 12345\n"), "0.52 0.58 0.59");
        assert_eq!(read_load(""), "");
    }
}
