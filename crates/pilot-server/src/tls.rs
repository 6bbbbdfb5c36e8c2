//! TLS on the main listener. Certificate and key are reloaded when their files are replaced; existing connections keep
//! what they were opened with.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pilot_core::time::Time;
use pilot_ledger::clock::Clock;
use pilot_setup::config::TlsFiles;
use pilot_setup::error::with_cause;
use pilot_setup::private_file::{self, FileError, Others};
use pilot_wire::tls::Tls;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{InconsistentKeys, ServerConfig};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use crate::client_trust::{ClientIssuers, Trust};
use crate::metrics::Metrics;
use crate::pem::{PemError, certificates};
use crate::watched::{LOOK, Watched};

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error(transparent)]
    Pem(#[from] PemError),
    #[error("{}: contains no private key; it must be PEM (PKCS#8, PKCS#1 or SEC1) and not encrypted", path.display())]
    NoKey { path: PathBuf },
    #[error("{}: is not the key of the certificate in {}; use a matching pair", key.display(), certificate.display())]
    Mismatch { certificate: PathBuf, key: PathBuf },
    #[error("{}: the certificate expired at {at}", path.display())]
    Expired { path: PathBuf, at: Time },
    #[error("{}: the certificate is not valid before {at}, and is used from then on", path.display())]
    NotYet { path: PathBuf, at: Time },
}

/// A description of a certificate, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    pub names: Vec<String>,
    /// A certificate of an issuer: strict clients do not accept it for a service.
    pub is_issuer: bool,
    pub not_before: Time,
    pub not_after: Time,
}

/// A certificate and its key, which belong together.
pub struct Pair {
    certified: Arc<CertifiedKey>,
    pub certificate: Described,
    /// Set if others can read the key although they should not.
    pub exposed: Option<FileError>,
}

impl Pair {
    /// Reads both files, or says what is wrong with them.
    pub fn load(files: &TlsFiles, others: Others) -> Result<Pair, TlsError> {
        let chain = certificates(&files.certificate)?;
        let key_file = private_file::read(&files.key, others).map_err(PemError::from)?;
        let no_key = |_| TlsError::NoKey { path: files.key.clone() };
        let key = PrivateKeyDer::from_pem_slice(&key_file.bytes).map_err(no_key)?;
        let first = chain.first().ok_or_else(|| PemError::NoCertificate { path: files.certificate.clone() })?;
        let certificate = describe(first, &files.certificate)?;
        let certified = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider());
        let certified = certified.map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                TlsError::Mismatch { certificate: files.certificate.clone(), key: files.key.clone() }
            }
            other => PemError::unusable(&files.key, other).into(),
        })?;
        Ok(Pair { certified: Arc::new(certified), certificate, exposed: key_file.exposed })
    }

    /// Whether it may replace the one in force: one that clients refuse must not.
    fn check_dates(&self, path: &Path, now: Time) -> Result<(), TlsError> {
        let Described { not_before, not_after, .. } = self.certificate;
        let path = || path.to_owned();
        match () {
            () if not_after <= now => Err(TlsError::Expired { path: path(), at: not_after }),
            () if now < not_before => Err(TlsError::NotYet { path: path(), at: not_before }),
            () => Ok(()),
        }
    }

    /// Settings for handshakes with it.
    fn config(&self, clients: Option<&Trust>) -> Result<Arc<ServerConfig>, rustls::Error> {
        let verifier = match clients {
            Some(clients) => Arc::clone(&clients.handshake),
            None => WebPkiClientVerifier::no_client_auth(),
        };
        let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_safe_default_protocol_versions()?.with_client_cert_verifier(verifier);
        let single = SingleCertAndKey::from(Arc::clone(&self.certified));
        let mut config = builder.with_cert_resolver(Arc::new(single));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // Created again every time: a client whose certificate was revoked meanwhile cannot resume an old session.
        config.ticketer = aws_lc_rs::Ticketer::new()?;
        Ok(Arc::new(config))
    }
}

fn describe(certificate: &CertificateDer<'_>, path: &Path) -> Result<Described, TlsError> {
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|error| PemError::unusable(path, error))?;
    let alternatives = parsed.subject_alternative_name().ok().flatten();
    let names =
        alternatives.iter().flat_map(|extension| &extension.value.general_names).filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => address(bytes),
            _ => None,
        });
    let time = |seconds: i64| Time::from_unix_micros(seconds.saturating_mul(1_000_000));
    let validity = parsed.validity();
    Ok(Described {
        names: names.collect(),
        is_issuer: parsed.is_ca(),
        not_before: time(validity.not_before.timestamp()),
        not_after: time(validity.not_after.timestamp()),
    })
}

fn address(bytes: &[u8]) -> Option<String> {
    let v4 = <[u8; 4]>::try_from(bytes).map(|bytes| std::net::IpAddr::from(bytes).to_string());
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(|bytes| std::net::IpAddr::from(bytes).to_string())).ok()
}

/// The files of the certificate in use, and the settings for new connections. The settings are replaced when the files
/// are, and when other client certificates count.
pub struct CertificateFiles {
    files: TlsFiles,
    others: Others,
    clients: Option<Arc<ClientIssuers>>,
    tls: Arc<Tls>,
    watched: Watched,
    used: Mutex<Used>,
}

/// What the settings were made from.
struct Used {
    pair: Pair,
    clients: Option<Arc<Trust>>,
}

impl CertificateFiles {
    pub fn open(
        files: &TlsFiles,
        others: Others,
        clients: Option<Arc<ClientIssuers>>,
    ) -> Result<CertificateFiles, TlsError> {
        // Taken before the files are read: a file replaced in between is then read again.
        let watched = Watched::new([&files.certificate, &files.key].into_iter());
        let pair = Pair::load(files, others)?;
        let trust = clients.as_ref().map(|clients| clients.current());
        let config = pair.config(trust.as_deref()).map_err(|error| PemError::unusable(&files.certificate, error))?;
        let (tls, used) = (Arc::new(Tls::new(config)), Mutex::new(Used { pair, clients: trust }));
        Ok(CertificateFiles { files: files.clone(), others, clients, tls, watched, used })
    }

    /// For a listener.
    pub fn tls(&self) -> Arc<Tls> {
        Arc::clone(&self.tls)
    }

    pub fn not_after(&self) -> Time {
        self.used().pair.certificate.not_after
    }

    /// What works now, and someone should look at.
    pub fn warnings(&self, now: Time) -> Vec<String> {
        let used = self.used();
        let exposed = used.pair.exposed.as_ref().map(ToString::to_string);
        let path = self.files.certificate.display();
        let dates = match used.pair.check_dates(&self.files.certificate, now) {
            Err(TlsError::Expired { at, .. }) => {
                Some(format!("{path}: the certificate expired at {at}: clients will refuse it"))
            }
            Err(TlsError::NotYet { at, .. }) => {
                Some(format!("{path}: the certificate is not valid before {at}: clients will refuse it"))
            }
            _ => None,
        };
        exposed.into_iter().chain(dates).collect()
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs as long as the service does.
    pub async fn follow(self: Arc<Self>, metrics: Arc<Metrics>, clock: Clock) {
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            looks.tick().await;
            let (certificate, metrics, now) = (Arc::clone(&self), Arc::clone(&metrics), clock.now());
            // The files may be on a disk that does not respond; requests must not wait for it.
            let _ = tokio::task::spawn_blocking(move || certificate.refresh(&metrics, now)).await;
        }
    }

    fn refresh(&self, metrics: &Metrics, now: Time) {
        let mut used = self.used();
        let is_renewed = self.watched.look() && self.renew(&mut used, metrics, now);
        let clients = self.clients.as_ref().map(|clients| clients.current());
        let trusts_others = clients.as_ref().map(Arc::as_ptr) != used.clients.as_ref().map(Arc::as_ptr);
        if !is_renewed && !trusts_others {
            return;
        }
        match used.pair.config(clients.as_deref()) {
            Ok(config) => {
                self.tls.replace(config);
                used.clients = clients;
            }
            Err(error) => {
                let cause = with_cause(&error);
                tracing::error!(
                    cause,
                    "new connections still get the previous certificate and trust the previous issuers"
                );
            }
        }
    }

    /// Whether the files had a certificate that is better than the one in force.
    fn renew(&self, used: &mut Used, metrics: &Metrics, now: Time) -> bool {
        let loaded = Pair::load(&self.files, self.others);
        match loaded.and_then(|pair| pair.check_dates(&self.files.certificate, now).map(|()| pair)) {
            Ok(pair) => {
                let not_after = pair.certificate.not_after;
                used.pair = pair;
                self.watched.accept();
                metrics.certificate_loaded(not_after);
                metrics.certificate_reloaded(true);
                tracing::info!(%not_after, "the certificate was replaced; new connections get the new one");
                true
            }
            Err(error) => {
                metrics.certificate_reloaded(false);
                let cause = with_cause(&error);
                if self.watched.refuse(&cause) {
                    tracing::warn!(cause, "the new certificate cannot be used; the previous one stays in force");
                }
                false
            }
        }
    }
}
