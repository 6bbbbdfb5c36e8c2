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
    let null = Value::Null;
    let details = entry.details.as_ref().unwrap_or(&null);
    let event = |credential: Named, what| CredentialEvent { at: entry.at, entry: entry.index, credential, what };
    let named = || details.get("credential").map(named).unwrap_or_default();
    let text = |member: &str| details.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    match entry.r#type {
        EntryType::CredentialsChanged | EntryType::ServiceStarted => {
            changes(details).into_iter().map(|(credential, what)| event(credential, what)).collect()
        }
        EntryType::CredentialFirstUsed => vec![event(named(), What::FirstUsed)],
        EntryType::CredentialRefused => vec![event(named(), What::Refused { reason: text("reason") })],
        EntryType::CredentialExpired => vec![event(named(), What::Expired)],
        EntryType::CredentialRevoked => {
            let what = What::Revoked { by: entry.actor_id.clone(), cause: text("cause") };
            vec![event(named(), what)]
        }
        EntryType::AccessTokenExposed => {
            let owner = Named { actor_id: entry.actor_id.clone(), role: entry.role, ..Named::default() };
            let count = details.get("count").and_then(Value::as_u64).unwrap_or(1);
            vec![event(owner, What::TokenExposed { count })]
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
    }
}

/// What a start found added and removed. One that is both has only changed.
fn changes(details: &Value) -> Vec<(Named, What)> {
    let list = |member: &str| {
        let found = details.get("credentials").and_then(|credentials| credentials.get(member)?.as_array());
        found.into_iter().flatten().map(named).collect::<Vec<_>>()
    };
    let (added, removed) = (list("added"), list("removed"));
    let is_in = |others: &[Named], one: &Named| {
        one.fingerprint.is_some() && others.iter().any(|other| other.fingerprint == one.fingerprint)
    };
    let gone: Vec<_> =
        removed.iter().filter(|one| !is_in(&added, one)).map(|one| (one.clone(), What::Removed)).collect();
    let came = added.into_iter().map(|one| {
        let what = if is_in(&removed, &one) { What::Changed } else { What::Added };
        (one, what)
    });
    came.chain(gone).collect()
}

fn named(value: &Value) -> Named {
    Named::deserialize(value).unwrap_or_default()
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
        for strange in [json!(null), json!([]), json!({"credentials": 1}), json!({"credentials": {"added": {}}})] {
            assert_eq!(told(EntryType::ServiceStarted, strange), [""; 0]);
        }
        assert_eq!(told(EntryType::CredentialExpired, json!({"credential": {"actor_id": 1}})), ["expired"]);
    }
}
