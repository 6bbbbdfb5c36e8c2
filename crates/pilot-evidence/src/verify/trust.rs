//! Whom the verifier trusts: keys, given as lines or as file names.

use crate::cosignature::CosignerVerifier;
use crate::note::{KeyError, VerifierKey};

/// Keys come from somewhere other than the bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    pub key: VerifierKey,
    pub witnesses: Vec<CosignerVerifier>,
    /// How many of the witnesses must have signed the checkpoint.
    pub witnesses_needed: usize,
}

impl Trust {
    pub fn log(key: VerifierKey) -> Trust {
        Trust { key, witnesses: Vec::new(), witnesses_needed: 0 }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("{option}: {source}")]
    Key { option: &'static str, source: KeyError },
    #[error("{option}: neither a key (one line, name+id+base64) nor a readable file: {path} ({source})")]
    File { option: &'static str, path: String, source: std::io::Error },
    #[error("--witnesses: {needed} are required, but {given} keys are given")]
    TooFew { needed: usize, given: usize },
    #[error("--witness-key: the same key is given twice; a witness counts once")]
    Twice,
}

impl TrustError {
    /// The machine failed, not the input: a file exists but cannot be read.
    pub fn is_of_the_machine(&self) -> bool {
        matches!(self, TrustError::File { source, .. } if source.kind() != std::io::ErrorKind::NotFound)
    }
}

/// Takes each key as given, or from the file it names.
pub fn read<E: Into<std::io::Error>>(
    key: &str,
    witness_keys: &[String],
    witnesses_needed: Option<usize>,
    open: impl Fn(&str) -> Result<Vec<u8>, E>,
) -> Result<Trust, TrustError> {
    let line = |option, given: &str| {
        if given.matches('+').count() >= 2 {
            return Ok(given.to_owned());
        }
        let bytes = open(given);
        let bytes = bytes.map_err(|error| TrustError::File { option, path: given.into(), source: error.into() })?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    let key = VerifierKey::parse(&line("--key", key)?).map_err(|source| TrustError::Key { option: "--key", source })?;
    let mut witnesses: Vec<CosignerVerifier> = Vec::new();
    for given in witness_keys {
        let option = "--witness-key";
        let witness = CosignerVerifier::parse(&line(option, given)?);
        let witness = witness.map_err(|source| TrustError::Key { option, source })?;
        // Under two names it would still be one witness.
        if witnesses.iter().any(|known| known.public_key == witness.public_key) {
            return Err(TrustError::Twice);
        }
        witnesses.push(witness);
    }
    let needed = witnesses_needed.unwrap_or(witnesses.len());
    if needed > witnesses.len() {
        return Err(TrustError::TooFew { needed, given: witnesses.len() });
    }
    Ok(Trust { key, witnesses, witnesses_needed: needed })
}
