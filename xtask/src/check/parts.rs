//! A check under way: its steps side by side, and what they print one after the other.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::thread;
use std::time::Duration;

use super::order::{self, State, Step};
use super::process::{Output, Process};
use crate::processor;
use crate::step::{Failure, Stopwatch};

const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The file of this program, even after a build has put another one, which is the same, in its place.
const THIS_PROGRAM: &str = "/proc/self/exe";

pub(super) struct Parts {
    all: Vec<Part>,
    xtask: PathBuf,
    watch: Stopwatch,
}

impl Parts {
    pub(super) fn of(steps: &'static [Step], left_out: &[&str]) -> Parts {
        let count = steps.len();
        let part = |(number, step): (usize, &'static Step)| {
            Part::of(step, format!("=== {number}/{count} {}", step.name), left_out.contains(&step.name))
        };
        Parts { all: (1..).zip(steps).map(part).collect(), xtask: THIS_PROGRAM.into(), watch: Stopwatch::start() }
    }

    /// So many steps at once, until all are done or one fails, which stops the others.
    pub(super) fn run(&mut self, at_once: usize) -> Result<(), Failure> {
        while self.all.iter().any(|part| part.state != State::Done) {
            self.start(at_once)?;
            self.show();
            thread::sleep(LOOK_EVERY);
            if let Some((failed, status)) = self.end()? {
                return Err(self.stop(failed, status));
            }
        }
        self.show();
        Ok(())
    }

    fn start(&mut self, at_once: usize) -> Result<(), Failure> {
        while self.all.iter().filter(|part| part.state == State::Running).count() < at_once {
            let states: Vec<_> = self.all.iter().map(|part| (part.step, part.state)).collect();
            let next = order::next(&states).and_then(|at| self.all.get_mut(at));
            let Some(part) = next else { break };
            part.process = Some(Process::start(&self.xtask, part.step.name, &part.output)?);
            part.state = State::Running;
            part.began = self.watch.elapsed();
        }
        Ok(())
    }

    /// Sees which steps have ended. Returns the position of one that failed.
    fn end(&mut self) -> Result<Option<(usize, ExitStatus)>, Failure> {
        for (at, part) in self.all.iter_mut().enumerate() {
            let Some(process) = &mut part.process else { continue };
            let before = processor::seconds_of_ended();
            let Some(status) = process.ended()? else { continue };
            part.computed = processor::seconds_of_ended() - before;
            part.took = Some(self.watch.elapsed().saturating_sub(part.began));
            part.process = None;
            part.state = State::Done;
            if !status.success() {
                return Ok(Some((at, status)));
            }
        }
        Ok(None)
    }

    /// Shows the first step that is not done while it runs, and the others when it is their turn.
    fn show(&mut self) {
        for part in self.all.iter_mut().filter(|part| !part.is_shown) {
            part.show();
            if part.state != State::Done {
                break;
            }
            part.close();
        }
    }

    /// Stops what still runs, and shows the step that failed last.
    fn stop(&mut self, failed: usize, status: ExitStatus) -> Failure {
        self.all.iter_mut().for_each(|part| part.process = None);
        for (at, part) in self.all.iter().enumerate() {
            if part.has_heading && !part.is_shown && at != failed {
                println!("{}: stopped, because another step has failed", part.heading);
            }
        }
        let Some(part) = self.all.get_mut(failed) else { return Failure::refuted("a step failed") };
        part.show();
        let printed = part.output.text();
        // The last thing that this program prints when it fails.
        let reason = printed.rsplit_once("\nxtask: ").map(|(_, reason)| reason.trim().to_owned());
        let reason = reason.unwrap_or_else(|| format!("it ended with {status}"));
        Failure::refuted(format!("check stopped at step {}: {reason}", part.heading.trim_start_matches(['=', ' '])))
    }

    /// When each step began, how long it took, and for how long it computed.
    pub(super) fn print_times(&self) {
        let line = |name: &str, [began, took, computed]: [f64; 3]| {
            println!("{name:<16}{began:>10.1}{took:>10.1}{computed:>14.1}");
        };
        println!("\n{:<16}{:>10}{:>10}{:>14}", "step", "from", "seconds", "CPU seconds");
        for part in &self.all {
            if let Some(took) = part.took {
                line(part.step.name, [part.began.as_secs_f64(), took.as_secs_f64(), part.computed]);
            }
        }
        let computed = self.all.iter().map(|part| part.computed).sum();
        line("all", [0.0, self.watch.elapsed().as_secs_f64(), computed]);
    }
}

struct Part {
    step: &'static Step,
    heading: String,
    state: State,
    process: Option<Process>,
    output: Output,
    began: Duration,
    /// None if it has not ended.
    took: Option<Duration>,
    /// CPU seconds.
    computed: f64,
    has_heading: bool,
    is_shown: bool,
}

impl Part {
    fn of(step: &'static Step, heading: String, is_left_out: bool) -> Part {
        let state = if is_left_out { State::Done } else { State::Waiting };
        let output = Output::of(step.name);
        let (began, took, process) = (Duration::ZERO, None, None);
        Part { step, heading, state, process, output, began, took, computed: 0.0, has_heading: false, is_shown: false }
    }

    fn show(&mut self) {
        if self.state == State::Waiting {
            return;
        }
        if !self.has_heading {
            self.has_heading = true;
            println!("\n{}", self.heading);
        }
        // Of a step that is left out, there is only what an earlier check printed.
        if self.process.is_some() || self.took.is_some() {
            self.output.show();
        }
    }

    fn close(&mut self) {
        self.is_shown = true;
        match self.took {
            Some(took) => println!("{}: {:.1} s", self.heading, took.as_secs_f64()),
            None => println!("SKIPPED, as requested"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::LazyLock;

    use super::*;
    use crate::step::target_dir;

    /// Stands in for this program: each step does what its name says.
    const STAND_IN: &str = "#!/bin/sh\n\
        case $2 in waits-*) trap '' TERM; sleep 600 ;; fails-*) echo some output; printf '\\nxtask: it is broken\\n' >&2; exit 1 ;; esac\n";

    const fn step(name: &'static str, after: &'static [&'static str]) -> Step {
        Step { name, after, run: || Ok(()) }
    }

    fn parts(steps: &'static [Step]) -> Parts {
        // Written once: a file cannot be run while another thread writes it.
        static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
            let program = target_dir().join("stand-in");
            fs::write(&program, STAND_IN).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            program
        });
        Parts { xtask: PROGRAM.clone(), ..Parts::of(steps, &["left-out"]) }
    }

    #[test]
    fn all_steps_are_run_but_those_left_out() {
        const STEPS: &[Step] = &[step("first", &[]), step("second", &["first"]), step("left-out", &["first"])];
        let mut parts = parts(STEPS);
        parts.run(2).unwrap();
        let ran: Vec<_> = parts.all.iter().map(|part| part.took.is_some()).collect();
        assert_eq!(ran, [true, true, false]);
    }

    #[test]
    fn a_step_that_fails_stops_the_others_and_says_why() {
        const STEPS: &[Step] = &[step("waits-long", &[]), step("fails-soon", &[]), step("never", &["fails-soon"])];
        let mut parts = parts(STEPS);
        let failure = parts.run(2).unwrap_err();
        assert_eq!(failure.to_string(), "check stopped at step 2/3 fails-soon: it is broken");
        let still: Vec<_> = parts.all.iter().map(|part| part.process.is_some() || part.took.is_some()).collect();
        assert_eq!(still, [false, true, false]);
    }
}
