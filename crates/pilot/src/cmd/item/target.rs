//! How far an item has come, by the rules of its own definition, whatever its states are called.

use std::collections::BTreeMap;

use clap::ValueEnum;
use pilot_api::workflows::{RuleView, StateKind, WorkflowView};

/// What can be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// The first of the decisions it needs was made in its favour
    Decided,
    /// Every decision it needs was made: it may be executed
    Cleared,
    /// Its execution has begun
    Started,
    /// It was executed, and has ended
    Closed,
}

/// How an item stands with regard to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Reached,
    NotYet,
    /// No move can lead there any more.
    Never,
}

/// What of an item counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress<'a> {
    pub state: &'a str,
    pub is_held: bool,
    /// Whether its execution has ever begun. That cannot be undone; everything else can.
    pub has_started: bool,
}

impl Target {
    pub(crate) fn judge(self, definition: &WorkflowView, progress: Progress<'_>) -> Standing {
        let Progress { state, is_held, has_started } = progress;
        let has_ended = definition.kind(state).is_none_or(|kind| kind == StateKind::Terminal);
        if has_started {
            let is_reached = self != Target::Closed || has_ended;
            return if is_reached { Standing::Reached } else { Standing::NotYet };
        }
        let left = decisions_left(definition);
        let Some(here) = left.get(state).filter(|_| !has_ended) else { return Standing::Never };
        let at_first = left.get(&*definition.initial).copied().unwrap_or(0);
        // Content that may still change has not been decided on.
        let is_frozen = definition.state(state).is_some_and(|state| !state.editable);
        let is_reached = match self {
            Target::Decided => is_frozen && (*here < at_first || *here == 0),
            Target::Cleared => is_frozen && *here == 0,
            Target::Started | Target::Closed => false,
        };
        if is_reached && !is_held { Standing::Reached } else { Standing::NotYet }
    }
}

/// For each state from which an effect can be reached: how many decisions there are on the way, at the least.
fn decisions_left(definition: &WorkflowView) -> BTreeMap<&str, usize> {
    let effects = definition.states.iter().filter(|state| state.kind == StateKind::Effect);
    let mut left: BTreeMap<&str, usize> = effects.map(|state| (&*state.name, 0)).collect();
    // Each round carries the numbers one move further back; there are no more moves on a way than states.
    for _ in &definition.states {
        for rule in &definition.transitions {
            let Some(beyond) = rule.to.as_deref().and_then(|to| left.get(to)) else { continue };
            let ours = beyond + usize::from(is_decision(definition, rule));
            for from in &rule.from {
                let known = left.entry(from).or_insert(ours);
                *known = ours.min(*known);
            }
        }
    }
    left
}

/// Somebody says yes to this very content. To begin an effect is to carry a decision out.
fn is_decision(definition: &WorkflowView, rule: &RuleView) -> bool {
    let begins = rule.to.as_deref().and_then(|to| definition.kind(to)) == Some(StateKind::Effect);
    rule.content_digest_required && !begins
}

#[cfg(test)]
mod tests {
    use pilot_core::workflow::builtin::builtin;

    use super::*;

    fn definition(name: &str) -> WorkflowView {
        let found = builtin().into_iter().find(|definition| **definition.name() == *name).unwrap();
        serde_json::from_value(serde_json::to_value(&*found).unwrap()).unwrap()
    }

    /// The standing in every state, for an item that has not started and for one that has.
    fn standings(name: &str, target: Target) -> String {
        let definition = definition(name);
        let of = |state: &str, has_started| match target
            .judge(&definition, Progress { state, is_held: false, has_started })
        {
            Standing::Reached => "reached",
            Standing::NotYet => "not yet",
            Standing::Never => "never",
        };
        let states = definition.states.iter().map(|state| &*state.name);
        states.map(|state| format!("{state}: {} / {}\n", of(state, false), of(state, true))).collect()
    }

    #[test]
    fn a_controlled_operation_is_decided_when_approved_and_cleared_when_cleared() {
        let expected = expect_test::expect![[r#"
            draft: not yet / reached
            submitted: not yet / reached
            returned: not yet / reached
            approved: reached / reached
            cleared: reached / reached
            executing: reached / reached
            succeeded: reached / reached
            failed: reached / reached
            rolling_back: reached / reached
            rolled_back: reached / reached
            indeterminate: reached / reached
            closed: never / reached
            rejected: never / reached
            withdrawn: never / reached
            revoked: never / reached
            expired: never / reached
        "#]];
        expected.assert_eq(&standings("controlled-operation", Target::Decided));
        let expected = expect_test::expect![[r#"
            draft: not yet / reached
            submitted: not yet / reached
            returned: not yet / reached
            approved: not yet / reached
            cleared: reached / reached
            executing: reached / reached
            succeeded: reached / reached
            failed: reached / reached
            rolling_back: reached / reached
            rolled_back: reached / reached
            indeterminate: reached / reached
            closed: never / reached
            rejected: never / reached
            withdrawn: never / reached
            revoked: never / reached
            expired: never / reached
        "#]];
        expected.assert_eq(&standings("controlled-operation", Target::Cleared));
    }

    #[test]
    fn an_emergency_has_one_decision_before_its_execution() {
        let expected = expect_test::expect![[r#"
            draft: not yet / reached
            submitted: not yet / reached
            returned: not yet / reached
            cleared: reached / reached
            executing: reached / reached
            succeeded: reached / reached
            failed: reached / reached
            rolling_back: reached / reached
            rolled_back: reached / reached
            indeterminate: reached / reached
            ratified: never / reached
            condemned: never / reached
            rejected: never / reached
            withdrawn: never / reached
            revoked: never / reached
            expired: never / reached
        "#]];
        expected.assert_eq(&standings("emergency-operation", Target::Decided));
        let expected = expect_test::expect![[r#"
            draft: not yet / not yet
            submitted: not yet / not yet
            returned: not yet / not yet
            cleared: not yet / not yet
            executing: not yet / not yet
            succeeded: not yet / not yet
            failed: not yet / not yet
            rolling_back: not yet / not yet
            rolled_back: not yet / not yet
            indeterminate: not yet / not yet
            ratified: never / reached
            condemned: never / reached
            rejected: never / reached
            withdrawn: never / reached
            revoked: never / reached
            expired: never / reached
        "#]];
        expected.assert_eq(&standings("emergency-operation", Target::Closed));
    }

    #[test]
    fn a_hold_puts_off_what_can_be_held_and_nothing_else() {
        let definition = definition("controlled-operation");
        let held = |state, has_started| Progress { state, is_held: true, has_started };
        assert_eq!(Target::Cleared.judge(&definition, held("cleared", false)), Standing::NotYet);
        assert_eq!(Target::Started.judge(&definition, held("executing", true)), Standing::Reached);
    }

    #[test]
    fn a_state_that_nobody_knows_leads_nowhere() {
        let definition = definition("controlled-operation");
        let progress = Progress { state: "limbo", is_held: false, has_started: false };
        assert_eq!(Target::Cleared.judge(&definition, progress), Standing::Never);
    }
}
