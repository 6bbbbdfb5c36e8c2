//! TLS on the main listener. Certificate and key are reloaded when their files are replaced; existing connections keep
//! what they were opened with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilot_core::time::Time;
use pilot_setup::config::{ClientTrust, TlsFiles};
use pilot_setup::error::with_cause;
use pilot_setup::private_file::{self, FileError, Others};
use pilot_wire::tls::Tls;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, RootCertStore, ServerConfig};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use crate::metrics::Metrics;
use crate::watched::{LOOK, Watched};

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{}: contains no certificate; it must be PEM, with the service's own certificate first", path.display())]
    NoCertificate { path: PathBuf },
    #[error("{}: contains no private key; it must be PEM (PKCS#8, PKCS#1 or SEC1) and not encrypted", path.display())]
    NoKey { path: PathBuf },
    #[error("{}: contains no PEM revocation list", path.display())]
    NoRevocationList { path: PathBuf },
    #[error("{}: is not the key of the certificate in {}; use a matching pair", key.display(), certificate.display())]
    Mismatch { certificate: PathBuf, key: PathBuf },
    #[error("{}: cannot be used", path.display())]
    Unusable { path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
}

impl TlsError {
    fn unusable(path: &Path, source: impl std::error::Error + Send + Sync + 'static) -> TlsError {
        TlsError::Unusable { path: path.to_owned(), source: Box::new(source) }
    }
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

/// Certificate, key and settings, ready for handshakes.
pub struct Loaded {
    pub config: Arc<ServerConfig>,
    pub certificate: Described,
    /// Set if others can read the key although they should not.
    pub exposed: Option<FileError>,
}

/// Loads everything from the files, or says what is wrong with them.
pub fn load(files: &TlsFiles, others: Others) -> Result<Loaded, TlsError> {
    let chain = certificates(&files.certificate)?;
    let key_file = private_file::read(&files.key, others)?;
    let no_key = |_| TlsError::NoKey { path: files.key.clone() };
    let key = PrivateKeyDer::from_pem_slice(&key_file.bytes).map_err(no_key)?;
    let first = chain.first().ok_or_else(|| TlsError::NoCertificate { path: files.certificate.clone() })?;
    let certificate = describe(first, &files.certificate)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    // The builder checks the pair too; this check says which file is wrong.
    CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            TlsError::Mismatch { certificate: files.certificate.clone(), key: files.key.clone() }
        }
        other => TlsError::unusable(&files.key, other),
    })?;
    let verifier = match &files.clients {
        Some(clients) => client_verifier(clients)?,
        None => WebPkiClientVerifier::no_client_auth(),
    };
    let unusable = |error| TlsError::unusable(&files.certificate, error);
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(unusable)?.with_client_cert_verifier(verifier);
    let mut config = builder.with_single_cert(chain, key).map_err(unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // Created again with every load: a client whose certificate was revoked meanwhile cannot resume an old session.
    config.ticketer = aws_lc_rs::Ticketer::new().map_err(unusable)?;
    Ok(Loaded { config: Arc::new(config), certificate, exposed: key_file.exposed })
}

/// Client certificates are requested if their issuer is known, and are optional here: the identity mechanism decides
/// whether one is needed, and health checks have none.
pub fn client_verifier(clients: &ClientTrust) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let (path, provider) = (&clients.client_ca, Arc::new(aws_lc_rs::default_provider()));
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| TlsError::unusable(path, error))?;
    }
    let mut verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .only_check_end_entity_revocation();
    if let Some(path) = &clients.crl {
        verifier = verifier.with_crls(revocation_lists(path)?);
    }
    verifier.build().map_err(|error| TlsError::unusable(clients.crl.as_ref().unwrap_or(path), error))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = private_file::read(path, Others::MayRead)?.bytes;
    let found = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    found.ok().filter(|found| !found.is_empty()).ok_or_else(|| TlsError::NoCertificate { path: path.to_owned() })
}

fn revocation_lists(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let bytes = private_file::read(path, Others::MayRead)?.bytes;
    let found = CertificateRevocationListDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    found.ok().filter(|found| !found.is_empty()).ok_or_else(|| TlsError::NoRevocationList { path: path.to_owned() })
}

fn describe(certificate: &CertificateDer<'_>, path: &Path) -> Result<Described, TlsError> {
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|error| TlsError::unusable(path, error))?;
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

/// The files of the certificate in use, and the configuration for new connections. Replaced as a whole when the files
/// are.
pub struct CertificateFiles {
    files: TlsFiles,
    others: Others,
    tls: Arc<Tls>,
    watched: Watched,
}

impl CertificateFiles {
    pub fn open(files: &TlsFiles, others: Others) -> Result<(CertificateFiles, Loaded), TlsError> {
        // Taken before the files are read: a file replaced in between is then read again.
        let clients = files.clients.iter().flat_map(ClientTrust::paths);
        let watched = Watched::new([&files.certificate, &files.key].into_iter().chain(clients));
        let loaded = load(files, others)?;
        let tls = Arc::new(Tls::new(Arc::clone(&loaded.config)));
        Ok((CertificateFiles { files: files.clone(), others, tls, watched }, loaded))
    }

    /// For a listener.
    pub fn tls(&self) -> Arc<Tls> {
        Arc::clone(&self.tls)
    }

    /// Runs as long as the service does.
    pub async fn follow(self: Arc<Self>, metrics: Arc<Metrics>) {
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            looks.tick().await;
            let (certificate, metrics) = (Arc::clone(&self), Arc::clone(&metrics));
            // The files may be on a disk that does not respond; requests must not wait for it.
            let _ = tokio::task::spawn_blocking(move || certificate.refresh(&metrics)).await;
        }
    }

    fn refresh(&self, metrics: &Metrics) {
        if !self.watched.look() {
            return;
        }
        match load(&self.files, self.others) {
            Ok(loaded) => {
                self.tls.replace(loaded.config);
                metrics.certificate_loaded(loaded.certificate.not_after);
                metrics.certificate_reloaded(true);
                let not_after = loaded.certificate.not_after.to_string();
                tracing::info!(not_after, "the certificate was replaced; new connections get the new one");
            }
            Err(error) => {
                metrics.certificate_reloaded(false);
                let cause = with_cause(&error);
                tracing::warn!(cause, "the new certificate cannot be used; the previous one stays in force");
            }
        }
    }
}
