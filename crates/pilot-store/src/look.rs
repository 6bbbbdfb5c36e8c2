//! Which content of an item an actor last looked at: one fact for each item and actor, changed without an entry.
//!
//! A look proves nothing: it is what a page said, for the sake of the person in front of it. So it is no part of the
//! ledger, but it is copied, moved and erased with the rest of the store.

use pilot_core::actor::ActorId;
use pilot_core::document::ContentDigest;
use pilot_core::item::ItemId;
use pilot_core::time::Time;
use serde::Deserialize;

use crate::{Fact, Result, StoreError};

const LOOKS: &str = "look/";

/// The form of looks this program writes.
const LOOK_VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Look {
    pub at: Time,
    pub content_digest: ContentDigest,
    v: u32,
}

/// What the names of all looks at an item begin with.
pub fn looks_of(id: &ItemId) -> String {
    format!("{LOOKS}{id}/")
}

impl Look {
    pub fn new(content_digest: ContentDigest, at: Time) -> Look {
        Look { at, content_digest, v: LOOK_VERSION }
    }

    /// The name of the fact. An item has no more of them than there are actors.
    pub fn name(id: &ItemId, actor_id: &ActorId) -> String {
        format!("{}{actor_id}", looks_of(id))
    }

    pub fn read(bytes: &[u8]) -> Result<Look> {
        #[derive(Deserialize)]
        struct Form {
            v: u32,
        }
        match serde_json::from_slice::<Form>(bytes) {
            Ok(Form { v }) if v > LOOK_VERSION => {
                Err(StoreError::Unavailable(format!("a look has form {v}, which is newer than this program")))
            }
            Ok(_) | Err(_) => serde_json::from_slice(bytes)
                .map_err(|error| StoreError::Damaged(format!("a look cannot be read: {error}"))),
        }
    }

    /// Whether this fact, if it is a look, has the shape of one.
    pub fn check(name: &str, value: &[u8]) -> Result<()> {
        let Some(rest) = name.strip_prefix(LOOKS) else { return Ok(()) };
        let is_named = rest
            .split_once('/')
            .is_some_and(|(id, actor_id)| id.parse::<ItemId>().is_ok() && actor_id.parse::<ActorId>().is_ok());
        if !is_named {
            return Err(StoreError::Damaged(format!("the fact {name:?} is not named as a look")));
        }
        Look::read(value).map(drop)
    }

    pub fn to_fact(&self, id: &ItemId, actor_id: &ActorId) -> Fact {
        let Look { at, content_digest, v } = self;
        // A time and a digest need no escaping.
        let value = format!(r#"{{"at":"{at}","content_digest":"{content_digest}","v":{v}}}"#);
        Fact { name: Look::name(id, actor_id), value: Some(value.into_bytes()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_told_from_what_is_damaged_and_from_what_is_newer() {
        let id: ItemId = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        let look = Look::new(ContentDigest::of_bytes(b"content"), Time::EPOCH);
        let fact = look.to_fact(&id, &"ana@example.org/laptop".parse().unwrap());
        let value = fact.value.unwrap();
        assert_eq!(fact.name, format!("look/{id}/ana@example.org/laptop"));
        assert_eq!(Look::read(&value).unwrap(), look);
        assert!(Look::check(&fact.name, &value).is_ok());
        assert!(Look::check("credential/used/x", b"anything").is_ok(), "not a look");
        let newer = String::from_utf8(value.clone()).unwrap().replace("\"v\":1", "\"v\":2,\"more\":1");
        assert!(matches!(Look::read(newer.as_bytes()), Err(StoreError::Unavailable(_))));
        for (name, value) in [("look/x/ana", &value[..]), ("look/", &value[..]), (&fact.name, b"{}"), (&fact.name, b"")]
        {
            assert!(matches!(Look::check(name, value), Err(StoreError::Damaged(_))), "{name}");
        }
    }
}
