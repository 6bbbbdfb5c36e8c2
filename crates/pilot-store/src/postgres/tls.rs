//! TLS to the database. The server is always verified: its issuer, and that the certificate is for the host that was
//! asked for. A password is bound to the connection (RFC 5929, `tls-server-end-point`), so that a server in between
//! cannot pass it on.

use std::fs::read;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use sha2::{Digest, Sha256, Sha384, Sha512};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::signature_algorithm::SignatureAlgorithm;
use zeroize::Zeroizing;

use crate::{Result, StoreError};

/// What the server is verified with, and what this node shows of itself.
#[derive(Clone)]
pub(super) struct Files {
    /// Without it, whom the system trusts.
    ca_file: Option<PathBuf>,
    own: Option<Pair>,
}

#[derive(Clone)]
struct Pair {
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    pub(super) fn new(ca_file: Option<PathBuf>, own: (Option<PathBuf>, Option<PathBuf>)) -> Result<Files> {
        let own = match own {
            (Some(certificate), Some(key)) => Some(Pair { certificate, key }),
            (None, None) => None,
            (Some(_), None) => return Err(refused("store.client_certificate: needs store.client_key")),
            (None, Some(_)) => return Err(refused("store.client_key: needs store.client_certificate")),
        };
        Ok(Files { ca_file, own })
    }

    pub(super) fn load(&self) -> Result<Arc<ClientConfig>> {
        let unusable = |error: rustls::Error| refused(&format!("TLS cannot be set up: {error}"));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().map_err(unusable)?;
        let builder = builder.with_root_certificates(self.roots()?);
        let mut config = match &self.own {
            None => builder.with_no_client_auth(),
            Some(Pair { certificate, key }) => {
                let chain = certificates("store.client_certificate", certificate)?;
                let paired = builder.with_client_auth_cert(chain, private_key(key)?);
                let (certificate, key) = (certificate.display(), key.display());
                paired
                    .map_err(|error| refused(&format!("{certificate} and {key}: cannot be used together ({error})")))?
            }
        };
        // What PostgreSQL 17 expects if TLS begins at once; older servers do not look at it.
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Arc::new(config))
    }

    fn roots(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        let Some(path) = &self.ca_file else {
            // What cannot be read of the system's store is simply not trusted.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            let nobody = "there is no certificate authority to trust: the system has none; set store.ca_file";
            return if roots.is_empty() { Err(refused(nobody)) } else { Ok(roots) };
        };
        for certificate in certificates("store.ca_file", path)? {
            let added = roots.add(certificate);
            added.map_err(|_| of_file("store.ca_file", path, "contains a certificate that cannot be used"))?;
        }
        Ok(roots)
    }
}

fn refused(what: &str) -> StoreError {
    StoreError::Refused(what.to_owned())
}

pub(super) fn of_file(setting: &str, path: &Path, what: &str) -> StoreError {
    StoreError::Refused(format!("{setting}: {}: {what}", path.display()))
}

fn certificates(setting: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let bytes = read(path).map_err(|error| of_file(setting, path, &format!("cannot be read ({error})")))?;
    let found = CertificateDer::pem_slice_iter(&bytes).collect::<std::result::Result<Vec<_>, _>>();
    let found = found.map_err(|_| of_file(setting, path, "contains something that is not a PEM certificate"))?;
    if found.is_empty() { Err(of_file(setting, path, "contains no PEM certificate")) } else { Ok(found) }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let unusable = |what: &str| of_file("store.client_key", path, what);
    let bytes = Zeroizing::new(read(path).map_err(|error| unusable(&format!("cannot be read ({error})")))?);
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| unusable("contains no unencrypted PEM private key"))
}

/// Encrypts connections, if there are files to do it with. They are read for every connection, so that it uses a
/// certificate that was replaced meanwhile.
pub(super) struct Connector(pub(super) Option<Files>);

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        let Some(files) = &self.0 else { return Ok(Handshake(None)) };
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| io::Error::other("no certificate can be for the name of this host"))?;
        Ok(Handshake(Some((files.load().map_err(io::Error::other)?, name))))
    }
}

pub(super) struct Handshake(Option<(Arc<ClientConfig>, ServerName<'static>)>);

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async {
            let off = || io::Error::other("TLS is switched off for this database");
            let (config, name) = self.0.ok_or_else(off)?;
            TlsConnector::from(config).connect(name, socket).await.map(Encrypted)
        })
    }
}

pub(super) struct Encrypted(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        let shown = self.0.get_ref().1.peer_certificates();
        let own = shown.and_then(|chain| chain.first()).and_then(|certificate| end_point(certificate));
        own.map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

/// The hash that stands for a server: that of its certificate, made as its signature was. None if the signature names
/// no hash, as with Ed25519.
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    Some(match hash(&parsed)? {
        Hash::Sha256 => Sha256::digest(certificate).to_vec(),
        Hash::Sha384 => Sha384::digest(certificate).to_vec(),
        Hash::Sha512 => Sha512::digest(certificate).to_vec(),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

fn hash(certificate: &X509Certificate<'_>) -> Option<Hash> {
    let algorithm = &certificate.signature_algorithm;
    match SignatureAlgorithm::try_from(algorithm) {
        // It is one of the parameters here.
        Ok(SignatureAlgorithm::RSASSA_PSS(parameters)) => hash_of(&parameters.hash_algorithm_oid().to_id_string()),
        _ => hash_of(&algorithm.algorithm.to_id_string()),
    }
}

/// By the object identifier of a signature, or of a hash itself.
fn hash_of(identifier: &str) -> Option<Hash> {
    match identifier {
        "1.2.840.113549.1.1.11" | "1.2.840.10045.4.3.2" | "2.16.840.1.101.3.4.2.1"
        // It also replaces MD5 and SHA-1.
        | "1.2.840.113549.1.1.4" | "1.2.840.113549.1.1.5" | "1.2.840.10045.4.1" | "1.3.14.3.2.26" => Some(Hash::Sha256),
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" | "2.16.840.1.101.3.4.2.2" => Some(Hash::Sha384),
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" | "2.16.840.1.101.3.4.2.3" => Some(Hash::Sha512),
        _ => None,
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(context, into)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Signed by its own key, as these options of openssl say.
    fn certificate(options: &str) -> CertificateDer<'static> {
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-noenc", "-subj", "/CN=server", "-keyout", "/dev/null"]);
        let made = openssl.args(options.split(' ')).output().unwrap();
        assert!(made.status.success(), "{options}: {}", String::from_utf8_lossy(&made.stderr));
        CertificateDer::from_pem_slice(&made.stdout).unwrap()
    }

    #[track_caller]
    fn check(options: &str, hash: &str) {
        let certificate = certificate(options);
        let expected = match hash {
            "sha256" => Sha256::digest(&certificate).to_vec(),
            "sha384" => Sha384::digest(&certificate).to_vec(),
            _ => Sha512::digest(&certificate).to_vec(),
        };
        assert_eq!(end_point(&certificate), Some(expected), "{options}");
    }

    #[test]
    fn a_certificate_is_hashed_as_its_signature_was() {
        const RSA: &str = "-newkey rsa:2048";
        const PSS: &str = "-newkey rsa:2048 -sigopt rsa_padding_mode:pss";
        const ECDSA: &str = "-newkey ec -pkeyopt ec_paramgen_curve:P-256";
        for key in [RSA, PSS, ECDSA] {
            for (option, hash) in
                [("-sha1", "sha256"), ("-sha256", "sha256"), ("-sha384", "sha384"), ("-sha512", "sha512")]
            {
                check(&format!("{key} {option}"), hash);
            }
        }
        check(&format!("{RSA} -md5"), "sha256");
    }

    #[test]
    fn a_signature_without_a_hash_binds_nothing() {
        assert_eq!(end_point(&certificate("-newkey ed25519")), None);
        assert_eq!(end_point(b"not a certificate"), None);
    }

    #[test]
    fn files_that_cannot_be_used_are_named_with_their_setting() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("empty.pem");
        std::fs::write(&file, "").unwrap();
        let nowhere = directory.path().join("nowhere");
        let refused = |ca: &Path, own: (Option<PathBuf>, Option<PathBuf>)| {
            Files::new(Some(ca.to_owned()), own).unwrap().load().unwrap_err().to_string()
        };
        let none = || (None, None);
        assert!(refused(&nowhere, none()).contains("store.ca_file: "));
        assert!(refused(&file, none()).ends_with("empty.pem: contains no PEM certificate"));
        let ca = directory.path().join("ca.pem");
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-noenc", "-subj", "/CN=ca", "-newkey", "ed25519", "-keyout", "/dev/null"]);
        assert!(openssl.arg("-out").arg(&ca).output().unwrap().status.success());
        assert!(refused(&ca, (Some(file.clone()), Some(file.clone()))).starts_with("store.client_certificate: "));
        assert!(refused(&ca, (Some(ca.clone()), Some(file))).ends_with("contains no unencrypted PEM private key"));
    }
}
