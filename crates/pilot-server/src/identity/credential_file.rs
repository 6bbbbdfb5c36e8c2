//! Bearer tokens, compared by SHA3-256 digest with the credential file as it was when the service started.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use pilot_core::actor::{Actor, ActorId};
use pilot_core::bearer::{Presented, presented};
use pilot_core::credentials::Credentials;
use pilot_core::digest::Digest;
use pilot_core::leak::LeakGuard;
use pilot_core::role_map::RoleMap;
use pilot_core::time::Time;

use super::Unknown;
use crate::access::Caller;
use crate::api::actors::ActorView;
use crate::clock::Clock;

pub struct CredentialFile {
    credentials: Credentials,
    role_map: Option<RoleMap>,
    /// When each credential was last used, in microseconds since 1970; before the first use, never.
    seen: Vec<AtomicI64>,
    guard: Arc<LeakGuard>,
    clock: Clock,
}

const NEVER: i64 = i64::MIN;

impl CredentialFile {
    pub fn new(
        credentials: Credentials,
        role_map: Option<RoleMap>,
        guard: Arc<LeakGuard>,
        clock: Clock,
    ) -> CredentialFile {
        let seen = credentials.entries().iter().map(|_| AtomicI64::new(NEVER)).collect();
        CredentialFile { credentials, role_map, seen, guard, clock }
    }

    pub fn actors(&self) -> Vec<ActorView> {
        let mut actors: BTreeMap<&ActorId, ActorView> = BTreeMap::new();
        for (credential, seen) in self.credentials.entries().iter().zip(&self.seen) {
            let Actor { actor_id, role } = &credential.actor;
            let view = actors.entry(actor_id).or_insert_with(|| ActorView {
                actor_id: actor_id.clone(),
                role: *role,
                kind: self.role_map.as_ref().and_then(|map| map.kind_of(actor_id)).unwrap_or_default(),
                credentials: 0,
                last_seen: None,
            });
            let seen = Some(seen.load(Ordering::Relaxed)).filter(|micros| *micros != NEVER);
            view.credentials += 1;
            view.last_seen = view.last_seen.max(seen.map(Time::from_unix_micros));
        }
        actors.into_values().collect()
    }

    pub fn identify(&self, headers: &HeaderMap) -> Result<Caller, Unknown> {
        let lines = headers.get_all(AUTHORIZATION).iter().map(HeaderValue::as_bytes);
        let token = match presented(lines) {
            Presented::Nothing => return Err(Unknown::Missing),
            Presented::Malformed => return Err(Unknown::Malformed),
            Presented::Token(token) => token,
        };
        let digest = Digest::of(token);
        let (index, credential) = self.credentials.find(&digest).ok_or(Unknown::Unrecognised)?;
        // The guard learns each token once, the first time it is used.
        if let Some(seen) = self.seen.get(index)
            && seen.swap(self.clock.now().unix_micros(), Ordering::Relaxed) == NEVER
        {
            self.guard.remember(token, digest);
        }
        Ok(Caller { actor: credential.actor.clone() })
    }
}
