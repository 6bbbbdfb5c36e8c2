//! Which entries are shown to whom.

use pilot_core::entry::EntryType;
use pilot_core::role::Role;
use serde::Deserialize;

pub fn sees_everything(role: Role) -> bool {
    role.sees_every_entry()
}

/// Entries about access and credentials are for two roles only.
pub fn is_visible(kind: EntryType, role: Role) -> bool {
    !kind.is_restricted() || sees_everything(role)
}

pub fn kind_of(entry: &[u8]) -> serde_json::Result<EntryType> {
    #[derive(Deserialize)]
    struct Typed {
        r#type: EntryType,
    }
    serde_json::from_slice(entry).map(|typed: Typed| typed.r#type)
}
