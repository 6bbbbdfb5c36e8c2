//! What cannot be checked about a recorded move, because the document it depends on was erased or left out.
//!
//! Everything else is still checked: `decide` accepts a move only if it is legal for at least one possible content, and
//! says which questions only the content could answer.

use std::fmt;

use serde::Serialize;

use crate::workflow::Name;

/// What can no longer be read about a recorded move. Empty for a new request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gaps {
    /// There was a comment.
    pub comment: bool,
    /// There were inputs.
    pub inputs: bool,
    /// The state the move led to. If the missing content chose between several, it chose this one.
    pub led_to: Option<Name>,
}

/// A question that only a missing document could answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unasked {
    Content,
    Payload,
    Comment,
    Inputs,
    Quorum,
    Window,
    Deadline,
}

impl Unasked {
    pub const ALL: [Unasked; 7] = [
        Unasked::Content,
        Unasked::Payload,
        Unasked::Comment,
        Unasked::Inputs,
        Unasked::Quorum,
        Unasked::Window,
        Unasked::Deadline,
    ];

    pub const fn words(self) -> &'static str {
        match self {
            Unasked::Content => "whether title and payload fit the definition",
            Unasked::Payload => "whether the payload was complete",
            Unasked::Comment => "whether the comment said anything",
            Unasked::Inputs => "whether the inputs allowed it",
            Unasked::Quorum => "whether more votes were needed",
            Unasked::Window => "whether it was inside the window",
            Unasked::Deadline => "whether the window had ended",
        }
    }
}

impl fmt::Display for Unasked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}
