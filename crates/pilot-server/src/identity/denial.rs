//! Why a request has no caller.

/// Why a request has no caller. The cause is only for the request's log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub unknown: Unknown,
    pub cause: Option<String>,
}

impl Denial {
    pub fn because(unknown: Unknown, cause: &str) -> Denial {
        Denial { unknown, cause: Some(cause.to_owned()) }
    }
}

impl From<Unknown> for Denial {
    fn from(unknown: Unknown) -> Self {
        Denial { unknown, cause: None }
    }
}

/// Why nobody was recognised. For the metrics, never for the caller, who gets the same answer for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    Missing,
    Malformed,
    Unrecognised,
    NotYet,
    Expired,
    Revoked,
    /// It is older than a loss that may include its revocation, and no operator has said that it is valid.
    Doubted,
    /// The only service that could tell does not answer: neither yes nor no.
    Undecided,
}

impl Unknown {
    pub const ALL: [Unknown; 8] = [
        Unknown::Missing,
        Unknown::Malformed,
        Unknown::Unrecognised,
        Unknown::NotYet,
        Unknown::Expired,
        Unknown::Revoked,
        Unknown::Doubted,
        Unknown::Undecided,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Unknown::Missing => "missing",
            Unknown::Malformed => "malformed",
            Unknown::Unrecognised => "unrecognised",
            Unknown::NotYet => "not_yet",
            Unknown::Expired => "expired",
            Unknown::Revoked => "revoked",
            Unknown::Doubted => "doubted",
            Unknown::Undecided => "undecided",
        }
    }

    pub fn credential_was_sent(self) -> bool {
        self != Unknown::Missing
    }
}
