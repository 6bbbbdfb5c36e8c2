//! What entries say about credentials: the life of each, from the start that added it to the refusal after its end.

use std::fmt;

use pilot_core::actor::ActorId;
use pilot_core::credentials::CredentialId;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::role::Role;
use pilot_core::time::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bundle::Scope;
use crate::verify::contents::open;
use crate::verify::{Trust, Verdict, examine, verify};

/// One thing that happened to one credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CredentialEvent {
    pub at: Time,
    pub entry: u64,
    #[serde(flatten)]
    pub credential: Named,
    #[serde(flatten)]
    pub what: What,
}

/// A credential as entries name it; none of it is a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_id: Option<ActorId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_id: Option<CredentialId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<CredentialId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

impl Named {
    /// Its own name, else its fingerprint.
    pub fn name(&self) -> Option<&CredentialId> {
        self.credential_id.as_ref().or(self.fingerprint.as_ref())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    Added,
    /// The same token, with another name or end.
    Changed,
    Removed,
    FirstUsed,
    /// Used after its end.
    Refused {
        reason: String,
    },
    Expired,
    /// By someone, or by the service itself.
    Revoked {
        by: Option<ActorId>,
        cause: String,
    },
    /// The entry names only the actor.
    TokenExposed {
        count: u64,
    },
    /// The entry has another form than this program knows.
    Unreadable,
}

impl CredentialEvent {
    /// In words, without the credential and its actor.
    pub fn words(&self) -> String {
        let until = || self.credential.expires_at.map(|end| format!(", valid until {end}")).unwrap_or_default();
        match &self.what {
            What::Added => format!("added{}", until()),
            What::Changed => format!("changed{}", until()),
            What::Removed => "removed".to_owned(),
            What::FirstUsed => "first used".to_owned(),
            What::Refused { reason } => match reason.as_str() {
                "removed" => "refused because it was removed".to_owned(),
                "expired" => "refused because it had expired".to_owned(),
                "revoked" => "refused because it was revoked".to_owned(),
                _ => "refused after its end".to_owned(),
            },
            What::Expired => "expired".to_owned(),
            What::Revoked { by: Some(by), .. } => format!("revoked by {by}"),
            What::Revoked { by: None, cause } if cause == "token_in_url" => {
                "revoked by the service, which saw its token in a URL".to_owned()
            }
            What::Revoked { by: None, cause } if cause == "revocation_list" => {
                "revoked by its issuer's revocation list".to_owned()
            }
            What::Revoked { by: None, .. } => "revoked by the service".to_owned(),
            What::TokenExposed { count: 1 } => "token seen in a URL".to_owned(),
            What::TokenExposed { count } => format!("token seen in a URL, {count} times"),
            What::Unreadable => "recorded in a form that this program does not know".to_owned(),
        }
    }
}

/// As a sentence's part.
impl fmt::Display for CredentialEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.credential.name(), &self.credential.actor_id) {
            (Some(name), Some(actor)) => write!(f, "{name} of {actor}: ")?,
            (Some(name), None) => write!(f, "{name}: ")?,
            (None, Some(actor)) => write!(f, "{actor}: ")?,
            (None, None) => {}
        }
        f.write_str(&self.words())
    }
}

/// What one entry says about credentials: nothing, one thing, or for a start as many as have changed.
pub fn events(entry: &Entry) -> Vec<CredentialEvent> {
    // A name or a number in the place of one that cannot be read would be believed.
    let told = told(entry).unwrap_or_else(|| vec![(Named::default(), What::Unreadable)]);
    let event = |(credential, what)| CredentialEvent { at: entry.at, entry: entry.index, credential, what };
    told.into_iter().map(event).collect()
}

/// Nothing at all when the entry has not the form this program writes.
fn told(entry: &Entry) -> Option<Vec<(Named, What)>> {
    let details = entry.details.as_ref();
    let credential = || named(details?.get("credential")?);
    let text = |member: &str| Some(details?.get(member)?.as_str()?.to_owned());
    Some(match entry.r#type {
        EntryType::CredentialsChanged | EntryType::ServiceStarted => changes(details)?,
        EntryType::CredentialFirstUsed => vec![(credential()?, What::FirstUsed)],
        EntryType::CredentialRefused => vec![(credential()?, What::Refused { reason: text("reason")? })],
        EntryType::CredentialExpired => vec![(credential()?, What::Expired)],
        EntryType::CredentialRevoked => {
            vec![(credential()?, What::Revoked { by: entry.actor_id.clone(), cause: text("cause")? })]
        }
        EntryType::AccessTokenExposed => {
            let owner = Named { actor_id: entry.actor_id.clone(), role: entry.role, ..Named::default() };
            vec![(owner, What::TokenExposed { count: details?.get("count")?.as_u64()? })]
        }
        EntryType::ItemCreated
        | EntryType::ItemEdited
        | EntryType::ItemTransition
        | EntryType::ItemComment
        | EntryType::AccessRefused
        | EntryType::LedgerRestored
        | EntryType::DocumentsErased
        | EntryType::CredentialsTrusted
        | EntryType::ClockAccepted => Vec::new(),
    })
}

/// What a start found added and removed. One that is both has only changed. A start need not tell of any.
fn changes(details: Option<&Value>) -> Option<Vec<(Named, What)>> {
    let list = |member: &str| match details.and_then(|details| details.get("credentials")?.get(member)) {
        None => Some(Vec::new()),
        Some(found) => found.as_array()?.iter().map(named).collect::<Option<Vec<_>>>(),
    };
    let (added, removed) = (list("added")?, list("removed")?);
    let is_in = |others: &[Named], one: &Named| {
        one.fingerprint.is_some() && others.iter().any(|other| other.fingerprint == one.fingerprint)
    };
    let gone: Vec<_> =
        removed.iter().filter(|one| !is_in(&added, one)).map(|one| (one.clone(), What::Removed)).collect();
    let came = added.into_iter().map(|one| {
        let what = if is_in(&removed, &one) { What::Changed } else { What::Added };
        (one, what)
    });
    Some(came.chain(gone).collect())
}

fn named(value: &Value) -> Option<Named> {
    Named::deserialize(value).ok()
}

/// The verdict on a period's bundle, and what the entries of that period say about credentials. Nothing is reported
/// from a bundle that does not hold.
pub fn tell(bundle: &[u8], trust: &Trust) -> (Verdict, Vec<CredentialEvent>) {
    let Ok(contents) = open(bundle, &trust.key) else { return (verify(bundle, trust), Vec::new()) };
    let verdict = examine(&contents, trust);
    // Entries outside the period show where it begins, and what was in force.
    let told = match contents.manifest.scope {
        Scope::Period { first, end, .. } if verdict.holds => {
            let within = contents.entries.iter().filter(|held| (first..end).contains(&held.entry.index));
            within.flat_map(|held| events(&held.entry)).collect()
        }
        _ => Vec::new(),
    };
    (verdict, told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(kind: EntryType, details: Value) -> Vec<String> {
        let entry = Entry::new(kind, 7, Time::EPOCH, None, details);
        events(&entry).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_event_of_a_credentials_life_is_told_in_words() {
        let ana = json!({"actor_id": "ana", "role": "initiator", "credential_id": "ana-2", "fingerprint": "0123456789abcdef"});
        let about = |more: Value| {
            let mut details = json!({ "credential": ana });
            details.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            details
        };
        let mut lines = told(EntryType::CredentialFirstUsed, about(json!({})));
        for reason in ["removed", "expired", "revoked", "other"] {
            lines.extend(told(EntryType::CredentialRefused, about(json!({ "reason": reason }))));
        }
        lines.extend(told(EntryType::CredentialExpired, about(json!({}))));
        for cause in ["token_in_url", "revocation_list", "other"] {
            lines.extend(told(EntryType::CredentialRevoked, about(json!({ "cause": cause }))));
        }
        expect_test::expect![[r#"
            ana-2 of ana: first used
            ana-2 of ana: refused because it was removed
            ana-2 of ana: refused because it had expired
            ana-2 of ana: refused because it was revoked
            ana-2 of ana: refused after its end
            ana-2 of ana: expired
            ana-2 of ana: revoked by the service, which saw its token in a URL
            ana-2 of ana: revoked by its issuer's revocation list
            ana-2 of ana: revoked by the service"#]]
        .assert_eq(&lines.join("\n"));
        assert_eq!(told(EntryType::AccessTokenExposed, json!({"count": 3})), ["token seen in a URL, 3 times"]);
        assert_eq!(told(EntryType::AccessRefused, json!({"count": 3})), [""; 0]);
    }

    #[test]
    fn a_start_tells_what_came_went_and_changed_and_survives_any_details() {
        let one = |id: &str, fingerprint: &str, end: &str| json!({"actor_id": "ana", "role": "initiator", "credential_id": id, "fingerprint": fingerprint, "expires_at": end});
        let details = json!({"credentials": {
            "added": [one("new", "aaaaaaaaaaaaaaaa", "2030-01-01T00:00:00Z"), one("same", "bbbbbbbbbbbbbbbb", "2031-01-01T00:00:00Z")],
            "removed": [one("old", "cccccccccccccccc", "2029-01-01T00:00:00Z"), one("same", "bbbbbbbbbbbbbbbb", "2029-01-01T00:00:00Z")],
            "count": 2,
        }});
        expect_test::expect![[r#"
            new of ana: added, valid until 2030-01-01T00:00:00.000000Z
            same of ana: changed, valid until 2031-01-01T00:00:00.000000Z
            old of ana: removed"#]]
        .assert_eq(&told(EntryType::ServiceStarted, details).join("\n"));
        for silent in [json!(null), json!([]), json!({"credentials": {}})] {
            assert_eq!(told(EntryType::ServiceStarted, silent), [""; 0]);
        }
        let unreadable = ["recorded in a form that this program does not know"];
        assert_eq!(told(EntryType::ServiceStarted, json!({"credentials": {"added": {}}})), unreadable);
        assert_eq!(told(EntryType::CredentialExpired, json!({"credential": {"actor_id": 1}})), unreadable);
        assert_eq!(told(EntryType::AccessTokenExposed, json!({})), unreadable);
    }
}
