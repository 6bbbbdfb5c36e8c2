//! The rules of a definition as written: complete and typed, not yet proved.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::payload::Payload;
use crate::role_set::RoleSet;

/// Names are short, few and shared: cloning one increments a counter.
pub type Name = Arc<str>;

/// Actions with a fixed meaning, which no definition may declare.
pub const RESERVED_ACTIONS: [&str; 6] = ["create", "edit", "timer", "comment", "hold", "release"];

/// The rules as written, complete and typed, but not yet proved. Members with their default value are left out of the
/// JSON form, so that a key added to the format later does not change the digest of older definitions.
#[derive(Debug, Clone, Serialize)]
pub struct Rules {
    pub schema_version: u32,
    pub name: Name,
    pub version: u32,
    pub title: String,
    pub description: String,
    pub initial: Name,
    pub required_roles: RoleSet,
    #[serde(skip_serializing_if = "is_default")]
    pub one_open_per_creator: bool,
    pub states: Vec<State>,
    pub transitions: Vec<Rule>,
    pub timers: Vec<Timer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    pub payload_schema: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Open,
    /// Something happens in the real world while an item is here.
    Effect,
    Terminal,
}

impl Kind {
    pub const fn is_open(self) -> bool {
        match self {
            Kind::Open => true,
            Kind::Effect | Kind::Terminal => false,
        }
    }

    pub const fn is_effect(self) -> bool {
        match self {
            Kind::Effect => true,
            Kind::Open | Kind::Terminal => false,
        }
    }

    pub const fn is_terminal(self) -> bool {
        match self {
            Kind::Terminal => true,
            Kind::Open | Kind::Effect => false,
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct State {
    pub name: Name,
    pub kind: Kind,
    #[serde(skip_serializing_if = "is_default")]
    pub editable: bool,
    /// Whose turn it is, for lists and inboxes; only transitions give rights.
    #[serde(skip_serializing_if = "is_default")]
    pub waits_for: RoleSet,
    #[serde(skip_serializing_if = "is_default")]
    pub description: String,
}

/// One row of the table of rules: who may move an item from where to where, and what that requires.
///
/// Everything that judges by rules destructures them without `..`: the prover, `decide` and what explains them. So a
/// field that one of them does not know does not compile.
#[derive(Debug, Clone, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the format, true or absent")]
pub struct Rule {
    pub action: Name,
    pub from: Vec<Name>,
    /// `None` if the item stays where it is.
    #[serde(skip_serializing_if = "is_default")]
    pub to: Option<Name>,
    pub roles: RoleSet,
    #[serde(skip_serializing_if = "is_default")]
    pub own: Option<Own>,
    #[serde(skip_serializing_if = "is_default")]
    pub not_by_executor: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub quorum: Option<u32>,
    #[serde(skip_serializing_if = "is_default")]
    pub quorum_if: Option<QuorumIf>,
    #[serde(skip_serializing_if = "is_default")]
    pub comment_required: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub content_digest_required: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub sets_window: Option<Span>,
    #[serde(skip_serializing_if = "is_default")]
    pub inside_window: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub takes_lease: Option<Span>,
    #[serde(skip_serializing_if = "is_default")]
    pub renews_lease: Option<Span>,
    /// The move counts as an attempt, and is refused after this many.
    #[serde(skip_serializing_if = "is_default")]
    pub attempts: Option<u32>,
    #[serde(skip_serializing_if = "is_default")]
    pub voids_votes: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub voids_window: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub takes_back_vote: bool,
    /// Votes for these actions may be changed into a vote for this one.
    #[serde(skip_serializing_if = "is_default")]
    pub replaces: Vec<Name>,
    #[serde(skip_serializing_if = "is_default")]
    pub when: Option<When>,
    #[serde(skip_serializing_if = "is_default")]
    pub inputs: Vec<Input>,
    #[serde(skip_serializing_if = "is_default")]
    pub description: String,
    /// Hold (true) or release (false): generated from [`Hold`], never written as a transition.
    #[serde(skip)]
    pub holds: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Own {
    /// Only the creator of the item.
    Creator,
    /// Only an actor with a standing vote.
    Voter,
    /// Only the holder of the lease.
    Holder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    Result,
    Artifacts,
    Progress,
}

impl Input {
    pub const fn as_str(self) -> &'static str {
        match self {
            Input::Result => "result",
            Input::Artifacts => "artifacts",
            Input::Progress => "progress",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuorumIf {
    pub pointer: String,
    pub equals: Value,
    pub quorum: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct When {
    pub input: Name,
    pub equals: Name,
}

/// A length of time, kept as it was written: "72h".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub text: Name,
    pub length: Duration,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a duration is written as 90s, 15m, 72h or 30d, and is at most ten years")]
pub struct MalformedSpan;

impl FromStr for Span {
    type Err = MalformedSpan;

    fn from_str(text: &str) -> Result<Self, MalformedSpan> {
        let at_unit = text.len().checked_sub(1).ok_or(MalformedSpan)?;
        let (number, unit) = text.split_at_checked(at_unit).ok_or(MalformedSpan)?;
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return Err(MalformedSpan),
        };
        let number = number.parse::<u64>().ok().filter(|number| (1..=99_999_999).contains(number));
        let length = Duration::from_secs(number.ok_or(MalformedSpan)? * seconds);
        if length > Duration::from_hours(24 * 3_660) {
            return Err(MalformedSpan);
        }
        Ok(Span { text: text.into(), length })
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct Timer {
    pub from: Vec<Name>,
    #[serde(flatten)]
    pub due: Due,
    pub to: Name,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Due {
    /// This long after the state was entered.
    After(Span),
    At(Mark),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    WindowEnd,
    LeaseEnd,
}

impl fmt::Display for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Due::After(span) => write!(f, "after {span}"),
            Due::At(Mark::WindowEnd) => f.write_str("at the end of the window"),
            Due::At(Mark::LeaseEnd) => f.write_str("when the lease is lost"),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct Hold {
    pub roles: RoleSet,
    pub release_roles: RoleSet,
    pub blocks: Vec<Name>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Rules {
    pub fn state(&self, name: &str) -> Option<&State> {
        self.states.iter().find(|state| *state.name == *name)
    }

    pub fn is_terminal(&self, name: &str) -> bool {
        self.state(name).is_none_or(|state| state.kind.is_terminal())
    }

    /// Every rule, with hold and release written out for every state that is not terminal.
    pub(super) fn all_rules(&self) -> Vec<Rule> {
        let mut rules = self.transitions.clone();
        if let Some(hold) = &self.hold {
            rules.push(self.overlay("hold", hold.roles, true));
            rules.push(self.overlay("release", hold.release_roles, false));
        }
        rules
    }

    fn overlay(&self, action: &str, roles: RoleSet, holds: bool) -> Rule {
        let lasting = self.states.iter().filter(|state| !state.kind.is_terminal());
        let from = lasting.map(|state| state.name.clone()).collect();
        Rule { comment_required: true, holds: Some(holds), ..Rule::plain(action.into(), from, None, roles) }
    }
}

impl Rule {
    pub(crate) fn plain(action: Name, from: Vec<Name>, to: Option<Name>, roles: RoleSet) -> Rule {
        Rule {
            action,
            from,
            to,
            roles,
            own: None,
            not_by_executor: false,
            quorum: None,
            quorum_if: None,
            comment_required: false,
            content_digest_required: false,
            sets_window: None,
            inside_window: false,
            takes_lease: None,
            renews_lease: None,
            attempts: None,
            voids_votes: false,
            voids_window: false,
            takes_back_vote: false,
            replaces: Vec::new(),
            when: None,
            inputs: Vec::new(),
            description: String::new(),
            holds: None,
        }
    }

    pub fn leads_from(&self, state: &str) -> bool {
        self.from.iter().any(|from| **from == *state)
    }

    /// How many different people must vote for this move, given the payload; `None` if it takes no vote. If that
    /// depends on a payload that was left out, the minimum.
    pub fn votes_needed(&self, payload: &Payload) -> Option<u32> {
        let quorum = self.quorum?;
        let raised = self.quorum_if.as_ref().filter(|cond| payload.has(&cond.pointer, &cond.equals) == Some(true));
        Some(raised.map_or(quorum, |cond| cond.quorum.max(quorum)))
    }

    /// The condition that raises the quorum, if it cannot be known whether it does.
    pub fn unknown_quorum(&self, payload: &Payload) -> Option<&QuorumIf> {
        self.quorum_if.as_ref().filter(|cond| payload.has(&cond.pointer, &cond.equals).is_none())
    }
}

#[cfg(test)]
mod tests;
