//! The definitions in force.

use std::borrow::Cow;

use pilot_core::role::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::named;

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Workflows")]
pub struct WorkflowsView<'d> {
    pub workflows: Vec<SummaryView<'d>>,
    /// Always null: the list is complete.
    pub next: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "WorkflowSummary")]
pub struct SummaryView<'d> {
    pub name: Cow<'d, str>,
    #[schemars(range(min = 1))]
    pub version: u32,
    #[schemars(with = "named::Digest")]
    pub digest: Cow<'d, str>,
    pub title: Cow<'d, str>,
    pub description: Cow<'d, str>,
}

/// A definition, as a client reads it: what it needs to know of the rules. The service sends more, and newer ones may
/// send still more.
#[derive(Debug, Deserialize)]
pub struct WorkflowView {
    pub name: String,
    pub version: u32,
    pub digest: String,
    pub title: String,
    pub description: String,
    pub initial: String,
    pub states: Vec<StateView>,
    pub transitions: Vec<RuleView>,
    pub timers: Vec<TimerView>,
    pub hold: Option<HoldView>,
    pub payload_schema: Value,
}

#[derive(Debug, Deserialize)]
pub struct StateView {
    pub name: String,
    pub kind: StateKind,
    #[serde(default)]
    pub editable: bool,
    #[serde(default)]
    pub description: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateKind {
    Open,
    Effect,
    Terminal,
}

#[derive(Debug, Deserialize)]
pub struct RuleView {
    pub action: String,
    pub from: Vec<String>,
    /// None if the item stays where it is.
    pub to: Option<String>,
    pub roles: Vec<Role>,
    pub quorum: Option<u32>,
    #[serde(default)]
    pub comment_required: bool,
    #[serde(default)]
    pub content_digest_required: bool,
    /// The longest window that this move may set.
    pub sets_window: Option<String>,
    #[serde(default)]
    pub inside_window: bool,
    pub takes_lease: Option<String>,
    pub when: Option<WhenView>,
    #[serde(default)]
    pub inputs: Vec<String>,
    #[serde(default)]
    pub description: String,
}

/// The input that chooses between rules of one action.
#[derive(Debug, Deserialize)]
pub struct WhenView {
    pub input: String,
    pub equals: String,
}

#[derive(Debug, Deserialize)]
pub struct TimerView {
    pub from: Vec<String>,
    pub to: String,
}

#[derive(Debug, Deserialize)]
pub struct HoldView {
    pub roles: Vec<Role>,
    pub release_roles: Vec<Role>,
    pub blocks: Vec<String>,
}

impl WorkflowView {
    pub fn state(&self, name: &str) -> Option<&StateView> {
        self.states.iter().find(|state| state.name == name)
    }

    pub fn kind(&self, name: &str) -> Option<StateKind> {
        self.state(name).map(|state| state.kind)
    }

    /// The rules of an action in this state or, if it is not possible there, all its rules.
    pub fn rules_of<'d>(&'d self, action: &str, state: &str) -> Vec<&'d RuleView> {
        let rules: Vec<_> = self.transitions.iter().filter(|rule| rule.action == action).collect();
        let here: Vec<_> = rules.iter().copied().filter(|rule| rule.leads_from(state)).collect();
        if here.is_empty() { rules } else { here }
    }
}

impl RuleView {
    pub fn leads_from(&self, state: &str) -> bool {
        self.from.iter().any(|from| from == state)
    }
}
