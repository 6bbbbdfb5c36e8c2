//! Ends a credential immediately: by a security_admin, or by the service when it sees the token where none may be.

use std::sync::{Arc, Mutex, PoisonError};

use pilot_core::actor::Actor;
use pilot_core::document::Document;
use pilot_core::entry::Entry;
use pilot_core::entry::details::{Details, Named, RevokedCredential};
use pilot_core::time::Time;
use pilot_store::{Fact, Key, NoRecord, Outcome, Record, Situation, Store, StoreError, Subject, Write};

use super::ended::{End, Ended, Revocation};
use super::event::{Automatic, Event};
use super::kept::{self, FORGOTTEN_MAX};
use super::names::KnownCredential;
use super::state::Register;
use crate::persisted;
use crate::repeated::{KeptAnswer, Repeated, recall};

/// A security_admin's request, with an optional reason.
pub struct Wish {
    pub by: Actor,
    pub comment: Option<Document>,
    pub key: Option<Key>,
}

/// Why a revocation is not acknowledged. The credential is no longer valid all the same.
#[derive(Debug, thiserror::Error)]
pub enum RevokeError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file that keeps revocations outside the ledger cannot be written.
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

/// Ends a credential. It stops being valid with the first line of this function, even if the ledger cannot be written;
/// then the caller is told to ask again.
pub async fn revoke(
    register: &Arc<Register>,
    store: &Arc<dyn Store>,
    known: &KnownCredential,
    wish: Wish,
    now: Time,
) -> Result<Revocation, RevokeError> {
    register.end(&known.id, Ended::Revoked);
    let (register, store, known) = (Arc::clone(register), Arc::clone(store), known.clone());
    // In its own task: a caller who goes away halfway must not leave the register and the ledger inconsistent.
    let written = tokio::spawn(async move {
        let revocation = write(&register, &*store, &known, Cause::Asked(wish), now).await?;
        // Answered when no node lets the credential in any more.
        store.applied_everywhere(revocation.entry + 1).await?;
        Ok(revocation)
    });
    written.await.unwrap_or_else(|error| Err(RevokeError::Failed(error.to_string())))
}

/// Ends a credential immediately, and has it recorded as soon as possible.
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
) -> Result<Revocation, RevokeError> {
    let mut kept = register.kept.lock().await;
    let surplus = kept.surplus(now, FORGOTTEN_MAX, &kept::ended_name(&known.id));
    // A refusal for another reason, before this, does not mean that it was refused after this.
    let refused = known.fingerprint.as_ref().map(|it| Fact { name: kept::refused_name(it), value: None });
    let forgotten: Vec<_> = surplus.facts().into_iter().chain(refused).collect();
    // What the ledger already has, perhaps from a write whose outcome never arrived.
    let earlier = Arc::new(Mutex::new(None::<End>));
    let (by, comment, key, why) = match cause {
        Cause::Asked(Wish { by, comment, key }) => (Some(by), comment, key, "asked"),
        Cause::Automatic(Automatic::TokenInUrl) => (None, None, None, "token_in_url"),
        Cause::Automatic(Automatic::TokenInContent) => (None, None, None, "token_in_content"),
        Cause::Automatic(Automatic::RevocationList) => (None, None, None, "revocation_list"),
        Cause::Automatic(Automatic::CarriedOver) => (None, None, None, "carried_over"),
    };
    let (id, fingerprint) = (known.id.clone(), known.fingerprint.clone());
    let forget_at = known.forget_at;
    let end = End { how: Ended::Revoked, fingerprint: fingerprint.clone(), forget_at, revocation: None };
    // Before the ledger: whatever happens there, no restore brings the credential back.
    let kept_outside = register.keep_outside(&known.id, &end).await;
    let (actor_id, role) = known.actor.clone().map(|actor| (actor.actor_id, actor.role)).unzip();
    let credential = Named { actor_id, role, credential_id: Some(id.clone()), fingerprint, expires_at: None };
    let details = Details::CredentialRevoked(RevokedCredential { cause: why.to_owned(), credential });
    let (found, unrecorded) = (Arc::clone(&earlier), end.clone());
    let decide = move |situation: &Situation<'_>| {
        for bytes in situation.facts.iter().flatten() {
            match persisted::from_bytes::<End>("an ended credential", bytes) {
                Ok(end) if end.revocation.is_none() => {}
                // A value that cannot be read is not overwritten either.
                end => {
                    *found.lock().unwrap_or_else(PoisonError::into_inner) = end.ok();
                    return Err(NoRecord::Nothing);
                }
            }
        }
        let entry = Entry {
            comment: comment.as_ref().map(|document| document.digest.clone()),
            ..Entry::of_service(situation.index, situation.now, by.as_ref(), &details)
        };
        let end = End { revocation: Revocation::of_entry(&entry), ..unrecorded.clone() };
        let facts = std::iter::once(kept::ended(&id, &end)).chain(forgotten.iter().cloned()).collect();
        Ok(Record { documents: comment.iter().cloned().collect(), facts, ..Record::of(entry) })
    };
    let write = Write::new(Subject::Ledger, key, decide).reading([kept::ended_name(&known.id)]);
    let outcome = store.settle(write).await?;
    let kept_outside = kept_outside.map_err(RevokeError::Outside);
    let unreadable = || RevokeError::Failed("a stored revocation cannot be read".into());
    let done = |revocation| End { revocation: Some(revocation), ..end };
    let end = match outcome {
        Outcome::Recorded { entry, .. } => {
            kept.forget(&surplus);
            if let Some(fingerprint) = &known.fingerprint {
                kept.refused.remove(fingerprint);
            }
            Revocation::of_entry(&entry).map(done)
        }
        Outcome::Repeated(remembered) => match recall(store, remembered).await? {
            Some(Repeated::Entry(entry)) => {
                Revocation::of_entry(&entry).filter(|revocation| revocation.credential_id == known.id).map(done)
            }
            Some(Repeated::Answer(KeptAnswer { body, .. })) => serde_json::from_slice(&body).ok().map(done),
            None => None,
        },
        Outcome::KeyReused => return Err(RevokeError::KeyReused),
        // Once is enough: anyone who asks again gets the first answer.
        Outcome::Nothing => earlier.lock().unwrap_or_else(PoisonError::into_inner).take(),
        other => return Err(RevokeError::Failed(format!("a revocation failed: {other:?}"))),
    };
    let end = end.ok_or_else(unreadable)?;
    let revocation = end.revocation.clone().ok_or_else(unreadable)?;
    kept.ended.insert(known.id.clone(), end);
    kept_outside.map(|()| revocation)
}
