//! What is wrong with an input, and where. A fault never carries the value it found: it may be a clear token.

use std::fmt;

use crate::limits::POINTER_BYTES_MAX;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// JSON pointer (RFC 6901) to the place; empty for the document as a whole.
    pub pointer: String,
    /// What is wrong and how to mend it, without the value.
    pub detail: String,
}

impl Fault {
    /// A pointer that is too long to show is cut to the last thing around the place whose pointer is not.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let mut pointer = pointer.into();
        if pointer.len() > POINTER_BYTES_MAX {
            let end = pointer.floor_char_boundary(POINTER_BYTES_MAX);
            let end = pointer.get(..end).and_then(|shown| shown.rfind('/')).unwrap_or(0);
            pointer.truncate(end);
        }
        Fault { pointer, detail: detail.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() { "(whole document)" } else { &self.pointer };
        write!(f, "{place}: {}", self.detail)
    }
}
