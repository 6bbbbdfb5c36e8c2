//! The client's side of TLS: who issues the service's certificate. Verification cannot be switched off.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use zeroize::Zeroizing;

use crate::exit::Failure;

#[derive(Clone)]
pub(super) struct Trust(TlsConnector);

impl Trust {
    /// The issuers in this file and no others, or those the system trusts.
    pub(super) fn load(ca_file: Option<&Path>, own: Option<&(PathBuf, PathBuf)>) -> Result<Trust, Failure> {
        let roots = match ca_file {
            Some(path) => from_file(path)?,
            None => from_system()?,
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| Failure::environment("TLS", error))?;
        let builder = builder.with_root_certificates(roots);
        let mut config = match own {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let (chain, private) = (certificates(certificate)?, private_key(key)?);
                let unusable = |error| {
                    let pair = format!("{} and {}", certificate.display(), key.display());
                    Failure::Usage(format!("{pair}: cannot be used together ({error})"))
                };
                builder.with_client_auth_cert(chain, private).map_err(unusable)?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Trust(TlsConnector::from(Arc::new(config))))
    }

    pub(super) async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| io::Error::other(error.to_string()))?;
        self.0.connect(name, stream).await.map_err(explained)
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let bytes = std::fs::read(path).map_err(|error| Failure::environment(path.display(), error))?;
    let none = || Failure::Usage(format!("{}: contains no PEM certificate", path.display()));
    let found = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>().map_err(|_| none())?;
    if found.is_empty() { Err(none()) } else { Ok(found) }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Failure> {
    let bytes = Zeroizing::new(std::fs::read(path).map_err(|error| Failure::environment(path.display(), error))?);
    let remedy = "contains no unencrypted PEM private key";
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| Failure::Usage(format!("{}: {remedy}", path.display())))
}

fn from_file(path: &Path) -> Result<RootCertStore, Failure> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|error| Failure::environment(path.display(), error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let added = certificate.ok().and_then(|certificate| roots.add(certificate).ok());
        added.ok_or_else(|| Failure::Usage(format!("{shown}: contains something that is not a PEM certificate")))?;
    }
    if roots.is_empty() {
        return Err(Failure::Usage(format!("{shown}: contains no PEM certificate")));
    }
    Ok(roots)
}

fn from_system() -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let remedy = "name the issuer of the service's certificate with --ca-file or PILOT_CA_FILE";
        return Err(Failure::Environment(format!("this system has no trusted certificates; {remedy}")));
    }
    Ok(roots)
}

/// The commonest refusal of all has a remedy.
fn explained(error: io::Error) -> io::Error {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => io::Error::other(
            "its certificate was issued by an authority that is not trusted here; name that authority with --ca-file or PILOT_CA_FILE",
        ),
        // The library has no name for it that could be matched.
        Some(rustls::Error::InvalidCertificate(fault)) if format!("{fault:?}").contains("CaUsedAsEndEntity") => {
            io::Error::other("its certificate is a CA certificate (CA:TRUE); a service needs one with CA:FALSE")
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            io::Error::other("it does not speak TLS; is it http rather than https?")
        }
        _ => error,
    }
}
