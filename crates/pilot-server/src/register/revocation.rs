//! Ending a credential at once: by a security_admin, or by the service that saw its token where none may be.

use std::sync::Arc;

use pilot_core::actor::Actor;
use pilot_core::credentials::CredentialId;
use pilot_core::document::Document;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::refusal::Refusal;
use pilot_core::time::Time;
use pilot_store::{Key, Outcome, Record, Situation, Subject, Write};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{End, Ended, Event, FACT, Register};
use crate::app::App;
use crate::identity::KnownCredential;
use crate::ledger::{StoredAnswer, room};
use crate::problem::Problem;

/// What is answered, and kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocation {
    pub credential_id: CredentialId,
    /// Whose it was, where that is known.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
    pub revoked_at: Time,
    /// Nobody, when the service did it by itself.
    pub revoked_by: Option<Actor>,
    pub entry: u64,
}

/// A security_admin wants it so, and may have said why.
pub struct Wish {
    pub by: Actor,
    pub comment: Option<Document>,
    pub key: Option<Key>,
}

/// Why the service revokes a credential by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Automatic {
    TokenInUrl,
    /// Someone else wrote it into what everyone was to read.
    TokenInContent,
    /// Its issuer says so.
    RevocationList,
    /// It was revoked before, and the ledger has lost that.
    CarriedOver,
}

enum Cause {
    Asked(Wish),
    Automatic(Automatic),
}

/// Ends a credential. It counts no longer from the first line of this on, even when the ledger cannot be written: then
/// the caller is told to ask again.
pub async fn revoke(app: &Arc<App>, known: &KnownCredential, wish: Wish) -> Result<StoredAnswer, Problem> {
    app.register.end(&known.id, Ended::Revoked);
    let (app, known) = (Arc::clone(app), known.clone());
    // On its own: a caller who goes away in the middle must not leave the register and the ledger at odds.
    let written = tokio::spawn(async move { write(&app, &known, Cause::Asked(wish)).await });
    written.await.unwrap_or_else(|error| Err(Problem::internal(&error)))
}

/// Ends a credential at once, and has that written down as soon as it can be.
pub fn revoke_by_itself(register: &Register, known: KnownCredential, why: Automatic) {
    if register.end(&known.id, Ended::Revoked) {
        register.push(Event::Revoked(known, why));
    }
}

pub(super) async fn write_by_itself(app: &App, known: &KnownCredential, why: Automatic) -> Result<(), String> {
    let written = write(app, known, Cause::Automatic(why)).await;
    written.map(drop).map_err(|problem| problem.cause.unwrap_or_default())
}

async fn write(app: &App, known: &KnownCredential, cause: Cause) -> Result<StoredAnswer, Problem> {
    let register = &app.register;
    let mut kept = register.kept.lock().await;
    kept.tidy(app.clock.now());
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
        let answer = StoredAnswer::showing(room(), 201, None, None, &revocation);
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
    let outcome = app.store.settle(Write::new(Subject::Ledger, key, decide)).await?;
    let kept_outside = kept_outside.map_err(|error| {
        let detail = "The credential is no longer accepted, but the file that keeps revocations outside the ledger \
                      cannot be written. Retry, with the same Idempotency-Key if you sent one.";
        Problem::unavailable(detail, &error)
    });
    let unreadable = || Problem::internal(&"a stored answer cannot be read");
    match (outcome, earlier) {
        (Outcome::Recorded { answer, .. } | Outcome::Repeated { answer }, _) => {
            let answer = StoredAnswer::from_bytes(answer).ok_or_else(unreadable)?;
            let revocation = serde_json::from_slice(&answer.body).map_err(|error| Problem::internal(&error))?;
            let (fingerprint, revocation) = (known.fingerprint.clone(), Some(revocation));
            kept.ended.insert(known.id.clone(), End { how: Ended::Revoked, fingerprint, forget_at, revocation });
            kept_outside.map(|()| answer)
        }
        (Outcome::KeyReused, _) => Err(Problem::key_reused()),
        // Once is enough: whoever asks again learns what was done.
        (Outcome::Refused(_), Some(earlier)) => {
            kept_outside?;
            StoredAnswer::from_bytes(StoredAnswer::showing(room(), 201, None, None, &earlier)).ok_or_else(unreadable)
        }
        (other, _) => Err(Problem::internal(&format!("a revocation failed: {other:?}"))),
    }
}
