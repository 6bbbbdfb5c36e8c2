//! Bearer tokens, compared by SHA3-256 digest with the credential file as it was when the service started.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use pilot_core::bearer::{Presented, presented};
use pilot_core::credentials::Credentials;
use pilot_core::digest::Digest;
use pilot_core::leak::LeakGuard;

use super::Unknown;
use crate::access::Caller;

pub struct CredentialFile {
    credentials: Credentials,
    /// Whether the guard knows the fingerprint of this credential's token already.
    used: Vec<AtomicBool>,
    guard: Arc<LeakGuard>,
}

impl CredentialFile {
    pub fn new(credentials: Credentials, guard: Arc<LeakGuard>) -> CredentialFile {
        let used = credentials.entries().iter().map(|_| AtomicBool::new(false)).collect();
        CredentialFile { credentials, used, guard }
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
        if let Some(used) = self.used.get(index)
            && !used.load(Ordering::Relaxed)
            && !used.swap(true, Ordering::Relaxed)
        {
            self.guard.remember(token, digest);
        }
        Ok(Caller { actor: credential.actor.clone() })
    }
}
