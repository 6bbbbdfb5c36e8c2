//! What a message says, before it takes the form of a chat or a mail.

use pilot_core::item::ItemId;
use pilot_core::role::Role;

/// One message to a chat or to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub occasion: Occasion,
    /// The most urgent first; at least one and at most [`pilot_core::limits::NOTICE_LINES_MAX`].
    pub lines: Vec<Line>,
    /// How many more items there are.
    pub more: usize,
    /// Where all that waits is listed.
    pub link: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    News,
    /// Once a day: everything that still waits.
    Summary,
}

/// One item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub why: Why,
    pub item: ItemId,
    /// Somebody's words, without what could be a token. `None` if titles are not sent.
    pub title: Option<String>,
    /// As the definition calls itself, such as `Controlled operation`.
    pub workflow: String,
    pub state: String,
    pub risk: Option<String>,
    pub created_by: String,
    /// What has to be done, and by whom; empty if it has ended.
    pub tasks: Vec<Task>,
    /// Until when, such as `20 Nov 2026, 10:00 CET`, if it is not done by itself.
    pub until: Option<String>,
    pub link: Option<String>,
    pub is_urgent: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It has just come to wait.
    Waits,
    /// It still waits, and there is only so much time left, such as `36 hours`.
    Reminder { left: String },
    /// Those who were told first have not acted; `left` as above, if there is a limit.
    Escalated { left: Option<String> },
    /// It has ended in this state.
    Ended,
}

/// An action that would take the item forward.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub action: String,
    pub role: Role,
    /// How many people still have to do it.
    pub needed: u32,
    /// Who can: the first few, and how many more there are.
    pub who: Vec<Person>,
    pub others: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub name: String,
    /// What this chat calls them, so that it tells them: a Slack member id, or a Teams user's address.
    pub mention: Option<String>,
}
