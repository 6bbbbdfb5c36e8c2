//! What entries say about credentials: the life of each, from the start that added it to the refusal after its end.

use std::fmt;

use pilot_core::actor::ActorId;
use pilot_core::certain::Certain as _;
pub use pilot_core::entry::details::Named;
use pilot_core::entry::details::{Attempts, ChangedCredentials, Changes, Details, Started};
use pilot_core::entry::{Entry, EntryType};
use pilot_core::time::Time;
use serde::Serialize;

use crate::bundle::Scope;
use crate::verify::contents::open;
use crate::verify::{IN_MEMORY, Trust, Verdict, examine, verify};

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

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    Added,
    /// The same token, with another name or expiry.
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
    /// The entry does not have a form that this program knows.
    Unreadable,
}

impl CredentialEvent {
    /// As text, without the credential and its actor.
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

/// As part of a sentence.
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

/// What one entry says about credentials: nothing, one event, or, for a start, one for each that changed.
pub fn events(entry: &Entry) -> Vec<CredentialEvent> {
    // A made-up name or number in place of one that cannot be read would be believed.
    let told = told(entry).unwrap_or_else(|| vec![(Named::default(), What::Unreadable)]);
    let event = |(credential, what)| CredentialEvent { at: entry.at, entry: entry.index, credential, what };
    told.into_iter().map(event).collect()
}

/// `None` if the entry does not have the form this program writes.
fn told(entry: &Entry) -> Option<Vec<(Named, What)>> {
    if !tells_of_credentials(entry.r#type) {
        return Some(Vec::new());
    }
    Some(match entry.details()? {
        Details::CredentialsChanged(ChangedCredentials { credentials })
        | Details::ServiceStarted(Started { credentials, .. }) => changes(credentials),
        Details::CredentialFirstUsed(first) => vec![(first.credential, What::FirstUsed)],
        Details::CredentialRefused(refused) => vec![(refused.credential, What::Refused { reason: refused.reason })],
        Details::CredentialExpired(expired) => vec![(expired.credential, What::Expired)],
        Details::CredentialRevoked(revoked) => {
            vec![(revoked.credential, What::Revoked { by: entry.actor_id.clone(), cause: revoked.cause })]
        }
        Details::AccessTokenExposed(Attempts { count, .. }) => {
            let owner = Named { actor_id: entry.actor_id.clone(), role: entry.role, ..Named::default() };
            vec![(owner, What::TokenExposed { count })]
        }
        Details::AccessRefused(_)
        | Details::CredentialsTrusted(_)
        | Details::LedgerRestored(_)
        | Details::DocumentsErased(_)
        | Details::ClockAccepted(_)
        | Details::PermitIssued(_) => Vec::new(),
    })
}

const fn tells_of_credentials(kind: EntryType) -> bool {
    match kind {
        EntryType::CredentialsChanged
        | EntryType::ServiceStarted
        | EntryType::CredentialFirstUsed
        | EntryType::CredentialRefused
        | EntryType::CredentialExpired
        | EntryType::CredentialRevoked
        | EntryType::AccessTokenExposed => true,
        EntryType::ItemCreated
        | EntryType::ItemEdited
        | EntryType::ItemTransition
        | EntryType::ItemComment
        | EntryType::PermitIssued
        | EntryType::AccessRefused
        | EntryType::LedgerRestored
        | EntryType::DocumentsErased
        | EntryType::CredentialsTrusted
        | EntryType::ClockAccepted => false,
    }
}

/// What a start found added and removed. A credential in both lists was changed. A start need not list any.
fn changes(Changes { added, removed, .. }: Changes) -> Vec<(Named, What)> {
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

/// The verdict on a period's bundle, and what the entries of that period say about credentials. Nothing is reported
/// from a bundle that does not hold.
pub fn tell(bundle: &[u8], trust: &Trust) -> (Verdict, Vec<CredentialEvent>) {
    let (source, watch) = (bundle.into(), &mut |_, _, _| {});
    let Ok(contents) = open(&source, &trust.key, watch) else { return (verify(bundle, trust), Vec::new()) };
    let verdict = examine(&contents, trust, watch).certain(IN_MEMORY);
    // Entries outside the period only show where it begins and what was in force.
    let told = match contents.manifest.scope {
        Scope::Period { first, end, .. } if verdict.holds => {
            let within = contents.entries.iter().filter(|mark| (first..end).contains(&mark.index));
            within.flat_map(|mark| events(&contents.entry(mark).certain(IN_MEMORY))).collect()
        }
        _ => Vec::new(),
    };
    (verdict, told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn told(kind: EntryType, details: Value) -> Vec<String> {
        let start = Entry::of_service(7, Time::EPOCH, None, &Details::ServiceStarted(Started::default()));
        let entry = Entry { r#type: kind, details: Some(details), ..start };
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
        let attempts = json!({"code": "token_in_url", "count": 3, "since": Time::EPOCH});
        assert_eq!(told(EntryType::AccessTokenExposed, attempts.clone()), ["token seen in a URL, 3 times"]);
        assert_eq!(told(EntryType::AccessRefused, attempts), [""; 0]);
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
        for silent in [json!({}), json!({"credentials": {}})] {
            assert_eq!(told(EntryType::ServiceStarted, silent), [""; 0]);
        }
        let unreadable = ["recorded in a form that this program does not know"];
        assert_eq!(told(EntryType::ServiceStarted, json!(null)), unreadable);
        assert_eq!(told(EntryType::ServiceStarted, json!({"credentials": {"added": {}}})), unreadable);
        assert_eq!(told(EntryType::CredentialExpired, json!({"credential": {"actor_id": 1}})), unreadable);
        assert_eq!(told(EntryType::AccessTokenExposed, json!({})), unreadable);
    }
}
