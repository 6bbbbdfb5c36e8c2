//! Leaves content out of a bundle: what remains still proves everything that does not depend on it.

use std::collections::BTreeSet;

use pilot_core::document::ContentDigest;

use crate::bundle::zip::{ZipFault, ZipWriter, read};
use crate::bundle::{Piece, document_path};

/// Which documents to leave out. The report is left out too, because it quotes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redaction {
    All,
    Documents(BTreeSet<ContentDigest>),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedactError {
    #[error("this is not an evidence bundle: {0}")]
    Container(#[from] ZipFault),
    #[error(
        "{0} is damaged, and a damaged bundle cannot be redacted; run `pilot evidence verify` to see what is wrong"
    )]
    Damaged(String),
    #[error("the bundle has no document {0}")]
    NoSuchDocument(ContentDigest),
    #[error("the bundle is too large")]
    TooLarge,
}

/// The bundle without them, and the paths that were left out. The signed manifest does not change.
pub fn redact(bundle: &[u8], redaction: &Redaction) -> Result<(Vec<u8>, Vec<String>), RedactError> {
    let files = read(bundle)?;
    if let Redaction::Documents(digests) = redaction {
        let has = |digest: &&ContentDigest| files.iter().any(|file| file.path == document_path(digest.as_str()));
        if let Some(missing) = digests.iter().find(|digest| !has(digest)) {
            return Err(RedactError::NoSuchDocument(missing.clone()));
        }
    }
    let unwanted = |path: &str| match (Piece::of(path), redaction) {
        (Some(Piece::Report), _) | (Some(Piece::Document(_)), Redaction::All) => true,
        (Some(Piece::Document(_)), Redaction::Documents(digests)) => {
            digests.iter().any(|digest| document_path(digest.as_str()) == path)
        }
        _ => false,
    };
    let (mut zip, mut left_out) = (ZipWriter::default(), Vec::new());
    for file in files {
        if !file.is_whole {
            return Err(RedactError::Damaged(file.path.to_owned()));
        }
        if unwanted(file.path) {
            left_out.push(file.path.to_owned());
        } else if !zip.add(file.path, file.bytes) {
            return Err(RedactError::TooLarge);
        }
    }
    Ok((zip.finish(), left_out))
}
