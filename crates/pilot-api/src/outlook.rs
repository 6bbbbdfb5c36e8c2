//! What else an answer about one item says: what the caller's actions would do, what stops the others, and who is
//! waited for.

use std::collections::BTreeMap;

use pilot_core::actor::ActorId;
use pilot_core::decide::{Blocked, Effect, Prospect, Tally, Waiting};
use pilot_core::document::ContentDigest;
use pilot_core::refusal::Refusal;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::items::ItemView;
use crate::named;

/// How many faults of an unfinished content are named; `submit` names all of them.
const FAULTS_NAMED_MAX: usize = 3;

/// One item, as the caller sees it.
#[derive(Serialize)]
pub struct WholeItemView<'i> {
    #[serde(flatten)]
    pub item: ItemView<'i>,
    #[serde(flatten)]
    pub outlook: OutlookView,
}

/// What the answer about one item has in addition to what lists show.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ItemOutlook")]
pub struct OutlookView {
    /// With it, the content digest can be computed from what is shown: it is that of `{"nonce", "payload", "title"}` in
    /// canonical form (RFC 8785). Null if the content was erased.
    pub content_nonce: Option<String>,
    /// What each of `actions` except `edit` would do now, if it were sent with everything it needs.
    #[schemars(with = "BTreeMap<String, EffectView>")]
    pub effects: BTreeMap<Name, EffectView>,
    /// What the caller's role may do in this state, but this caller cannot do now, and why.
    pub blocked: Vec<BlockedView>,
    /// What would take the item forward, and who can do it now. Empty if it is finished.
    pub waiting: Vec<WaitingView>,
    /// The content that the caller last decided on or looked at, whichever was later.
    pub seen: Option<SeenView>,
    /// Who holds the item, since when and why. Null if it is not held, or if more than 1,024 entries about it followed.
    pub hold: Option<HoldView>,
}

/// What an action would do.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Effect")]
pub struct EffectView {
    /// The states the item may be in afterwards: several if an input chooses.
    #[schemars(with = "Vec<String>")]
    pub to: Vec<Name>,
    /// Whether it leaves its state.
    pub moves: bool,
    /// Whether that finishes it.
    pub ends: bool,
    /// If the action is a vote: what the tally will be.
    pub vote: Option<TallyView>,
}

/// Votes for one action.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Tally")]
pub struct TallyView {
    pub count: u32,
    pub needed: u32,
}

/// An action that is refused now.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Blocked")]
pub struct BlockedView {
    #[schemars(with = "String")]
    pub action: Name,
    #[schemars(with = "named::Code")]
    pub code: String,
    /// For people.
    pub detail: String,
    /// When it becomes possible by itself, if that is known.
    #[schemars(with = "Option<named::Time>")]
    pub until: Option<Time>,
}

/// Who can take an item forward.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Waiting")]
pub struct WaitingView {
    #[schemars(with = "String")]
    pub action: Name,
    #[schemars(with = "named::Role")]
    pub role: Role,
    /// The first few of those who can do it now; empty if nobody can.
    #[schemars(with = "Vec<named::ActorId>")]
    pub actors: Vec<ActorId>,
    /// How many more there are.
    pub others: usize,
    /// How many of them still have to.
    pub needed: u32,
}

/// A content that the caller knows.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Seen")]
pub struct SeenView {
    #[schemars(with = "named::Digest")]
    pub content_digest: ContentDigest,
    #[schemars(with = "named::Time")]
    pub at: Time,
    pub how: How,
}

/// How the caller knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum How {
    Decided,
    Looked,
}

/// A hold in force.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HoldInForce")]
pub struct HoldView {
    #[schemars(with = "named::ActorId")]
    pub actor_id: ActorId,
    #[schemars(with = "named::Role")]
    pub role: Role,
    #[schemars(with = "named::Time")]
    pub at: Time,
    /// Null if it was erased.
    pub comment: Option<String>,
}

impl OutlookView {
    /// What the rules say; the rest is for the service to find.
    pub fn new(prospect: &Prospect, waiting: Vec<Waiting>) -> OutlookView {
        let effects = prospect.effects.iter().map(|(action, effect)| (action.clone(), EffectView::from(effect)));
        OutlookView {
            content_nonce: None,
            effects: effects.collect(),
            blocked: prospect.blocked.iter().map(BlockedView::from).collect(),
            waiting: waiting.into_iter().map(WaitingView::from).collect(),
            seen: None,
            hold: None,
        }
    }
}

impl From<&Effect> for EffectView {
    fn from(effect: &Effect) -> EffectView {
        let Effect { to, moves, ends, vote } = effect;
        let vote = vote.map(|Tally { count, needed }| TallyView { count, needed });
        EffectView { to: to.clone(), moves: *moves, ends: *ends, vote }
    }
}

impl From<&Blocked> for BlockedView {
    fn from(blocked: &Blocked) -> BlockedView {
        let Blocked { action, refusal, until } = blocked;
        BlockedView {
            action: action.clone(),
            code: refusal.code().as_str().to_owned(),
            detail: in_words(refusal),
            until: *until,
        }
    }
}

/// There is no request yet, so what is not valid is the content.
fn in_words(refusal: &Refusal) -> String {
    let Refusal::Invalid(faults) = refusal else { return refusal.to_string() };
    let named: Vec<_> = faults.iter().take(FAULTS_NAMED_MAX).map(ToString::to_string).collect();
    let more = match faults.len().saturating_sub(named.len()) {
        0 => String::new(),
        others => format!("; and {others} more"),
    };
    format!("the content is not complete: {}{more}", named.join("; "))
}

impl From<Waiting> for WaitingView {
    fn from(waiting: Waiting) -> WaitingView {
        let Waiting { action, role, who, needed } = waiting;
        WaitingView { action, role, actors: who.actors, others: who.others, needed }
    }
}
