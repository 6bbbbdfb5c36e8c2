//! Ending a credential at once: by a security_admin, or by the service that saw its token where none may be.

use std::sync::{Arc, Mutex, PoisonError};

use pilot_core::actor::Actor;
use pilot_core::document::Document;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::time::Time;
use pilot_store::{Key, NoRecord, Outcome, Record, Situation, Store, StoreError, Subject, Write};
use serde_json::json;

use super::ended::{End, Ended, Revocation};
use super::event::{Automatic, Event};
use super::kept::{self, FORGOTTEN_MAX};
use super::names::KnownCredential;
use super::state::Register;
use crate::answer::{Made, StoredAnswer, room};
use crate::persisted;

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
    let surplus = kept.surplus(now, FORGOTTEN_MAX).without(&known.id);
    let forgotten = surplus.facts(&kept::ended_name(&known.id));
    // What the ledger has already, perhaps by a write whose outcome nobody heard of.
    let earlier = Arc::new(Mutex::new(None::<End>));
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
    let details = json!({ "cause": why, "credential": {
        "actor_id": actor.as_ref().map(|actor| &actor.actor_id),
        "credential_id": id,
        "fingerprint": fingerprint,
        "role": actor.as_ref().map(|actor| actor.role),
    } });
    let found = Arc::clone(&earlier);
    let decide = move |situation: &Situation<'_>| {
        for bytes in situation.facts.iter().flatten() {
            match persisted::from_bytes::<End>("an ended credential", bytes) {
                Ok(end) if end.revocation.is_none() => {}
                // One that cannot be read is not written over either.
                end => {
                    *found.lock().unwrap_or_else(PoisonError::into_inner) = end.ok();
                    return Err(NoRecord::Nothing);
                }
            }
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
        let details = details.clone();
        let entry = Entry {
            comment: comment.as_ref().map(|document| document.digest.clone()),
            ..Entry::new(EntryType::CredentialRevoked, situation.index, situation.now, by.as_ref(), details)
        };
        let facts = std::iter::once(kept::ended(&id, &end)).chain(forgotten.iter().cloned()).collect();
        Ok(Record { entry, documents: comment.iter().cloned().collect(), standing: None, answer, facts })
    };
    let write = Write::new(Subject::Ledger, key, decide).reading([kept::ended_name(&known.id)]);
    let outcome = store.settle(write).await?;
    let kept_outside = kept_outside.map_err(RevokeError::Outside);
    let unreadable = || RevokeError::Failed("a stored answer cannot be read".into());
    match outcome {
        Outcome::Recorded { answer, .. } | Outcome::Repeated { answer } => {
            let answer = StoredAnswer::from_bytes(answer).ok_or_else(unreadable)?;
            let revocation =
                serde_json::from_slice(&answer.body).map_err(|error| RevokeError::Failed(error.to_string()))?;
            let (fingerprint, revocation) = (known.fingerprint.clone(), Some(revocation));
            kept.forget(&surplus);
            kept.ended.insert(known.id.clone(), End { how: Ended::Revoked, fingerprint, forget_at, revocation });
            kept_outside.map(|()| answer)
        }
        Outcome::KeyReused => Err(RevokeError::KeyReused),
        // Once is enough: whoever asks again learns what was done.
        Outcome::Nothing => {
            let end = earlier.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or_else(unreadable)?;
            let told = StoredAnswer::showing(room(), Made::Created, None, None, &end.revocation);
            kept.ended.insert(known.id.clone(), end);
            kept_outside?;
            StoredAnswer::from_bytes(told).ok_or_else(unreadable)
        }
        other => Err(RevokeError::Failed(format!("a revocation failed: {other:?}"))),
    }
}
