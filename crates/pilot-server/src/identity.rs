//! Identity mechanisms: each turns a request into a caller, or says that it cannot. Exactly one is in force, and only
//! `access` asks it.

use http::request::Parts;

use crate::access::Caller;
use crate::api::actors::ActorView;

pub mod credential_file;

pub enum Identity {
    CredentialFile(credential_file::CredentialFile),
}

/// Why nobody was recognised. Told to metrics, never to the caller, who sees the same answer for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    Missing,
    Malformed,
    Unrecognised,
}

impl Unknown {
    pub const ALL: [Unknown; 3] = [Unknown::Missing, Unknown::Malformed, Unknown::Unrecognised];

    pub const fn as_str(self) -> &'static str {
        match self {
            Unknown::Missing => "missing",
            Unknown::Malformed => "malformed",
            Unknown::Unrecognised => "unrecognised",
        }
    }

    pub fn credential_was_sent(self) -> bool {
        self != Unknown::Missing
    }
}

impl Identity {
    /// Everyone the mechanism knows.
    pub fn actors(&self) -> Vec<ActorView> {
        match self {
            Identity::CredentialFile(file) => file.actors(),
        }
    }

    pub fn identify(&self, head: &Parts) -> Result<Caller, Unknown> {
        match self {
            Identity::CredentialFile(file) => file.identify(&head.headers),
        }
    }
}
