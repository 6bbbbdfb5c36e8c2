//! Bearer tokens, compared by SHA3-256 digest with the credential file as it was when the service started.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use pilot_api::access::ActorView;
use pilot_api::access::{CredentialView, State};
use pilot_core::actor::{Actor, ActorId};
use pilot_core::bearer::{Presented, presented};
use pilot_core::credentials::{Credential, CredentialId, Credentials};
use pilot_core::digest::Digest;
use pilot_core::leak::LeakGuard;
use pilot_core::role_map::RoleMap;
use pilot_core::time::Time;
use pilot_ledger::clock::Clock;
use pilot_ledger::register::{Ended, KnownCredential, NamedCredential, Register, ShownCredential};

use super::denial::{Denial, Unknown};
use crate::caller::{Caller, session_of};

pub struct CredentialFile {
    credentials: Credentials,
    places: Vec<Place>,
    role_map: Option<RoleMap>,
    guard: Arc<LeakGuard>,
    register: Arc<Register>,
    clock: Clock,
}

/// What is stored about each credential, at its position in the file.
struct Place {
    /// When it was last used, in microseconds since 1970, or `NEVER`.
    seen: AtomicI64,
    shown: Arc<ShownCredential>,
    named: NamedCredential,
    session: Bytes,
}

const NEVER: i64 = i64::MIN;

impl CredentialFile {
    pub fn new(
        credentials: Credentials,
        role_map: Option<RoleMap>,
        guard: Arc<LeakGuard>,
        register: Arc<Register>,
        clock: Clock,
    ) -> CredentialFile {
        let place = |credential: &Credential| Place {
            seen: AtomicI64::new(NEVER),
            shown: Arc::new(ShownCredential::new(credential.id.clone(), credential.expires_at)),
            named: credential.into(),
            session: session_of(&credential.actor),
        };
        let places = credentials.entries().iter().map(place).collect();
        CredentialFile { credentials, places, role_map, guard, register, clock }
    }

    pub fn actors(&self) -> Vec<ActorView> {
        let mut actors: BTreeMap<&ActorId, ActorView> = BTreeMap::new();
        for (credential, place) in self.credentials.entries().iter().zip(&self.places) {
            let Actor { actor_id, role, operated_by } = &credential.actor;
            let view = actors.entry(actor_id).or_insert_with(|| ActorView {
                actor_id: actor_id.clone(),
                role: *role,
                kind: self.role_map.as_ref().and_then(|map| map.kind_of(actor_id)).unwrap_or_default(),
                operated_by: operated_by.clone(),
                credentials: 0,
                last_seen: None,
            });
            view.credentials += 1;
            view.last_seen = view.last_seen.max(place.last_seen());
        }
        actors.into_values().collect()
    }

    pub fn role_map(&self) -> Option<&RoleMap> {
        self.role_map.as_ref()
    }

    pub fn credentials(&self) -> Vec<CredentialView> {
        let now = self.clock.now();
        let view = |(credential, place): (&Credential, &Place)| CredentialView {
            credential_id: credential.id.clone(),
            actor_id: Some(credential.actor.actor_id.clone()),
            role: Some(credential.actor.role),
            not_before: credential.not_before,
            expires_at: credential.expires_at,
            state: match self.counts(credential, now) {
                Ok(()) => State::Live,
                // Not valid until an operator says so.
                Err(Unknown::NotYet | Unknown::Doubted) => State::NotYet,
                Err(Unknown::Expired) => State::Expired,
                Err(_) => State::Revoked,
            },
            last_seen: place.last_seen(),
        };
        self.credentials.entries().iter().zip(&self.places).map(view).collect()
    }

    pub fn credential(&self, id: &CredentialId) -> Option<KnownCredential> {
        let found = self.credentials.entries().iter().find(|credential| credential.id == *id)?;
        Some(KnownCredential {
            id: id.clone(),
            actor: Some(found.actor.clone()),
            fingerprint: Some(found.digest.fingerprint().into()),
            forget_at: None,
        })
    }

    pub fn identify(&self, headers: &HeaderMap) -> Result<Caller, Denial> {
        let lines = headers.get_all(AUTHORIZATION).iter().map(HeaderValue::as_bytes);
        let token = match presented(lines) {
            Presented::Nothing => return Err(Unknown::Missing.into()),
            Presented::Malformed => return Err(Unknown::Malformed.into()),
            Presented::Token(token) => token,
        };
        let digest = Digest::of(token);
        let found = self.credentials.find(&digest);
        let found = found.and_then(|(index, credential)| Some((self.places.get(index)?, credential)));
        let Some((place, credential)) = found else {
            self.register.note_stranger(|| digest.fingerprint());
            return Err(Unknown::Unrecognised.into());
        };
        let now = self.clock.now();
        self.counts(credential, now).map_err(|unknown| {
            // Its end is recorded before its refusal, even if nobody else has looked at the time yet.
            if unknown == Unknown::Expired {
                self.register.expire(&place.named);
            }
            if unknown != Unknown::NotYet {
                self.register.note_refusal(&place.named, unknown.as_str());
            }
            Denial::of(unknown, &credential.id)
        })?;
        // The guard learns each token once, the first time it is used.
        if place.seen.swap(now.unix_micros(), Ordering::Relaxed) == NEVER {
            self.guard.remember(token, digest);
            self.register.note_use(&place.named);
        }
        Ok(Caller {
            actor: credential.actor.clone(),
            credential: Arc::clone(&place.shown),
            client: None,
            session: Some(place.session.clone()),
            origin: None,
        })
    }

    fn counts(&self, credential: &Credential, now: Time) -> Result<(), Unknown> {
        match self.register.end_of(&credential.id) {
            Some(Ended::Revoked) => Err(Unknown::Revoked),
            Some(Ended::Expired) => Err(Unknown::Expired),
            None if credential.expires_at.is_some_and(|expires_at| expires_at <= now) => Err(Unknown::Expired),
            None if credential.not_before.is_some_and(|not_before| now < not_before) => Err(Unknown::NotYet),
            None if self.register.is_doubted(&credential.id, credential.not_before) => Err(Unknown::Doubted),
            None => Ok(()),
        }
    }
}

impl Place {
    fn last_seen(&self) -> Option<Time> {
        let micros = Some(self.seen.load(Ordering::Relaxed)).filter(|micros| *micros != NEVER);
        micros.map(Time::from_unix_micros)
    }
}
