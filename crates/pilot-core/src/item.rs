//! An item: the thing that moves. Plain data, with everything that `decide` reads about it.

use std::borrow::{Borrow, Cow};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::actor::{Actor, ActorId};
use crate::document::ContentDigest;
use crate::payload::Payload;
use crate::role::Role;
use crate::role_set::RoleSet;
use crate::time::Time;
use crate::workflow::{Definition, Name, Rule};

/// A UUID in its canonical form: 8-4-4-4-12 lowercase hexadecimal characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "Name")]
pub struct ItemId(Name);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("an item id is a UUID in lowercase, such as 01890a5d-ac96-774b-bcce-b302099a8057")]
pub struct MalformedItemId;

impl ItemId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ItemId {
    type Err = MalformedItemId;

    fn from_str(text: &str) -> Result<Self, MalformedItemId> {
        if is_id(text) { Ok(ItemId(text.into())) } else { Err(MalformedItemId) }
    }
}

/// Whether this can be an item's id.
pub(crate) fn is_id(text: &str) -> bool {
    let fits = |(index, byte): (usize, u8)| match index {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
    };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

/// By its text, to look it up without a copy.
impl Borrow<str> for ItemId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ItemId {
    type Error = MalformedItemId;

    fn try_from(text: String) -> Result<Self, MalformedItemId> {
        text.parse()
    }
}

impl From<ItemId> for Name {
    fn from(id: ItemId) -> Self {
        id.0
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The definition an item was created under, and keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRef {
    pub name: Name,
    pub version: u32,
    pub digest: Name,
}

impl From<&Definition> for WorkflowRef {
    fn from(definition: &Definition) -> Self {
        WorkflowRef {
            name: definition.name().clone(),
            version: definition.version(),
            digest: definition.digest().clone(),
        }
    }
}

/// When an item may be executed: from `not_before` on, and before `not_after`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    pub not_before: Time,
    pub not_after: Time,
    /// The window itself can no longer be read: these are the widest bounds the rules allow, and it ended after the
    /// first of them. Only when a ledger is replayed.
    #[serde(skip)]
    pub is_left_out: bool,
}

impl Window {
    pub fn new(not_before: Time, not_after: Time) -> Window {
        Window { not_before, not_after, is_left_out: false }
    }

    /// A window that was set at `set_at` but can no longer be read.
    pub fn left_out(set_at: Time, latest: Time) -> Window {
        Window { not_before: set_at, not_after: latest, is_left_out: true }
    }

    pub fn contains(&self, time: Time) -> bool {
        self.not_before <= time && time < self.not_after
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub holder: ActorId,
    pub expires_at: Time,
}

/// One person's vote on one content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    pub actor_id: ActorId,
    /// Whose vote it is, if a machine cast it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operated_by: Option<ActorId>,
    pub action: Name,
    pub content_digest: ContentDigest,
    pub at: Time,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    pub id: ItemId,
    pub workflow: WorkflowRef,
    /// Shared, like the payload: most moves do not change it.
    pub title: Arc<str>,
    pub payload: Payload,
    pub state: Name,
    /// 1 when created, incremented by every transition and edit.
    pub version: u64,
    pub content_digest: ContentDigest,
    pub created_at: Time,
    pub created_by: Actor,
    pub updated_at: Time,
    /// When the current state was entered; moves that stay in it do not change this.
    pub entered_at: Time,
    pub held: bool,
    pub window: Option<Window>,
    pub lease: Option<Lease>,
    pub votes: Vec<Vote>,
    pub attempts: u32,
    /// The role in which each actor took part. It stays theirs on this item whatever the role map says later.
    pub participants: Arc<BTreeMap<ActorId, Role>>,
    /// The people who took part through machines. The role of the machine is theirs on this item.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub operators: BTreeSet<Operator>,
    /// Those who moved the item into an effect, and those who operate them.
    pub executors: BTreeSet<ActorId>,
}

/// The progress of a vote, as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VotesView<'i> {
    pub action: Cow<'i, str>,
    pub have: usize,
    pub need: u32,
    pub by: Vec<Cow<'i, ActorId>>,
}

/// The person who operated a machine when it took part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Operator {
    pub person: ActorId,
    pub machine: ActorId,
}

impl Operator {
    /// `None` for someone who acts in person.
    pub fn of(actor: &Actor) -> Option<Operator> {
        Some(Operator { person: actor.operated_by.clone()?, machine: actor.actor_id.clone() })
    }
}

impl Vote {
    pub fn person(&self) -> &ActorId {
        self.operated_by.as_ref().unwrap_or(&self.actor_id)
    }
}

impl Item {
    /// In which role someone took part, in person or through a machine; then, which one.
    pub fn part_of(&self, person: &ActorId) -> Option<(Role, Option<&ActorId>)> {
        let in_person = self.participants.get(person).map(|role| (*role, None));
        in_person.or_else(|| {
            let machine = &self.operators.iter().find(|operator| operator.person == *person)?.machine;
            self.participants.get(machine).map(|role| (*role, Some(machine)))
        })
    }

    /// Everyone who took part, in their role; a machine once for each person who operated it.
    pub fn people(&self) -> impl Iterator<Item = Actor> {
        self.participants.iter().flat_map(|(actor_id, role)| {
            let of_machine = self.operators.iter().filter(move |operator| operator.machine == *actor_id);
            let operators: Vec<_> = of_machine.map(|operator| Some(operator.person.clone())).collect();
            let operators = if operators.is_empty() { vec![None] } else { operators };
            operators.into_iter().map(|operated_by| Actor { operated_by, ..Actor::new(actor_id.clone(), *role) })
        })
    }

    /// The votes that count: for `action`, on the current content.
    pub fn votes_for<'i>(&'i self, action: &'i str) -> impl Iterator<Item = &'i Vote> {
        self.votes.iter().filter(move |vote| *vote.action == *action && vote.content_digest == self.content_digest)
    }

    /// The vote in progress in this state, or the one that led here; if there are several, the one with the most votes.
    pub fn votes_view<'i>(&'i self, definition: &'i Definition) -> Option<VotesView<'i>> {
        let rules = || definition.rules().transitions.iter().filter(|rule| rule.quorum.is_some());
        let counted = |rule: &'i Rule| (rule, self.votes_for(&rule.action).count());
        let mut best: Option<(&Rule, usize)> = None;
        for (rule, have) in rules().map(counted).filter(|(rule, have)| *have > 0 || rule.leads_from(&self.state)) {
            if best.is_none_or(|(_, most)| have > most) {
                best = Some((rule, have));
            }
        }
        let (rule, have) = best?;
        let by = self.votes_for(&rule.action).map(|vote| Cow::Borrowed(&vote.actor_id)).collect();
        Some(VotesView { action: Cow::Borrowed(&rule.action), have, need: rule.votes_needed(&self.payload)?, by })
    }

    /// The roles whose turn it is: those that may release a held item, otherwise those that the definition names for
    /// the state.
    pub fn waits_for(&self, definition: &Definition) -> Vec<Role> {
        let rules = definition.rules();
        let hold = rules.hold.as_ref().filter(|_| self.held && !rules.is_terminal(&self.state));
        let turn = match hold {
            Some(hold) => hold.release_roles,
            None => rules.state(&self.state).map_or(RoleSet::EMPTY, |state| state.waits_for),
        };
        turn.iter().collect()
    }

    pub fn is_terminal(&self, definition: &Definition) -> bool {
        definition.rules().is_terminal(&self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_id_is_a_uuid_in_lowercase() {
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        assert_eq!(id.parse::<ItemId>().unwrap().as_str(), id);
        for wrong in
            ["", "x", "01890A5D-AC96-774B-BCCE-B302099A8057", "01890a5dac96774bbcceb302099a8057", &format!("{id}0")]
        {
            assert_eq!(wrong.parse::<ItemId>(), Err(MalformedItemId), "{wrong}");
        }
    }
}
