//! Every expected "no", with its facts, a stable code and a sentence for people.

use crate::actor::{Actor, ActorId};
use crate::document::ContentDigest;
use crate::fault::Fault;
use crate::item::Window;
use crate::role::Role;
use crate::role_set::RoleSet;
use crate::time::Time;
use crate::workflow::{Name, Own};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    // The request is not quoted, because it may contain anything, even a clear token.
    #[error("this workflow has no such action; its actions are {}", known.join(", "))]
    UnknownAction { known: Vec<Name> },
    #[error("{action} requires the role {allowed}; {actor_id} acts as {role}")]
    RoleForbidden { actor_id: ActorId, role: Role, action: Name, allowed: RoleSet },
    #[error("{actor_id} took part in this item as {as_role}, so {actor_id} cannot act on it as {role}")]
    SameActor { actor_id: ActorId, as_role: Role, role: Role },
    #[error("{}, so {} cannot act on it as {}", part_words(actor, person, *as_role, through.as_ref()), actor.actor_id, actor.role)]
    SamePerson { actor: Actor, person: ActorId, as_role: Role, through: Option<ActorId> },
    #[error("{actor_id} executed this item, so {action} must be done by someone else")]
    Executed { actor_id: ActorId, action: Name },
    #[error("only {} may use {action}; {actor_id} may not", owner_words(*own))]
    NotOwner { actor_id: ActorId, action: Name, own: Own },
    #[error("the request is not valid: {}", fault_words(.0))]
    Invalid(Vec<Fault>),
    #[error("{action} is possible only in {}; this item is {state}", state_words(from))]
    WrongState { action: Name, state: Name, from: Vec<Name> },
    #[error("the item can be edited only in {}; it is {state}", state_words(editable))]
    NotEditable { state: Name, editable: Vec<Name> },
    #[error("the deadline of {state} passed at {due_at}")]
    DeadlinePassed { state: Name, due_at: Time },
    #[error("no deadline has passed")]
    NothingDue,
    #[error("all {attempts_max} attempts have been used")]
    AttemptsUsed { attempts_max: u32 },
    #[error("the item is already held")]
    AlreadyHeld,
    #[error("the item is not held")]
    NotHeld,
    #[error("{actor_id} has another {workflow} that is still open; it must end first")]
    AnotherOpen { actor_id: ActorId, workflow: Name },
    #[error("{actor_id} is a machine and has {open_items_max} items that have not ended; one of them must end first")]
    TooManyOpen { actor_id: ActorId, open_items_max: u32 },
    #[error("the item was created under a different definition")]
    OtherDefinition,
    #[error("{actor_id} already decided: {action} at {at}")]
    AlreadyDecided { actor_id: ActorId, action: Name, at: Time },
    #[error("the item is held, and a hold blocks {action}")]
    ItemHeld { action: Name },
    #[error("{action} is possible only inside the window{}", window_words(window.as_ref()))]
    OutsideWindow { action: Name, window: Option<Window> },
    #[error("the item is at version {actual}, which is not the version the request was made for")]
    VersionMismatch { actual: u64 },
    #[error("this item has {entries_max} entries and takes no more comments")]
    TooManyComments { entries_max: usize },
    #[error("the request was made for different content; the item's content is now {actual}")]
    ContentChanged { actual: ContentDigest },
    /// The rules allow it, but witnesses are missing: the same request may be accepted a moment later.
    #[error("too few witnesses have cosigned the first {entries} entries of the log, so no effect may begin yet")]
    NotCosigned { entries: u64, version: u64 },
}

/// What clients base decisions on. Codes are added when needed, and never renamed or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusalCode {
    UnknownAction,
    RoleForbidden,
    SeparationOfDuties,
    NotOwner,
    InvalidRequest,
    StateConflict,
    AlreadyDecided,
    ItemHeld,
    OutsideWindow,
    VersionMismatch,
    ContentChanged,
    TooManyOpen,
    Unavailable,
}

impl RefusalCode {
    pub const fn as_str(self) -> &'static str {
        match self {
            RefusalCode::UnknownAction => "unknown_action",
            RefusalCode::RoleForbidden => "role_forbidden",
            RefusalCode::SeparationOfDuties => "separation_of_duties",
            RefusalCode::NotOwner => "not_owner",
            RefusalCode::InvalidRequest => "invalid_request",
            RefusalCode::StateConflict => "state_conflict",
            RefusalCode::AlreadyDecided => "already_decided",
            RefusalCode::ItemHeld => "item_held",
            RefusalCode::OutsideWindow => "outside_window",
            RefusalCode::VersionMismatch => "version_mismatch",
            RefusalCode::ContentChanged => "content_changed",
            RefusalCode::TooManyOpen => "too_many_open",
            RefusalCode::Unavailable => "unavailable",
        }
    }
}

impl std::fmt::Display for RefusalCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Refusal {
    pub const fn code(&self) -> RefusalCode {
        match self {
            Refusal::UnknownAction { .. } => RefusalCode::UnknownAction,
            Refusal::RoleForbidden { .. } => RefusalCode::RoleForbidden,
            Refusal::SameActor { .. } | Refusal::SamePerson { .. } | Refusal::Executed { .. } => {
                RefusalCode::SeparationOfDuties
            }
            Refusal::NotOwner { .. } => RefusalCode::NotOwner,
            Refusal::Invalid(_) => RefusalCode::InvalidRequest,
            Refusal::WrongState { .. }
            | Refusal::NotEditable { .. }
            | Refusal::DeadlinePassed { .. }
            | Refusal::NothingDue
            | Refusal::AttemptsUsed { .. }
            | Refusal::AlreadyHeld
            | Refusal::NotHeld
            | Refusal::AnotherOpen { .. }
            | Refusal::TooManyComments { .. }
            | Refusal::OtherDefinition => RefusalCode::StateConflict,
            Refusal::AlreadyDecided { .. } => RefusalCode::AlreadyDecided,
            Refusal::ItemHeld { .. } => RefusalCode::ItemHeld,
            Refusal::OutsideWindow { .. } => RefusalCode::OutsideWindow,
            Refusal::VersionMismatch { .. } => RefusalCode::VersionMismatch,
            Refusal::ContentChanged { .. } => RefusalCode::ContentChanged,
            Refusal::TooManyOpen { .. } => RefusalCode::TooManyOpen,
            Refusal::NotCosigned { .. } => RefusalCode::Unavailable,
        }
    }

    /// Each fault of a request that the caller can fix, with its place; empty for every other refusal.
    pub fn errors(&self) -> Vec<Fault> {
        match self {
            Refusal::Invalid(faults) => faults.clone(),
            Refusal::UnknownAction { known } => {
                vec![Fault::new("/action", format!("must be one of {}", known.join(", ")))]
            }
            _ => Vec::new(),
        }
    }

    /// Refused for role, ownership or separation of duties: such attempts become entries.
    pub fn is_about_access(&self) -> bool {
        matches!(self.code(), RefusalCode::RoleForbidden | RefusalCode::SeparationOfDuties | RefusalCode::NotOwner)
    }
}

const fn owner_words(own: Own) -> &'static str {
    match own {
        Own::Creator => "the creator of the item",
        Own::Voter => "an actor whose vote stands",
        Own::Holder => "the holder of the lease",
    }
}

/// `ana, who operates deploy-bot, took part in this item as approver`
fn part_words(actor: &Actor, person: &ActorId, as_role: Role, through: Option<&ActorId>) -> String {
    let operates =
        if *person == actor.actor_id { String::new() } else { format!(", who operates {},", actor.actor_id) };
    let through = through.map_or_else(String::new, |machine| format!(" through {machine}"));
    format!("{person}{operates} took part in this item as {as_role}{through}")
}

fn fault_words(faults: &[Fault]) -> String {
    faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("; ")
}

fn state_words(states: &[Name]) -> String {
    match states.split_last() {
        None => "no state".to_owned(),
        Some((last, [])) => last.to_string(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

fn window_words(window: Option<&Window>) -> String {
    match window {
        Some(window) => format!(" from {} to {}", window.not_before, window.not_after),
        None => "; no window is set".to_owned(),
    }
}
