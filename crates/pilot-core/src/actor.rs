//! Accountable actors: a person or a machine, named by an `actor_id`.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::limits::ACTOR_ID_CHARS_MAX;
use crate::role::Role;

/// An actor's name. Cheap to clone: one allocation per actor, shared by every request that actor makes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "Arc<str>")]
pub struct ActorId(Arc<str>);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MalformedActorId {
    #[error("an actor_id has 1 to {ACTOR_ID_CHARS_MAX} characters")]
    Length,
    #[error("an actor_id begins with a letter or a digit")]
    FirstCharacter,
    #[error("an actor_id consists of A-Z a-z 0-9 . _ @ : / + -")]
    Character,
}

impl ActorId {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// To a human reader, two ids that fold to the same text are the same person, so they must not both exist.
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl FromStr for ActorId {
    type Err = MalformedActorId;

    fn from_str(text: &str) -> Result<Self, MalformedActorId> {
        check(text).map(|()| ActorId(text.into()))
    }
}

/// Whether this can be an actor's name.
pub(crate) fn check(text: &str) -> Result<(), MalformedActorId> {
    let bytes = text.as_bytes();
    let first = bytes.first().ok_or(MalformedActorId::Length)?;
    if bytes.len() > ACTOR_ID_CHARS_MAX {
        return Err(MalformedActorId::Length);
    }
    if !first.is_ascii_alphanumeric() {
        return Err(MalformedActorId::FirstCharacter);
    }
    if !bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._@:/+-".contains(byte)) {
        return Err(MalformedActorId::Character);
    }
    Ok(())
}

/// By its text, to look it up without a copy.
impl Borrow<str> for ActorId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ActorId {
    type Error = MalformedActorId;

    fn try_from(text: String) -> Result<Self, MalformedActorId> {
        text.parse()
    }
}

impl From<ActorId> for Arc<str> {
    fn from(id: ActorId) -> Self {
        id.0
    }
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Who is acting: derived by the server from a credential, never taken from a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Actor {
    pub actor_id: ActorId,
    pub role: Role,
    /// The person who answers for what this machine does, according to the role map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operated_by: Option<ActorId>,
}

impl Actor {
    /// Someone who acts in person.
    pub const fn new(actor_id: ActorId, role: Role) -> Actor {
        Actor { actor_id, role, operated_by: None }
    }

    /// The person that rules of separation count: a machine and its operator are one.
    pub fn person(&self) -> &ActorId {
        self.operated_by.as_ref().unwrap_or(&self.actor_id)
    }
}

/// `deploy-bot`, or `deploy-bot (operated by ana)`.
impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.operated_by {
            None => write!(f, "{}", self.actor_id),
            Some(operator) => write!(f, "{} (operated by {operator})", self.actor_id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_id_is_1_to_128_plain_characters_beginning_with_a_letter_or_digit() {
        let longest = "a".repeat(128);
        for legal in ["a", "7", "ana.lopez@example.org", "spiffe:a/b+c-d_e", longest.as_str()] {
            assert!(legal.parse::<ActorId>().is_ok(), "{legal}");
        }
        let too_long = "a".repeat(129);
        for (wrong, why) in [
            ("", MalformedActorId::Length),
            (too_long.as_str(), MalformedActorId::Length),
            (".ana", MalformedActorId::FirstCharacter),
            ("-ana", MalformedActorId::FirstCharacter),
            ("ana b", MalformedActorId::Character),
            ("ana\n", MalformedActorId::Character),
            ("anä", MalformedActorId::Character),
            ("ana\"", MalformedActorId::Character),
        ] {
            assert_eq!(wrong.parse::<ActorId>(), Err(why), "{wrong:?}");
        }
    }
}
