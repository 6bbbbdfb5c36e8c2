//! Why a request has no caller.

use pilot_core::credentials::CredentialId;

/// Why a request has no caller. The cause is only for the request's log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub unknown: Unknown,
    pub cause: String,
}

impl Denial {
    pub fn because(unknown: Unknown, cause: &str) -> Denial {
        Denial { unknown, cause: cause.to_owned() }
    }
}

impl Denial {
    /// Of a credential that is known by this name.
    pub fn of(unknown: Unknown, id: &CredentialId) -> Denial {
        Denial::because(unknown, &format!("the credential `{id}` {}", unknown.state()))
    }
}

impl From<Unknown> for Denial {
    fn from(unknown: Unknown) -> Self {
        let cause = match unknown {
            Unknown::Missing => "no credential was sent",
            Unknown::Malformed => "the Authorization header is not `Bearer` and one well-formed token",
            Unknown::Unrecognised => "no credential has this token",
            _ => return Denial::because(unknown, &format!("the credential {}", unknown.state())),
        };
        Denial::because(unknown, cause)
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

    /// What is the matter with a credential that is known.
    const fn state(self) -> &'static str {
        match self {
            Unknown::Missing | Unknown::Malformed | Unknown::Unrecognised => "is not accepted",
            Unknown::NotYet => "is not valid yet",
            Unknown::Expired => "has expired",
            Unknown::Revoked => "was revoked",
            Unknown::Doubted => {
                "was issued before a loss of entries, which may include its revocation; rotate it, or run `pilot credential trust`"
            }
            Unknown::Undecided => "cannot be checked at the moment",
        }
    }

    pub fn credential_was_sent(self) -> bool {
        self != Unknown::Missing
    }
}
