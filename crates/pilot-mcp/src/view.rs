//! An item as agents see it: where it is, who is waited for, what the caller may do, and what people wrote.

use pilot_api::outlook::{BlockedView, HoldView, WaitingView};
use schemars::JsonSchema;
use serde::Serialize;

use crate::bounds::{ASK_AGAIN_SECONDS, JSON_BYTES_MAX, TEXT_BYTES_MAX};
use crate::desk::Found;
use crate::refusal::waits;
use crate::texts::{Quoted, QuotedJson, shortened};

/// Where an item is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Status {
    /// The item's id.
    pub item: String,
    pub workflow: String,
    pub state: String,
    /// Nothing will happen to it any more.
    pub finished: bool,
    /// While it is held it cannot go forward.
    pub held: bool,
    pub version: u64,
    /// Identifies title and payload: what people decide on and what `start` must name.
    pub content_digest: String,
    pub proposed_by: String,
    /// What takes it forward, and who can do that now. Decisions are made by these people, not by you.
    pub waiting_for: Vec<Waiting>,
    /// The same in words.
    #[serde(skip)]
    pub waits: Option<String>,
    /// The actions that the service accepts from you now.
    pub you_may: Vec<String>,
    /// What your role could do in this state, but you cannot do now, and why.
    pub you_cannot: Vec<Blocked>,
    pub votes: Option<Votes>,
    pub window: Option<Window>,
    pub lease: Option<Lease>,
    /// How often it was started.
    pub attempts: u32,
    /// When it leaves this state by itself, RFC 3339.
    pub due_at: Option<String>,
    pub hold: Option<Hold>,
    /// For people: the page of this item.
    pub link: String,
    pub title: Quoted,
    /// Left out of lists.
    pub payload: Option<QuotedJson>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Waiting {
    pub action: String,
    pub role: String,
    /// The first few of those who can; empty if nobody can now.
    pub who: Vec<String>,
    /// How many more there are.
    pub others: usize,
    /// How many of them still have to.
    pub needed: u32,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Blocked {
    pub action: String,
    pub code: String,
    pub detail: String,
    /// When it becomes possible by itself, RFC 3339.
    pub until: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Votes {
    pub action: String,
    pub have: usize,
    pub need: u32,
    pub by: Vec<String>,
}

/// When it may be carried out, RFC 3339.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Window {
    pub not_before: String,
    pub not_after: String,
}

/// Who carries it out, and until when unless a heartbeat comes, RFC 3339.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Lease {
    pub holder: String,
    pub expires_at: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Hold {
    pub by: String,
    pub comment: Option<Quoted>,
}

impl Status {
    pub(crate) fn new(found: &Found, link: String) -> Status {
        let (item, outlook) = (&found.view, &found.outlook);
        let author = item.created_by.actor_id.as_str();
        Status {
            item: item.id.to_string(),
            workflow: item.workflow.name.to_string(),
            state: item.state.to_string(),
            finished: found.is_finished(),
            held: item.held,
            version: item.version,
            content_digest: item.content_digest.as_str().to_owned(),
            proposed_by: author.to_owned(),
            waiting_for: outlook.waiting.iter().map(Waiting::from).collect(),
            waits: waits(&outlook.waiting),
            you_may: item.actions.iter().map(ToString::to_string).collect(),
            you_cannot: outlook.blocked.iter().map(Blocked::from).collect(),
            votes: votes(found),
            window: item.window.as_ref().as_ref().map(|window| Window {
                not_before: window.not_before.to_string(),
                not_after: window.not_after.to_string(),
            }),
            lease: item
                .lease
                .as_ref()
                .as_ref()
                .map(|lease| Lease { holder: lease.holder.to_string(), expires_at: lease.expires_at.to_string() }),
            attempts: item.attempts,
            due_at: item.due_at.map(|due_at| due_at.to_string()),
            hold: outlook.hold.as_ref().map(Hold::from),
            link,
            title: Quoted::new(author, &item.title, 4 * TEXT_BYTES_MAX),
            payload: Some(QuotedJson::new(author, &item.payload.value(), JSON_BYTES_MAX)),
        }
    }

    /// In a sentence or two.
    pub(crate) fn words(&self) -> String {
        let held = if self.held { " and held" } else { "" };
        let state = format!("Item {} is {}{held}.", self.item, self.state);
        if self.finished {
            return format!("{state} It is finished: nothing more will happen to it.");
        }
        match &self.waits {
            Some(waits) => format!("{state} {waits}"),
            None => state,
        }
    }

    /// When it is worth asking again.
    pub(crate) fn ask_again_in_seconds(&self) -> Option<u64> {
        (!self.finished).then_some(ASK_AGAIN_SECONDS)
    }
}

fn votes(found: &Found) -> Option<Votes> {
    let votes = found.view.votes.as_ref()?;
    let by = votes.by.iter().map(ToString::to_string).collect();
    Some(Votes { action: votes.action.to_string(), have: votes.have, need: votes.need, by })
}

impl From<&WaitingView> for Waiting {
    fn from(waiting: &WaitingView) -> Waiting {
        let WaitingView { action, role, actors, others, needed } = waiting;
        let who = actors.iter().map(ToString::to_string).collect();
        Waiting { action: action.to_string(), role: role.to_string(), who, others: *others, needed: *needed }
    }
}

impl From<&BlockedView> for Blocked {
    fn from(blocked: &BlockedView) -> Blocked {
        let BlockedView { action, code, detail, until } = blocked;
        let until = until.map(|until| until.to_string());
        let detail = shortened(detail, TEXT_BYTES_MAX).0;
        Blocked { action: action.to_string(), code: code.clone(), detail, until }
    }
}

impl From<&HoldView> for Hold {
    fn from(hold: &HoldView) -> Hold {
        let HoldView { actor_id, comment, .. } = hold;
        let by = actor_id.to_string();
        let comment = comment.as_ref().map(|text| Quoted::new(&by, text, TEXT_BYTES_MAX));
        Hold { by, comment }
    }
}
