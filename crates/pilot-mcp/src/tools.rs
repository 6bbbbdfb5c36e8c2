//! What each tool does. Every one of them asks the service, and none decides.

pub(crate) mod change;
pub(crate) mod execute;
pub(crate) mod propose;
pub(crate) mod reading;
pub(crate) mod wait;

/// What a tool has to say: in words, and as data.
pub(crate) struct Said<T> {
    pub words: String,
    pub view: T,
}
