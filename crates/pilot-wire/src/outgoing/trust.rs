//! Whom a client trusts, and the certificate it shows. Verification cannot be switched off.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("{}: {cause}", path.display())]
    Unreadable { path: PathBuf, cause: std::io::Error },
    #[error("{}: {what}", path.display())]
    Unusable { path: PathBuf, what: &'static str },
    #[error("{} and {}: cannot be used together ({cause})", certificate.display(), key.display())]
    Pair { certificate: PathBuf, key: PathBuf, cause: rustls::Error },
    #[error("there is no certificate authority to trust: the system has none; set ca_file to a file of them")]
    Nobody,
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

/// Who issues the certificates of servers.
pub enum Issuers<'a> {
    /// Whom the system trusts, and those in this file.
    SystemAnd(Option<&'a Path>),
    /// Those in this file.
    Only(&'a Path),
}

/// A client's own certificate and its key, each in a file.
pub struct Pair {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// `protocol` is what the client says it will speak (ALPN), if that is said at all.
pub(super) fn connector(
    issuers: &Issuers,
    own: Option<&Pair>,
    protocol: Option<&[u8]>,
) -> Result<TlsConnector, TrustError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = builder.with_root_certificates(roots(issuers)?);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some(Pair { certificate, key }) => {
            let paired = builder.with_client_auth_cert(certificates(certificate)?, private_key(key)?);
            let (certificate, key) = (certificate.clone(), key.clone());
            paired.map_err(|cause| TrustError::Pair { certificate, key, cause })?
        }
    };
    config.alpn_protocols = protocol.map(<[u8]>::to_vec).into_iter().collect();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn roots(issuers: &Issuers) -> Result<RootCertStore, TrustError> {
    let mut roots = RootCertStore::empty();
    let file = match issuers {
        Issuers::Only(path) => Some(*path),
        Issuers::SystemAnd(path) => {
            // What cannot be read of the system's store is simply not trusted.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            *path
        }
    };
    if let Some(path) = file {
        for certificate in certificates(path)? {
            let what = "contains a certificate that cannot be used";
            roots.add(certificate).map_err(|_| TrustError::Unusable { path: path.to_owned(), what })?;
        }
    }
    if roots.is_empty() { Err(TrustError::Nobody) } else { Ok(roots) }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let unusable = |what| TrustError::Unusable { path: path.to_owned(), what };
    let bytes = read(path)?;
    let found = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|_| unusable("contains something that is not a PEM certificate"))?;
    if found.is_empty() { Err(unusable("contains no PEM certificate")) } else { Ok(found) }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TrustError> {
    let bytes = Zeroizing::new(read(path)?);
    let what = "contains no unencrypted PEM private key";
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| TrustError::Unusable { path: path.to_owned(), what })
}

fn read(path: &Path) -> Result<Vec<u8>, TrustError> {
    std::fs::read(path).map_err(|cause| TrustError::Unreadable { path: path.to_owned(), cause })
}
