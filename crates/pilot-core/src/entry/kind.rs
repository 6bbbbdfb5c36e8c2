//! What an entry is about.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryType {
    #[serde(rename = "item.created")]
    ItemCreated,
    #[serde(rename = "item.edited")]
    ItemEdited,
    #[serde(rename = "item.transition")]
    ItemTransition,
    #[serde(rename = "item.comment")]
    ItemComment,
    /// A permit token was issued to the holder of the lease. The item and its version stay as they are.
    #[serde(rename = "permit.issued")]
    PermitIssued,
    /// Attempts refused for role, ownership or separation of duties, counted for a minute.
    #[serde(rename = "access.refused")]
    AccessRefused,
    /// A live token was seen where it must never be.
    #[serde(rename = "access.token_exposed")]
    AccessTokenExposed,
    /// A credential was used for the first time, and accepted.
    #[serde(rename = "credential.first_used")]
    CredentialFirstUsed,
    /// A credential that was removed, expired or revoked was used again for the first time, and refused.
    #[serde(rename = "credential.refused")]
    CredentialRefused,
    #[serde(rename = "credential.expired")]
    CredentialExpired,
    /// By a security_admin, or by the service itself: the entry states the cause.
    #[serde(rename = "credential.revoked")]
    CredentialRevoked,
    /// Credential changes found by a start that do not fit into its own entry, which follows.
    #[serde(rename = "credentials.changed")]
    CredentialsChanged,
    /// After a loss that may have included revocations, an operator accepted older credentials.
    #[serde(rename = "credentials.trusted")]
    CredentialsTrusted,
    #[serde(rename = "service.started")]
    ServiceStarted,
    /// The ledger was restored from a backup: what was lost, if anything.
    #[serde(rename = "ledger.restored")]
    LedgerRestored,
    /// What people wrote about an item was erased: which item, by whom and why.
    #[serde(rename = "documents.erased")]
    DocumentsErased,
    /// The machine's clock had jumped ahead, and an operator accepted it.
    #[serde(rename = "clock.accepted")]
    ClockAccepted,
}

/// The usual ones first.
const ALL: [EntryType; 17] = [
    EntryType::ItemTransition,
    EntryType::ItemCreated,
    EntryType::ItemEdited,
    EntryType::ItemComment,
    EntryType::PermitIssued,
    EntryType::AccessRefused,
    EntryType::AccessTokenExposed,
    EntryType::CredentialFirstUsed,
    EntryType::CredentialRefused,
    EntryType::CredentialExpired,
    EntryType::CredentialRevoked,
    EntryType::CredentialsChanged,
    EntryType::CredentialsTrusted,
    EntryType::ServiceStarted,
    EntryType::LedgerRestored,
    EntryType::DocumentsErased,
    EntryType::ClockAccepted,
];

impl EntryType {
    pub const fn as_str(self) -> &'static str {
        match self {
            EntryType::ItemCreated => "item.created",
            EntryType::ItemEdited => "item.edited",
            EntryType::ItemTransition => "item.transition",
            EntryType::ItemComment => "item.comment",
            EntryType::PermitIssued => "permit.issued",
            EntryType::AccessRefused => "access.refused",
            EntryType::AccessTokenExposed => "access.token_exposed",
            EntryType::CredentialFirstUsed => "credential.first_used",
            EntryType::CredentialRefused => "credential.refused",
            EntryType::CredentialExpired => "credential.expired",
            EntryType::CredentialRevoked => "credential.revoked",
            EntryType::CredentialsChanged => "credentials.changed",
            EntryType::CredentialsTrusted => "credentials.trusted",
            EntryType::ServiceStarted => "service.started",
            EntryType::LedgerRestored => "ledger.restored",
            EntryType::DocumentsErased => "documents.erased",
            EntryType::ClockAccepted => "clock.accepted",
        }
    }

    /// The type that is written like this.
    pub fn named(name: &str) -> Option<EntryType> {
        ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// About an item, and moves it to its next version.
    pub const fn is_version(self) -> bool {
        matches!(self, EntryType::ItemCreated | EntryType::ItemEdited | EntryType::ItemTransition)
    }

    /// Not about access, credentials or the service.
    pub const fn is_about_item(self) -> bool {
        self.is_version() || matches!(self, EntryType::ItemComment | EntryType::PermitIssued)
    }

    /// About access and credentials: only for security_admin and auditor.
    pub const fn is_restricted(self) -> bool {
        match self {
            EntryType::AccessRefused
            | EntryType::AccessTokenExposed
            | EntryType::CredentialFirstUsed
            | EntryType::CredentialRefused
            | EntryType::CredentialExpired
            | EntryType::CredentialRevoked
            | EntryType::CredentialsChanged
            | EntryType::CredentialsTrusted
            | EntryType::ServiceStarted => true,
            EntryType::ItemCreated
            | EntryType::ItemEdited
            | EntryType::ItemTransition
            | EntryType::ItemComment
            | EntryType::PermitIssued
            | EntryType::LedgerRestored
            | EntryType::DocumentsErased
            | EntryType::ClockAccepted => false,
        }
    }
}

impl fmt::Display for EntryType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_found_by_its_name() {
        for kind in ALL {
            assert_eq!(EntryType::named(kind.as_str()), Some(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        for wrong in ["", "item", "item.Created", "item.created "] {
            assert_eq!(EntryType::named(wrong), None, "{wrong:?}");
        }
    }
}
