//! Whose client certificates count: the issuers in `client_ca`, and what their revocation lists say. New files are
//! checked before they replace the ones in force: a mistake must neither lock everyone out nor let in again what was
//! revoked.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pilot_core::role_map::RoleMap;
use pilot_core::time::Time;
use pilot_ledger::clock::Clock;
use pilot_setup::config;
use pilot_setup::error::with_cause;
use pilot_wire::exposition::{Exposition, Kind};
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use tokio::sync::watch;

use crate::pem::{self, PemError};
use crate::watched::{LOOK, Watched};

mod issuer;
mod revocation;
mod signature;

use issuer::Issuer;
use revocation::RevocationList;

/// More issuers than any organisation has.
const AUTHORITIES_MAX: usize = 64;
/// An issuer's clock may be ahead of ours by this much.
const SKEW: Duration = Duration::from_hours(1);

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error(transparent)]
    File(#[from] PemError),
    #[error("{}: has more than {AUTHORITIES_MAX} issuers; remove those whose certificates nobody uses", .0.display())]
    TooMany(PathBuf),
    #[error("{}: the revocation list of `{issuer}` is not signed with that issuer's key; fetch it again from the issuer", path.display())]
    Signature { path: PathBuf, issuer: String },
    #[error("{}: contains two revocation lists of `{issuer}`; keep only the newest", path.display())]
    Twice { path: PathBuf, issuer: String },
    #[error("{}: the revocation list of `{issuer}` is dated {at}, which is in the future; it is tried again until then", path.display())]
    Early { path: PathBuf, issuer: String, at: Time },
    #[error("{}: the revocation list of `{issuer}` was made at {at}, before the one in force; fetch a newer one", path.display())]
    Older { path: PathBuf, issuer: String, at: Time },
    #[error("{}: no longer contains a revocation list of `{issuer}`, so all certificates of this issuer would be refused; add the list, or remove the issuer from client_ca", path.display())]
    Gone { path: PathBuf, issuer: String },
    #[error("{}: two different issuers are called `{name}`, so the role map cannot tell them apart; remove one of them", path.display())]
    SameName { path: PathBuf, name: String },
    #[error("{}: has {count} issuers, and any of them could issue a certificate for {actors}; add \"issuer\" to each of these actors in the role map: {names}", path.display())]
    AnyIssuer { path: PathBuf, count: usize, actors: String, names: String },
}

/// Issuers and revocation lists as their files had them at one time.
pub struct Trust {
    /// Accepts what any of the authorities issued.
    pub handshake: Arc<dyn ClientCertVerifier>,
    pub authorities: Vec<Authority>,
    /// Grows with every change.
    pub generation: u64,
    /// One for each issuer, in the same order.
    anchors: Vec<TrustAnchor<'static>>,
    issuers: Vec<Issuer>,
    lists: Vec<RevocationList>,
}

/// An issuer, with those below it that are in `client_ca` too.
pub struct Authority {
    /// Its subject, as `openssl x509 -noout -subject -nameopt RFC2253,-esc_msb,utf8` prints it.
    pub name: String,
    /// The places of all of them among the issuers.
    places: Vec<usize>,
}

impl Trust {
    /// Reads the files. With a role map, certificates identify its actors, so it has to say who names whom.
    pub fn load(files: &config::ClientTrust, role_map: Option<&RoleMap>) -> Result<Trust, TrustError> {
        let path = &files.client_ca;
        let issuers = pem::certificates(path)?
            .into_iter()
            .map(|der| Issuer::read(der).ok_or_else(|| PemError::NotAnIssuer { path: path.clone() }))
            .collect::<Result<Vec<_>, _>>()?;
        let lists = match &files.crl {
            Some(path) => read_lists(path, &issuers)?,
            None => Vec::new(),
        };
        let (handshake, anchors) = verifier(files, &issuers, &lists)?;
        let mut authorities: Vec<(&Issuer, Vec<usize>)> = Vec::new();
        for (place, issuer) in issuers.iter().enumerate() {
            let top = issuer.top(&issuers);
            match authorities.iter_mut().find(|(known, _)| known.is_same_as(top)) {
                Some((_, places)) => places.push(place),
                None => authorities.push((top, vec![place])),
            }
        }
        if authorities.len() > AUTHORITIES_MAX {
            return Err(TrustError::TooMany(path.clone()));
        }
        let authority = |(top, places): (&Issuer, Vec<usize>)| Authority { name: top.name.clone(), places };
        let authorities: Vec<_> = authorities.into_iter().map(authority).collect();
        if let Some(role_map) = role_map {
            check_names(path, &authorities, role_map)?;
        }
        Ok(Trust { handshake, authorities, generation: 0, anchors, issuers, lists })
    }

    /// Which authority vouches for a certificate that the handshake verifier accepts. One more search for a path, however
    /// many authorities there are: with one for each, a chain made for it could keep us busy for seconds.
    pub fn authority_of(&self, chain: &[CertificateDer<'static>], at: UnixTime) -> Option<&Authority> {
        if let [only] = self.authorities.as_slice() {
            return Some(only);
        }
        let (leaf, others) = chain.split_first()?;
        let leaf = webpki::EndEntityCert::try_from(leaf).ok()?;
        let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms.all;
        let usage = webpki::KeyUsage::client_auth();
        let path = leaf.verify_for_usage(algorithms, &self.anchors, others, at, usage, None, None).ok()?;
        let place = self.anchors.iter().position(|anchor| anchor == path.anchor())?;
        self.authorities.iter().find(|authority| authority.places.contains(&place))
    }

    /// Whether this may replace the trust in force.
    fn check_after(&self, former: &Trust, crl: Option<&Path>, now: Time) -> Result<(), TrustError> {
        let Some(path) = crl else { return Ok(()) };
        for old in &former.lists {
            let (path, issuer) = (path.to_owned(), old.issuer_name.clone());
            let Some(new) = self.lists.iter().find(|new| new.is_of_the_same_part(old)) else {
                if self.issuers.iter().any(|known| known.subject == old.issuer) {
                    return Err(TrustError::Gone { path, issuer });
                }
                continue;
            };
            if new.this_update < old.this_update {
                return Err(TrustError::Older { path, issuer, at: new.this_update });
            }
        }
        let early = self.lists.iter().find(|list| list.this_update > now.plus(SKEW));
        early.map_or(Ok(()), |list| {
            let (path, issuer) = (path.to_owned(), list.issuer_name.clone());
            Err(TrustError::Early { path, issuer, at: list.this_update })
        })
    }

    /// Actors whom nobody can name, because their issuers are not there.
    fn nameless(&self, role_map: &RoleMap) -> Vec<String> {
        let is_known = |name: &String| self.authorities.iter().any(|authority| authority.name == *name);
        let is_nameless = |issuers: &[String]| !issuers.is_empty() && !issuers.iter().any(is_known);
        let lost = role_map.actors.iter().filter(|mapped| is_nameless(&mapped.issuers));
        lost.map(|mapped| {
            let (actor, issuers) = (&mapped.actor.actor_id, mapped.issuers.join("`, `"));
            format!("the role map says that `{issuers}` names {actor}, but client_ca has no such issuer, so {actor} is locked out")
        })
        .collect()
    }

    /// What works now, and someone should look at.
    pub fn warnings(&self, role_map: Option<&RoleMap>, now: Time) -> Vec<String> {
        let mut warnings = role_map.map_or_else(Vec::new, |role_map| self.nameless(role_map));
        for issuer in self.issuers.iter().filter(|issuer| issuer.not_after <= now) {
            let Issuer { name, not_after, .. } = issuer;
            warnings.push(format!(
                "the issuer `{name}` in client_ca expired at {not_after}; certificates that it issued still count until you remove it"
            ));
        }
        for list in self.lists.iter().filter(|list| list.is_overdue(now)) {
            let (name, at) = (&list.issuer_name, list.next_update.unwrap_or(now));
            warnings.push(format!(
                "the revocation list of `{name}` should have been replaced by {at}; it still counts, but what was revoked since is not known here"
            ));
        }
        for list in self.lists.iter().filter(|list| !list.is_verified) {
            let name = &list.issuer_name;
            warnings.push(format!(
                "the revocation list of `{name}` cannot be verified yet, because that issuer is not in client_ca; it is verified when a client presents the issuer's certificate"
            ));
        }
        if !self.lists.is_empty() {
            let is_listed = |issuer: &&Issuer| self.lists.iter().any(|list| list.issuer == issuer.subject);
            for Issuer { name, .. } in self.issuers.iter().filter(|issuer| !is_listed(issuer)) {
                warnings.push(format!(
                    "crl has no revocation list of `{name}`: certificates that it issued itself are refused"
                ));
            }
        }
        warnings
    }

    /// When the first of the issuers expires.
    fn expires(&self) -> Option<Time> {
        self.issuers.iter().map(|issuer| issuer.not_after).min()
    }

    /// When the first of the lists is overdue.
    fn next_update(&self) -> Option<Time> {
        self.lists.iter().filter_map(|list| list.next_update).min()
    }
}

fn read_lists(path: &Path, issuers: &[Issuer]) -> Result<Vec<RevocationList>, TrustError> {
    let mut lists = Vec::new();
    for der in pem::revocation_lists(path)? {
        let unreadable = || PemError::NoRevocationList { path: path.to_owned() };
        let mut list = RevocationList::read(der).ok_or_else(unreadable)?;
        let mut of_its_name = issuers.iter().filter(|issuer| issuer.subject == list.issuer).peekable();
        if of_its_name.peek().is_some() {
            if !of_its_name.any(|issuer| list.is_signed_by(issuer)) {
                return Err(TrustError::Signature { path: path.to_owned(), issuer: list.issuer_name });
            }
            list.is_verified = true;
        }
        // Only the first one would count, whichever is newer.
        if lists.iter().any(|other: &RevocationList| other.is_of_the_same_part(&list)) {
            return Err(TrustError::Twice { path: path.to_owned(), issuer: list.issuer_name });
        }
        lists.push(list);
    }
    Ok(lists)
}

/// Client certificates are requested if their issuer is known, and are optional here: the identity mechanism decides
/// whether one is needed, and health checks have none.
fn verifier(
    files: &config::ClientTrust,
    issuers: &[Issuer],
    lists: &[RevocationList],
) -> Result<(Arc<dyn ClientCertVerifier>, Vec<TrustAnchor<'static>>), PemError> {
    let (path, provider) = (&files.client_ca, Arc::new(aws_lc_rs::default_provider()));
    let mut roots = RootCertStore::empty();
    for issuer in issuers {
        roots.add(issuer.der.clone()).map_err(|error| PemError::unusable(path, error))?;
    }
    let anchors = roots.roots.clone();
    let mut verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .only_check_end_entity_revocation();
    if !lists.is_empty() {
        verifier = verifier.with_crls(lists.iter().map(|list| list.der.clone()));
    }
    let built = verifier.build().map_err(|error| PemError::unusable(files.crl.as_ref().unwrap_or(path), error))?;
    Ok((built, anchors))
}

/// With several authorities each actor needs an issuer: otherwise a partner's authority could name your security_admin.
fn check_names(path: &Path, authorities: &[Authority], role_map: &RoleMap) -> Result<(), TrustError> {
    for (index, Authority { name, .. }) in authorities.iter().enumerate() {
        if authorities.iter().skip(index + 1).any(|other| other.name == *name) {
            return Err(TrustError::SameName { path: path.to_owned(), name: name.clone() });
        }
    }
    let open: Vec<_> = role_map.actors.iter().filter(|mapped| mapped.issuers.is_empty()).collect();
    if authorities.len() < 2 || open.is_empty() {
        return Ok(());
    }
    let mut actors: Vec<_> = open.iter().take(5).map(|mapped| mapped.actor.actor_id.to_string()).collect();
    if open.len() > actors.len() {
        actors.push(format!("{} more", open.len() - actors.len()));
    }
    let names: Vec<_> = authorities.iter().map(|authority| format!("`{}`", authority.name)).collect();
    Err(TrustError::AnyIssuer {
        path: path.to_owned(),
        count: authorities.len(),
        actors: actors.join(", "),
        names: names.join(" or "),
    })
}

/// The trust in force. Replaced as a whole when its files are, if the new ones pass the checks.
pub struct ClientIssuers {
    files: config::ClientTrust,
    role_map: Option<RoleMap>,
    watched: Watched,
    current: watch::Sender<Arc<Trust>>,
    /// Replacements that were applied, and those that could not be used.
    reloads: [AtomicU64; 2],
    /// Each warning is logged once, until it no longer applies.
    warned: Mutex<Vec<String>>,
}

impl ClientIssuers {
    pub fn open(files: &config::ClientTrust, role_map: Option<RoleMap>) -> Result<ClientIssuers, TrustError> {
        // Taken before the files are read: a file replaced in between is then read again.
        let watched = Watched::new(files.paths());
        let trust = Arc::new(Trust::load(files, role_map.as_ref())?);
        let current = watch::Sender::new(trust);
        let (reloads, warned) = ([const { AtomicU64::new(0) }; 2], Mutex::default());
        Ok(ClientIssuers { files: files.clone(), role_map, watched, current, reloads, warned })
    }

    pub fn current(&self) -> Arc<Trust> {
        Arc::clone(&self.current.borrow())
    }

    pub fn changes(&self) -> watch::Receiver<Arc<Trust>> {
        self.current.subscribe()
    }

    /// Applies replaced files, and warns of what becomes too old. Runs as long as the service does.
    pub async fn follow(self: Arc<Self>, clock: Clock) {
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            looks.tick().await;
            let (issuers, now) = (Arc::clone(&self), clock.now());
            // The files may be on a disk that does not respond; requests must not wait for it.
            let _ = tokio::task::spawn_blocking(move || issuers.refresh(now)).await;
        }
    }

    fn refresh(&self, now: Time) {
        if self.watched.look() {
            let generation = self.current().generation + 1;
            let loaded = Trust::load(&self.files, self.role_map.as_ref()).and_then(|trust| {
                trust.check_after(&self.current(), self.files.crl.as_deref(), now)?;
                Ok(trust)
            });
            let [used, refused] = &self.reloads;
            match loaded {
                Ok(trust) => {
                    self.current.send_replace(Arc::new(Trust { generation, ..trust }));
                    used.fetch_add(1, Ordering::Relaxed);
                    self.watched.accept();
                    tracing::info!("client_ca and crl were reloaded");
                }
                Err(error) => {
                    refused.fetch_add(1, Ordering::Relaxed);
                    let cause = with_cause(&error);
                    if self.watched.refuse(&cause) {
                        tracing::warn!(
                            cause,
                            "the new client_ca or crl cannot be used; the previous ones stay in force"
                        );
                    }
                }
            }
        }
        self.warn(now);
    }

    /// Logs what someone should look at, once.
    pub fn warn(&self, now: Time) {
        let warnings = self.current().warnings(self.role_map.as_ref(), now);
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        for warning in warnings.iter().filter(|warning| !warned.contains(warning)) {
            tracing::warn!("{warning}");
        }
        *warned = warnings;
    }

    pub fn metrics(&self, text: &mut Exposition) {
        let name = "pilot_tls_client_trust_reloads_total";
        text.family(name, Kind::Counter, "Reloads of client_ca and crl, by whether the new files could be used.");
        for (outcome, count) in ["used", "refused"].iter().zip(&self.reloads) {
            text.sample(name, &[("outcome", outcome)], count.load(Ordering::Relaxed));
        }
        let (trust, seconds) = (self.current(), |at: Time| at.unix_micros() / 1_000_000);
        if let Some(at) = trust.expires() {
            let help = "When the first issuer in client_ca expires, in seconds since 1970.";
            text.gauge("pilot_tls_client_ca_expires_seconds", help, seconds(at));
        }
        if let Some(at) = trust.next_update() {
            let help = "When the first revocation list should be replaced, in seconds since 1970.";
            text.gauge("pilot_tls_crl_next_update_seconds", help, seconds(at));
        }
    }
}

#[cfg(test)]
mod tests;
