//! The data of entries that have more to say than who moved which item, by type.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kind::EntryType;
use crate::actor::{Actor, ActorId};
use crate::certain::Certain as _;
use crate::credentials::CredentialId;
use crate::document::ContentDigest;
use crate::item::{ItemId, WorkflowRef};
use crate::role::Role;
use crate::time::Time;

/// Unknown members are ignored when reading: an entry is what its bytes say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Details {
    AccessRefused(Attempts),
    AccessTokenExposed(Attempts),
    CredentialFirstUsed(OneCredential),
    CredentialRefused(RefusedCredential),
    CredentialExpired(OneCredential),
    CredentialRevoked(RevokedCredential),
    CredentialsChanged(ChangedCredentials),
    CredentialsTrusted(TrustedCredentials),
    ServiceStarted(Started),
    LedgerRestored(Restored),
    DocumentsErased(Erased),
    ClockAccepted(ClockAccepted),
    PermitIssued(IssuedPermit),
}

/// A token for a target. The token itself is nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedPermit {
    pub audience: String,
    pub expires_at: Time,
    /// By which a target and the ledger speak of the same token.
    pub jti: String,
    /// Which key signed it.
    pub key_id: String,
}

/// Attempts of one kind by one actor, counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempts {
    pub code: String,
    pub count: u64,
    /// The time of the first attempt. The very first programs did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Where the first of them came from, if the service is told to record that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
}

/// A credential as entries name it; nothing here is secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_id: Option<ActorId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Absent if the fingerprint is its only name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_id: Option<CredentialId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<CredentialId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

impl Named {
    /// Its own name, or else its fingerprint.
    pub fn name(&self) -> Option<&CredentialId> {
        self.credential_id.as_ref().or(self.fingerprint.as_ref())
    }

    /// The actor it belongs to, if known.
    pub fn actor(&self) -> Option<Actor> {
        Some(Actor::new(self.actor_id.clone()?, self.role?))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OneCredential {
    pub credential: Named,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCredential {
    pub credential: Named,
    /// `removed`, `expired`, `revoked` or `doubted`.
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedCredential {
    /// `asked` by someone, or why the service did it on its own.
    pub cause: String,
    #[serde(serialize_with = "with_nulls")]
    pub credential: Named,
}

/// These entries have always written what is unknown about a credential as null.
fn with_nulls<S: serde::Serializer>(named: &Named, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Whole<'n> {
        actor_id: Option<&'n ActorId>,
        credential_id: Option<&'n CredentialId>,
        fingerprint: Option<&'n CredentialId>,
        role: Option<Role>,
    }
    let Named { actor_id, role, credential_id, fingerprint, expires_at: _ } = named;
    let [credential_id, fingerprint] = [credential_id.as_ref(), fingerprint.as_ref()];
    Whole { actor_id: actor_id.as_ref(), credential_id, fingerprint, role: *role }.serialize(serializer)
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedCredentials {
    pub credentials: Changes,
}

/// A credential that is in both lists was changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    #[serde(default)]
    pub added: Vec<Named>,
    #[serde(default)]
    pub removed: Vec<Named>,
    /// How many there are now; only in the entry of a start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// An operator accepted credentials again after a loss.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedCredentials {
    pub all: bool,
    /// Credentials issued before this were doubted.
    pub before: Time,
    pub credentials: Vec<CredentialId>,
    pub operator: Option<String>,
    pub why: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    #[serde(default)]
    pub credentials: Changes,
    /// In force for new items.
    #[serde(default)]
    pub definitions: Vec<WorkflowRef>,
    /// The keys published for permit tokens; the first signs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permit_keys: Vec<String>,
    /// The entry of the previous start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_map: Option<ContentDigest>,
    /// The program's version.
    #[serde(default)]
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// What showed that nothing is missing, or why that could not be shown.
    pub because: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    #[serde(flatten)]
    pub loss: Option<Loss>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    pub entries: u64,
    pub made_at: Time,
}

/// The log continues with a new key although something may be lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// Why, in the operator's words.
    pub loss_accepted: String,
    /// The last checkpoint of the previous log, if anyone had it.
    pub previous_checkpoint: Option<String>,
    /// `doubted` or `trusted`, if it is not known which were revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erased {
    pub documents: u64,
    pub item: ItemId,
    pub operator: Option<String>,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAccepted {
    /// What the machine's clock showed.
    pub machine: Time,
    pub operator: Option<String>,
}

impl Details {
    pub const fn r#type(&self) -> EntryType {
        match self {
            Details::AccessRefused(_) => EntryType::AccessRefused,
            Details::AccessTokenExposed(_) => EntryType::AccessTokenExposed,
            Details::CredentialFirstUsed(_) => EntryType::CredentialFirstUsed,
            Details::CredentialRefused(_) => EntryType::CredentialRefused,
            Details::CredentialExpired(_) => EntryType::CredentialExpired,
            Details::CredentialRevoked(_) => EntryType::CredentialRevoked,
            Details::CredentialsChanged(_) => EntryType::CredentialsChanged,
            Details::CredentialsTrusted(_) => EntryType::CredentialsTrusted,
            Details::ServiceStarted(_) => EntryType::ServiceStarted,
            Details::LedgerRestored(_) => EntryType::LedgerRestored,
            Details::DocumentsErased(_) => EntryType::DocumentsErased,
            Details::ClockAccepted(_) => EntryType::ClockAccepted,
            Details::PermitIssued(_) => EntryType::PermitIssued,
        }
    }

    pub(super) fn to_value(&self) -> Value {
        serde_json::to_value(self).certain("details have text as keys")
    }

    /// `None` for entries about an item that have no details.
    pub(super) fn read(r#type: EntryType, value: &Value) -> Option<serde_json::Result<Details>> {
        Some(match r#type {
            EntryType::ItemCreated | EntryType::ItemEdited | EntryType::ItemTransition | EntryType::ItemComment => {
                return None;
            }
            EntryType::AccessRefused => Attempts::deserialize(value).map(Details::AccessRefused),
            EntryType::AccessTokenExposed => Attempts::deserialize(value).map(Details::AccessTokenExposed),
            EntryType::CredentialFirstUsed => OneCredential::deserialize(value).map(Details::CredentialFirstUsed),
            EntryType::CredentialRefused => RefusedCredential::deserialize(value).map(Details::CredentialRefused),
            EntryType::CredentialExpired => OneCredential::deserialize(value).map(Details::CredentialExpired),
            EntryType::CredentialRevoked => RevokedCredential::deserialize(value).map(Details::CredentialRevoked),
            EntryType::CredentialsChanged => ChangedCredentials::deserialize(value).map(Details::CredentialsChanged),
            EntryType::CredentialsTrusted => TrustedCredentials::deserialize(value).map(Details::CredentialsTrusted),
            EntryType::ServiceStarted => Started::deserialize(value).map(Details::ServiceStarted),
            EntryType::LedgerRestored => Restored::deserialize(value).map(Details::LedgerRestored),
            EntryType::DocumentsErased => Erased::deserialize(value).map(Details::DocumentsErased),
            EntryType::ClockAccepted => ClockAccepted::deserialize(value).map(Details::ClockAccepted),
            EntryType::PermitIssued => IssuedPermit::deserialize(value).map(Details::PermitIssued),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// As programs have written them to ledgers from the first one on.
    #[test]
    fn what_ledgers_hold_is_read_and_written_again_as_it_was() {
        let ana = json!({"actor_id": "ana", "fingerprint": "00112233aabbccdd", "role": "auditor"});
        let named = json!({"actor_id": "ana", "credential_id": "ana-1", "expires_at": Time::EPOCH,
            "fingerprint": "00112233aabbccdd", "role": "auditor"});
        let revoked =
            json!({"actor_id": "ana", "credential_id": "x", "fingerprint": "00112233aabbccdd", "role": "auditor"});
        let unknown = json!({"actor_id": null, "credential_id": "x", "fingerprint": null, "role": null});
        let digest = format!("sha256:{:064}", 0);
        let definition = json!({"digest": digest, "name": "n", "version": 1});
        let credentials = json!({"added": [ana], "count": 1, "removed": []});
        let attempts = json!({"code": "role_forbidden", "count": 2, "since": Time::EPOCH});
        let restored = json!({"because": "b", "backup": {"entries": 7, "made_at": Time::EPOCH}, "operator": "root"});
        let lost = json!({"because": "b", "loss_accepted": "w", "previous_checkpoint": null, "credentials": "doubted"});
        let item = "01890a5d-ac96-774b-bcce-b302099a8057";
        for (kind, details) in [
            (EntryType::AccessRefused, attempts.clone()),
            (EntryType::AccessTokenExposed, attempts),
            (EntryType::CredentialFirstUsed, json!({"credential": named})),
            (EntryType::CredentialRefused, json!({"credential": ana, "reason": "removed"})),
            (EntryType::CredentialExpired, json!({"credential": ana})),
            (EntryType::CredentialRevoked, json!({"cause": "asked", "credential": unknown})),
            (EntryType::CredentialRevoked, json!({"cause": "token_in_url", "credential": revoked})),
            (EntryType::CredentialsChanged, json!({"credentials": {"added": [], "removed": [ana]}})),
            (
                EntryType::CredentialsTrusted,
                json!({"all": false, "before": Time::EPOCH, "credentials": ["x"], "operator": null, "why": "w"}),
            ),
            (
                EntryType::ServiceStarted,
                json!({"credentials": credentials, "definitions": [definition], "previous": 3, "role_map": digest, "version": "1"}),
            ),
            (EntryType::ServiceStarted, json!({"credentials": credentials, "definitions": [], "version": "1"})),
            (
                EntryType::ServiceStarted,
                json!({"credentials": credentials, "definitions": [], "permit_keys": ["k"], "version": "1"}),
            ),
            (
                EntryType::PermitIssued,
                json!({"audience": "vault", "expires_at": Time::EPOCH, "jti": "j", "key_id": "k"}),
            ),
            (EntryType::LedgerRestored, json!({"because": "b"})),
            (EntryType::LedgerRestored, restored),
            (EntryType::LedgerRestored, lost),
            (EntryType::DocumentsErased, json!({"documents": 2, "item": item, "operator": "root", "why": "w"})),
            (EntryType::ClockAccepted, json!({"machine": Time::EPOCH, "operator": null})),
        ] {
            let read = Details::read(kind, &details).unwrap();
            let read = read.unwrap_or_else(|error| panic!("{kind}: {error}"));
            assert_eq!((read.r#type(), read.to_value()), (kind, details));
        }
    }

    #[test]
    fn what_another_program_wrote_is_not_taken_for_something_else() {
        assert!(Details::read(EntryType::AccessRefused, &json!({"count": 1})).unwrap().is_err());
        assert!(Details::read(EntryType::ServiceStarted, &json!({"previous": "x"})).unwrap().is_err());
        assert!(Details::read(EntryType::ItemComment, &json!({})).is_none());
        let more = json!({"machine": Time::EPOCH, "operator": null, "of a newer program": 1});
        assert!(Details::read(EntryType::ClockAccepted, &more).unwrap().is_ok());
    }
}
