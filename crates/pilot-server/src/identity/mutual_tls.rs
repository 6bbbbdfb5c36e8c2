//! Client certificates: a certificate names a subject, and the role map says which actor that is.
//!
//! The handshake, or the mesh, checked the certificate when the connection was opened. It is checked here again, with
//! the current time and revocation list: a connection may stay open for days.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use data_encoding::HEXLOWER;
use http::header::{HeaderMap, HeaderName};
use http::request::Parts;
use pilot_api::access::ActorView;
use pilot_api::access::{CredentialView, State};
use pilot_core::actor::Actor;
use pilot_core::credentials::CredentialId;
use pilot_core::limits::SUBJECT_CHARS_MAX;
use pilot_core::role_map::{MappedActor, RoleMap};
use pilot_core::time::Time;
use pilot_ledger::clock::Clock;
use pilot_ledger::register::{self, Automatic, Ended, KnownCredential, NamedCredential, Register, ShownCredential};
use pilot_setup::config;
use pilot_wire::peer::PeerCertificate;
use rustls::CertificateError;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use sha2::{Digest, Sha256};

use super::denial::{Denial, Unknown};
use crate::caller::Caller;
use crate::client_trust::{ClientIssuers, Trust};
use crate::edge::UnreadCertificate;

mod subject;

use subject::Subject;

/// No more certificates than this are in use at once; those of strangers are never kept.
const KEPT_MAX: usize = 16 * 1024;
/// With its own certificate. Longer chains occur only in attempts to keep us busy.
const CHAIN_MAX: usize = 9;
/// How many certificates are checked again before other tasks get a turn.
const AT_ONCE: usize = 32;
/// The prefix of a certificate's name; its SHA-256 follows.
const PREFIX: &str = "x509:";
const NAME_BYTES: usize = 16;
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

pub struct MutualTls {
    issuers: Arc<ClientIssuers>,
    trust_domain: Option<String>,
    role_map: RoleMap,
    known: Mutex<HashMap<CredentialId, Arc<Known>>>,
    register: Arc<Register>,
    clock: Clock,
}

/// A certificate that was accepted under the current trust.
struct Known {
    chain: Arc<[CertificateDer<'static>]>,
    actor: Actor,
    not_before: Time,
    shown: Arc<ShownCredential>,
    named: NamedCredential,
    seen: AtomicI64,
    /// The trust it was last judged by.
    generation: AtomicU64,
}

/// A browser presents the certificate no matter which page made it send the request, so a hostile page could act in its
/// owner's name. A header that no page can set says which site's page it was; other programs do not send it.
pub fn is_of_another_site(headers: &HeaderMap) -> bool {
    headers.get_all(SEC_FETCH_SITE).iter().any(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"))
}

/// Why there is no certificate; a mesh may have sent one that cannot be read.
fn missing(head: &Parts) -> Denial {
    match head.extensions.get::<UnreadCertificate>() {
        Some(unread @ UnreadCertificate::Unreadable { .. }) => Denial::because(Unknown::Malformed, &unread.to_string()),
        Some(unread @ UnreadCertificate::OtherFormat { .. }) => Denial::because(Unknown::Missing, &unread.to_string()),
        None => Denial::because(Unknown::Missing, "no client certificate was presented"),
    }
}

impl MutualTls {
    pub fn new(
        issuers: Arc<ClientIssuers>,
        settings: Option<&config::MutualTls>,
        role_map: RoleMap,
        register: Arc<Register>,
        clock: Clock,
    ) -> MutualTls {
        let trust_domain = settings.and_then(|settings| settings.trust_domain.clone());
        MutualTls { issuers, trust_domain, role_map, known: Mutex::default(), register, clock }
    }

    pub fn role_map(&self) -> &RoleMap {
        &self.role_map
    }

    pub fn actors(&self) -> Vec<ActorView> {
        let mut actors: BTreeMap<_, _> = BTreeMap::new();
        for mapped in &self.role_map.actors {
            let view = ActorView::of(mapped);
            actors.insert(view.actor_id.clone(), view);
        }
        for view in self.credentials().into_iter().filter(|view| view.state == State::Live) {
            if let Some(actor) = view.actor_id.and_then(|actor_id| actors.get_mut(&actor_id)) {
                actor.credentials += 1;
                actor.last_seen = actor.last_seen.max(view.last_seen);
            }
        }
        actors.into_values().collect()
    }

    /// Those that were shown, in this run or an earlier one, and have not ended; and those that ended in this run.
    pub fn credentials(&self) -> Vec<CredentialView> {
        let known = self.known();
        let mut named: BTreeMap<_, _> =
            self.register.expiring().into_iter().map(|named| (named.id().clone(), named)).collect();
        named.extend(known.iter().map(|(id, known)| (id.clone(), known.named.clone())));
        let view = |(id, named): (CredentialId, NamedCredential)| CredentialView {
            state: match self.register.end_of(&id) {
                Some(Ended::Revoked) => State::Revoked,
                Some(Ended::Expired) => State::Expired,
                None => State::Live,
            },
            not_before: known.get(&id).map(|known| known.not_before),
            last_seen: known.get(&id).map(|known| Time::from_unix_micros(known.seen.load(Ordering::Relaxed))),
            actor_id: Some(named.actor_id),
            role: Some(named.role),
            expires_at: named.expires_at,
            credential_id: id,
        };
        named.into_iter().map(view).collect()
    }

    /// Every name a certificate can have is accepted, even before that certificate is shown.
    pub fn credential(&self, id: &CredentialId) -> Option<KnownCredential> {
        let hash = id.as_str().strip_prefix(PREFIX)?;
        HEXLOWER.decode(hash.as_bytes()).ok().filter(|hash| hash.len() == NAME_BYTES)?;
        let listed = || self.register.expiring().into_iter().find(|named| named.id() == id);
        let named = self.known().get(id).map(|known| known.named.clone()).or_else(listed);
        let actor = named.as_ref().map(|named| Actor::new(named.actor_id.clone(), named.role));
        let forget_at = named.and_then(|named| named.expires_at);
        Some(KnownCredential { id: id.clone(), actor, fingerprint: Some(id.clone()), forget_at })
    }

    pub fn identify(&self, head: &Parts) -> Result<Caller, Denial> {
        let PeerCertificate(chain) = head.extensions.get().ok_or_else(|| missing(head))?;
        let leaf = chain.first().ok_or_else(|| missing(head))?;
        if chain.len() > CHAIN_MAX {
            let cause = format!("more than {CHAIN_MAX} certificates were presented");
            return Err(Denial::because(Unknown::Malformed, &cause));
        }
        let now = self.clock.now();
        let id = name_of(leaf);
        let known = self.known().get(&id).cloned();
        let known = match known {
            Some(known) => {
                let trust = self.issuers.current();
                if known.generation.load(Ordering::Acquire) != trust.generation {
                    self.review(&known, &trust).inspect_err(|denial| {
                        if matches!(denial.unknown, Unknown::Revoked | Unknown::Expired) {
                            self.register.note_refusal(&known.named, denial.unknown.as_str());
                        }
                    })?;
                }
                known
            }
            None => self.accept(id, chain, now)?,
        };
        match self.register.end_of(&known.shown.id) {
            Some(Ended::Revoked) => return Err(self.refuse(&known, Unknown::Revoked)),
            Some(Ended::Expired) => return Err(self.refuse(&known, Unknown::Expired)),
            None if known.shown.expires_at.is_some_and(|expires_at| expires_at <= now) => {
                self.register.expire(&known.named);
                return Err(self.refuse(&known, Unknown::Expired));
            }
            None if now < known.not_before => {
                return Err(Denial::of(Unknown::NotYet, &known.shown.id));
            }
            None if self.register.is_doubted(&known.shown.id, Some(known.not_before)) => {
                return Err(self.refuse(&known, Unknown::Doubted));
            }
            None => {}
        }
        self.register.note_use(&known.named);
        known.seen.store(now.unix_micros(), Ordering::Relaxed);
        Ok(Caller {
            actor: known.actor.clone(),
            credential: Arc::clone(&known.shown),
            client: None,
            session: None,
            origin: None,
        })
    }

    fn refuse(&self, known: &Known, unknown: Unknown) -> Denial {
        self.register.note_refusal(&known.named, unknown.as_str());
        Denial::of(unknown, &known.shown.id)
    }

    /// Judges a certificate that was not shown before, or not since the trust changed.
    fn accept(
        &self,
        id: CredentialId,
        chain: &Arc<[CertificateDer<'static>]>,
        now: Time,
    ) -> Result<Arc<Known>, Denial> {
        loop {
            let trust = self.issuers.current();
            let (subject, mapped) = self.judge(&trust, chain, now)?;
            let Actor { actor_id, role, operated_by: _ } = mapped.actor.clone();
            let expires_at = Some(subject.not_after);
            let named = NamedCredential { actor_id, credential_id: None, expires_at, fingerprint: id.clone(), role };
            let known = Arc::new(Known {
                chain: Arc::clone(chain),
                actor: mapped.actor.clone(),
                not_before: subject.not_before,
                shown: Arc::new(ShownCredential::new(id.clone(), expires_at)),
                named,
                seen: AtomicI64::new(now.unix_micros()),
                generation: AtomicU64::new(trust.generation),
            });
            let mut all = self.known();
            // The trust may have changed while the certificate was judged, and this one may have been missed when the
            // kept ones were checked.
            if !Arc::ptr_eq(&trust, &self.issuers.current()) {
                continue;
            }
            self.register.watch(&known.named);
            if all.len() >= KEPT_MAX {
                all.retain(|_, known| known.shown.expires_at.is_some_and(|expires_at| now < expires_at));
            }
            // Beyond that it is judged again whenever it is shown: slower, but never wrong.
            if all.len() < KEPT_MAX {
                all.insert(id, Arc::clone(&known));
            }
            return Ok(known);
        }
    }

    /// Whom the certificate names, if an issuer vouches for it who may name that actor.
    fn judge(
        &self,
        trust: &Trust,
        chain: &[CertificateDer<'static>],
        now: Time,
    ) -> Result<(Subject, &MappedActor), Denial> {
        let leaf = chain.first().ok_or(Unknown::Missing)?;
        verify(&*trust.handshake, chain, now)?;
        let unrecognised = |cause: &str| Denial::because(Unknown::Unrecognised, cause);
        let subject = subject::read(leaf, self.trust_domain.as_deref()).map_err(unrecognised)?;
        let authority = trust.authority_of(chain, unix(now));
        let mapped = authority.and_then(|authority| self.role_map.actor_named(&subject.name, &authority.name));
        let Some(mapped) = mapped else {
            let name = bounded(&subject.name);
            return Err(unrecognised(&format!(
                "the role map has no actor with the subject `{name}`, or another issuer names that actor"
            )));
        };
        Ok((subject, mapped))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<CredentialId, Arc<Known>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies replaced issuers and revocation lists, also to callers who send nothing: their feeds end. Runs as long as
    /// the service does.
    pub async fn follow(&self) {
        let mut changes = self.issuers.changes();
        while changes.changed().await.is_ok() {
            let trust = Arc::clone(&changes.borrow_and_update());
            let all: Vec<_> = self.known().values().cloned().collect();
            for some in all.chunks(AT_ONCE) {
                for known in some {
                    let _ = self.review(known, &trust);
                }
                tokio::task::yield_now().await;
            }
        }
    }

    /// Judges a certificate by a trust that it was not accepted under. A caller who is no longer accepted is shut out, open
    /// feeds included.
    fn review(&self, known: &Known, trust: &Trust) -> Result<(), Denial> {
        let (id, actor_id) = (&known.shown.id, &known.actor.actor_id);
        let is_judged = || known.generation.store(trust.generation, Ordering::Release);
        // What has ended is refused by the register, whatever the trust.
        if self.register.end_of(id).is_some() {
            is_judged();
            return Ok(());
        }
        let denial = match self.judge(trust, &known.chain, self.clock.now()) {
            Ok((_, mapped)) if mapped.actor == known.actor => {
                is_judged();
                return Ok(());
            }
            Ok(_) => Denial::because(Unknown::Unrecognised, "another issuer names another actor"),
            Err(denial) => denial,
        };
        let cause = &denial.cause;
        tracing::warn!(credential_id = %id, actor_id = %actor_id, cause, "a certificate of `{actor_id}` is no longer accepted");
        match denial.unknown {
            Unknown::Revoked => {
                let actor = Some(known.actor.clone());
                let forget_at = known.shown.expires_at;
                let revoked = KnownCredential { id: id.clone(), actor, fingerprint: Some(id.clone()), forget_at };
                register::revoke_by_itself(&self.register, revoked, Automatic::RevocationList);
            }
            Unknown::Expired => self.register.expire(&known.named),
            // Another issuer, perhaps by mistake: when it is restored, so are the certificates it issued.
            _ => {
                self.known().remove(id);
                self.register.withdraw(&known.shown);
            }
        }
        Err(denial)
    }
}

fn verify(verifier: &dyn ClientCertVerifier, chain: &[CertificateDer<'static>], now: Time) -> Result<(), Denial> {
    let (leaf, others) = chain.split_first().ok_or(Unknown::Missing)?;
    verifier.verify_client_cert(leaf, others, unix(now)).map(drop).map_err(|error| {
        let unknown = match &error {
            rustls::Error::InvalidCertificate(CertificateError::Revoked) => Unknown::Revoked,
            rustls::Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
                Unknown::Expired
            }
            rustls::Error::InvalidCertificate(
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
            ) => Unknown::NotYet,
            _ => Unknown::Unrecognised,
        };
        Denial::because(unknown, &error.to_string())
    })
}

fn unix(now: Time) -> UnixTime {
    let seconds = u64::try_from(now.unix_micros() / 1_000_000).unwrap_or(0);
    UnixTime::since_unix_epoch(Duration::from_secs(seconds))
}

/// A subject can be as long as its owner likes; a log line cannot.
fn bounded(name: &str) -> &str {
    name.char_indices().nth(SUBJECT_CHARS_MAX).and_then(|(end, _)| name.get(..end)).unwrap_or(name)
}

fn name_of(certificate: &CertificateDer<'_>) -> CredentialId {
    let hash: [u8; 32] = Sha256::digest(certificate).into();
    let short = hash.first_chunk::<NAME_BYTES>().map(|short| HEXLOWER.encode(short)).unwrap_or_default();
    // Letters, digits and a colon: always a valid id.
    format!("{PREFIX}{short}")
        .parse()
        .unwrap_or_else(|_| CredentialId::from(pilot_core::digest::Digest::of(certificate).fingerprint()))
}
