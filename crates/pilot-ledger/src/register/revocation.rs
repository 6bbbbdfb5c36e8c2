//! Ending a credential at once: by a security_admin, or by the service that saw its token where none may be.

use std::sync::Arc;

use pilot_core::actor::Actor;
use pilot_core::document::Document;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::refusal::Refusal;
use pilot_core::time::Time;
use pilot_store::{Key, Outcome, Record, Situation, Store, StoreError, Subject, Write};
use serde_json::json;

use super::ended::{End, Ended, Revocation};
use super::event::{Automatic, Event};
use super::kept::FACT;
use super::names::KnownCredential;
use super::state::Register;
use crate::answer::{Made, StoredAnswer, room};

/// A security_admin wants it so, and may have said why.
pub struct Wish {
    pub by: Actor,
    pub comment: Option<Document>,
    pub key: Option<Key>,
}

/// Why a revocation is not acknowledged. The credential does not count any more all the same.
#[derive(Debug, thiserror::Error)]
pub enum RevokeError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file that keeps revocations outside of the ledger cannot be written.
    #[error("revocations cannot be kept outside of the ledger: {0}")]
    Outside(std::io::Error),
    #[error("the idempotency key was used for another request")]
    KeyReused,
    #[error("{0}")]
    Failed(String),
}

enum Cause {
    Asked(Wish),
    Automatic(Automatic),
}

/// Ends a credential. It counts no longer from the first line of this on, even when the ledger cannot be written: then
/// the caller is told to ask again.
pub async fn revoke(
    register: &Arc<Register>,
    store: &Arc<dyn Store>,
    known: &KnownCredential,
    wish: Wish,
    now: Time,
) -> Result<StoredAnswer, RevokeError> {
    register.end(&known.id, Ended::Revoked);
    let (register, store, known) = (Arc::clone(register), Arc::clone(store), known.clone());
    // On its own: a caller who goes away in the middle must not leave the register and the ledger at odds.
    let written = tokio::spawn(async move { write(&register, &*store, &known, Cause::Asked(wish), now).await });
    written.await.unwrap_or_else(|error| Err(RevokeError::Failed(error.to_string())))
}

/// Ends a credential at once, and has that written down as soon as it can be.
pub fn revoke_by_itself(register: &Register, known: KnownCredential, why: Automatic) {
    if register.end(&known.id, Ended::Revoked) {
        register.push(Event::Revoked(known, why));
    }
}

pub(super) async fn write_by_itself(
    register: &Register,
    store: &dyn Store,
    known: &KnownCredential,
    why: Automatic,
    now: Time,
) -> Result<(), String> {
    let written = write(register, store, known, Cause::Automatic(why), now).await;
    written.map(drop).map_err(|error| error.to_string())
}

async fn write(
    register: &Register,
    store: &dyn Store,
    known: &KnownCredential,
    cause: Cause,
    now: Time,
) -> Result<StoredAnswer, RevokeError> {
    let mut kept = register.kept.lock().await;
    kept.tidy(now);
    let earlier = kept.ended.get(&known.id).and_then(|end| end.revocation.clone());
    let (by, comment, key, why) = match cause {
        Cause::Asked(Wish { by, comment, key }) => (Some(by), comment, key, "asked"),
        Cause::Automatic(Automatic::TokenInUrl) => (None, None, None, "token_in_url"),
        Cause::Automatic(Automatic::TokenInContent) => (None, None, None, "token_in_content"),
        Cause::Automatic(Automatic::RevocationList) => (None, None, None, "revocation_list"),
        Cause::Automatic(Automatic::CarriedOver) => (None, None, None, "carried_over"),
    };
    let (id, actor, fingerprint) = (known.id.clone(), known.actor.clone(), known.fingerprint.clone());
    let forget_at = known.forget_at;
    let end = End { how: Ended::Revoked, fingerprint: fingerprint.clone(), forget_at, revocation: None };
    // Before the ledger: whatever becomes of that, no restore brings the credential back.
    let kept_outside = register.keep_outside(&known.id, &end).await;
    let mut after = kept.clone();
    let is_done = earlier.is_some();
    let details = json!({ "cause": why, "credential": {
        "actor_id": actor.as_ref().map(|actor| &actor.actor_id),
        "credential_id": id,
        "fingerprint": fingerprint,
        "role": actor.as_ref().map(|actor| actor.role),
    } });
    let decide = move |situation: &Situation<'_>| {
        if is_done {
            // Any refusal does: nothing is to be recorded, and nobody hears of it.
            return Err(Refusal::NothingDue);
        }
        let revocation = Revocation {
            credential_id: id.clone(),
            actor: actor.clone(),
            revoked_at: situation.now,
            revoked_by: by.clone(),
            entry: situation.index,
        };
        let answer = StoredAnswer::showing(room(), Made::Created, None, None, &revocation);
        let end =
            End { how: Ended::Revoked, fingerprint: fingerprint.clone(), forget_at, revocation: Some(revocation) };
        after.ended.insert(id.clone(), end);
        let details = details.clone();
        let entry = Entry {
            comment: comment.as_ref().map(|document| document.digest.clone()),
            ..Entry::new(EntryType::CredentialRevoked, situation.index, situation.now, by.as_ref(), details)
        };
        let fact = Some((FACT, after.to_bytes()));
        Ok(Record { entry, documents: comment.iter().cloned().collect(), standing: None, answer, fact })
    };
    let outcome = store.settle(Write::new(Subject::Ledger, key, decide)).await?;
    let kept_outside = kept_outside.map_err(RevokeError::Outside);
    let unreadable = || RevokeError::Failed("a stored answer cannot be read".into());
    match (outcome, earlier) {
        (Outcome::Recorded { answer, .. } | Outcome::Repeated { answer }, _) => {
            let answer = StoredAnswer::from_bytes(answer).ok_or_else(unreadable)?;
            let revocation =
                serde_json::from_slice(&answer.body).map_err(|error| RevokeError::Failed(error.to_string()))?;
            let (fingerprint, revocation) = (known.fingerprint.clone(), Some(revocation));
            kept.ended.insert(known.id.clone(), End { how: Ended::Revoked, fingerprint, forget_at, revocation });
            kept_outside.map(|()| answer)
        }
        (Outcome::KeyReused, _) => Err(RevokeError::KeyReused),
        // Once is enough: whoever asks again learns what was done.
        (Outcome::Refused(_), Some(earlier)) => {
            kept_outside?;
            StoredAnswer::from_bytes(StoredAnswer::showing(room(), Made::Created, None, None, &earlier))
                .ok_or_else(unreadable)
        }
        (other, _) => Err(RevokeError::Failed(format!("a revocation failed: {other:?}"))),
    }
}
