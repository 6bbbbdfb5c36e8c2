//! Reads certificates and revocation lists from PEM files.

use std::path::{Path, PathBuf};

use pilot_setup::private_file::{self, FileError, Others};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};

#[derive(Debug, thiserror::Error)]
pub enum PemError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{}: contains no certificate; it must be PEM, with the service's own certificate first", path.display())]
    NoCertificate { path: PathBuf },
    #[error("{}: contains no PEM revocation list", path.display())]
    NoRevocationList { path: PathBuf },
    #[error("{}: contains a certificate that is not an issuer's (CA:TRUE, with a subject); remove it", path.display())]
    NotAnIssuer { path: PathBuf },
    #[error("{}: cannot be used", path.display())]
    Unusable { path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
}

impl PemError {
    pub(crate) fn unusable(path: &Path, source: impl std::error::Error + Send + Sync + 'static) -> PemError {
        PemError::Unusable { path: path.to_owned(), source: Box::new(source) }
    }
}

pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let bytes = private_file::read(path, Others::MayRead)?.bytes;
    let found = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    found.ok().filter(|found| !found.is_empty()).ok_or_else(|| PemError::NoCertificate { path: path.to_owned() })
}

pub(crate) fn revocation_lists(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, PemError> {
    let bytes = private_file::read(path, Others::MayRead)?.bytes;
    let found = CertificateRevocationListDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    found.ok().filter(|found| !found.is_empty()).ok_or_else(|| PemError::NoRevocationList { path: path.to_owned() })
}
