//! Which step of a check may run next: the first in the list whose needs are met.

use crate::step::Failure;

pub(super) struct Step {
    pub name: &'static str,
    /// Steps that have to be done before it: it uses what they make, or would only wait for the same lock.
    pub after: &'static [&'static str],
    pub run: fn() -> Result<(), Failure>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Waiting,
    Running,
    Done,
}

/// The position of the first step that may start.
pub(super) fn next(steps: &[(&Step, State)]) -> Option<usize> {
    let is_done = |name: &str| steps.iter().any(|(step, state)| step.name == name && *state == State::Done);
    steps.iter().position(|(step, state)| *state == State::Waiting && step.after.iter().all(|name| is_done(name)))
}

#[cfg(test)]
mod tests {
    use super::State::{Done, Running, Waiting};
    use super::*;

    const fn step(name: &'static str, after: &'static [&'static str]) -> Step {
        Step { name, after, run: || Ok(()) }
    }

    #[test]
    fn a_step_starts_when_all_that_it_needs_is_done_and_the_first_of_several_starts_first() {
        let steps = [step("a", &[]), step("b", &["a"]), step("c", &[]), step("d", &["a", "c"])];
        for (states, expected) in [
            ([Waiting, Waiting, Waiting, Waiting], Some(0)),
            ([Running, Waiting, Waiting, Waiting], Some(2)),
            ([Running, Waiting, Running, Waiting], None),
            ([Running, Waiting, Done, Waiting], None),
            ([Done, Waiting, Done, Waiting], Some(1)),
            ([Done, Running, Done, Waiting], Some(3)),
            ([Done, Done, Done, Done], None),
        ] {
            let steps: Vec<_> = steps.iter().zip(states).collect();
            assert_eq!(next(&steps), expected);
        }
    }
}
