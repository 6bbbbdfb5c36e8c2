//! What the verifier is given by its user, none of it from the bundle: keys, pins, and how strict to be.

use std::collections::BTreeSet;

use pilot_core::document::ContentDigest;
use pilot_core::workflow::Definition;

use super::chain::Predecessor;
use crate::checkpoint::Checkpoint;
use crate::cosignature::CosignerVerifier;
use crate::note::{KeyError, VerifierKey};
use crate::policy::{Policy, PolicyError};
use crate::timestamp::Authorities;

#[derive(Debug, Clone, PartialEq)]
pub struct Trust {
    pub key: VerifierKey,
    /// Which witnesses are known, and which of them must have cosigned the checkpoint.
    pub policy: Policy,
    /// Whose timestamps date checkpoints.
    pub authorities: Option<Authorities>,
    pub pins: Pins,
    /// Whatever could not be checked leads to the third verdict.
    pub strict: bool,
}

/// What the bundle must agree with. Each was obtained from someone other than the service.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pins {
    /// Digests of definitions, `sha256:…`: items may have been created under these only.
    pub definitions: BTreeSet<String>,
    /// Digests of role maps, `sha256:…`: only these may have been in force.
    pub role_maps: BTreeSet<String>,
    /// A checkpoint that was kept: the log must continue it.
    pub checkpoint: Option<Checkpoint>,
    /// The end of the previous period's bundle, which this one must follow.
    pub after: Option<Predecessor>,
}

impl Trust {
    pub fn log(key: VerifierKey) -> Trust {
        Trust::witnessed(key, Vec::new(), 0)
    }

    /// `needed` of these witnesses must have cosigned.
    pub fn witnessed(key: VerifierKey, witnesses: Vec<CosignerVerifier>, needed: usize) -> Trust {
        let policy = Policy::of(key.clone(), witnesses, needed);
        Trust { key, policy, authorities: None, pins: Pins::default(), strict: false }
    }

    /// For a bundle of an earlier period: a checkpoint that was kept later says nothing about it.
    #[must_use]
    pub fn earlier(&self) -> Trust {
        Trust { pins: Pins { checkpoint: None, ..self.pins.clone() }, ..self.clone() }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("{option}: {source}")]
    Key { option: &'static str, source: KeyError },
    #[error("{option}: neither {form} nor a readable file: {path} ({source})")]
    File { option: &'static str, form: &'static str, path: String, source: std::io::Error },
    #[error("--witnesses: {needed} are required, but {given} keys are given")]
    TooFew { needed: usize, given: usize },
    #[error("--witness-key: the same key is given twice; a witness counts once")]
    Twice,
    #[error("--policy: {path}: {source}")]
    Policy { path: String, source: PolicyError },
    #[error("--policy: it knows {logs} logs; name one of them with --key")]
    WhichLog { logs: usize },
    #[error("--policy: it does not know the log of --key")]
    OtherLog,
    #[error("--policy: it names the witnesses and how many are needed; --witness-key and --witnesses cannot be added")]
    PolicyAndKeys,
    #[error("--key KEY is needed, or --policy FILE that knows the log")]
    NoKey,
    #[error("{option}: {path} is not {what}: {why}")]
    Pin { option: &'static str, path: String, what: &'static str, why: String },
}

impl TrustError {
    /// The machine failed, not the input: a file exists but cannot be read.
    pub fn is_of_the_machine(&self) -> bool {
        matches!(self, TrustError::File { source, .. } if source.kind() != std::io::ErrorKind::NotFound)
    }
}

/// What was given on a command line: each key, digest or file as it was written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Given<'g> {
    pub key: Option<&'g str>,
    pub witness_keys: &'g [String],
    pub witnesses: Option<usize>,
    pub policy: Option<&'g str>,
    pub definitions: &'g [String],
    pub role_maps: &'g [String],
    pub checkpoint: Option<&'g str>,
    pub strict: bool,
}

const KEY_FORM: &str = "a key (one line, name+id+base64)";
const DIGEST_FORM: &str = "a digest (sha256:…)";

/// Takes each key and digest as given, or from the file it names.
pub fn read<E: Into<std::io::Error>>(
    given: Given<'_>,
    open: impl Fn(&str) -> Result<Vec<u8>, E>,
) -> Result<Trust, TrustError> {
    let reader = Reader { open: |path: &str| open(path).map_err(Into::into) };
    let (key, policy) = reader.keys(given)?;
    let mut pins = Pins::default();
    for one in given.definitions {
        pins.definitions.insert(reader.digest("--definition", one, definition_digest)?);
    }
    for one in given.role_maps {
        pins.role_maps
            .insert(reader.digest("--role-map", one, |_, bytes| Ok(ContentDigest::of_bytes(bytes).to_string()))?);
    }
    pins.checkpoint = given.checkpoint.map(|path| reader.checkpoint(path, &key)).transpose()?;
    Ok(Trust { key, policy, authorities: None, pins, strict: given.strict })
}

/// A definition is pinned by its rules: comments and layout of the file do not matter.
fn definition_digest(path: &str, bytes: &[u8]) -> Result<String, TrustError> {
    let wrong =
        |why: String| TrustError::Pin { option: "--definition", path: path.to_owned(), what: "a definition", why };
    let text = std::str::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
    let definition = Definition::parse(text).map_err(|flaws| wrong(flaws.to_string().trim_end().to_owned()))?;
    Ok(definition.digest().to_string())
}

struct Reader<O> {
    open: O,
}

impl<O: Fn(&str) -> std::io::Result<Vec<u8>>> Reader<O> {
    fn file(&self, option: &'static str, form: &'static str, path: &str) -> Result<Vec<u8>, TrustError> {
        (self.open)(path).map_err(|source| TrustError::File { option, form, path: path.to_owned(), source })
    }

    fn line(&self, option: &'static str, given: &str) -> Result<String, TrustError> {
        if given.matches('+').count() >= 2 {
            return Ok(given.to_owned());
        }
        let bytes = self.file(option, KEY_FORM, given)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    fn keys(&self, given: Given<'_>) -> Result<(VerifierKey, Policy), TrustError> {
        let option = "--key";
        let key = given.key.map(|key| {
            VerifierKey::parse(&self.line(option, key)?).map_err(|source| TrustError::Key { option, source })
        });
        let key = key.transpose()?;
        let Some(path) = given.policy else {
            let key = key.ok_or(TrustError::NoKey)?;
            let policy = self.witnesses(&key, given.witness_keys, given.witnesses)?;
            return Ok((key, policy));
        };
        if !given.witness_keys.is_empty() || given.witnesses.is_some() {
            return Err(TrustError::PolicyAndKeys);
        }
        let bytes = self.file("--policy", "a policy", path)?;
        let policy = Policy::parse(&bytes).map_err(|source| TrustError::Policy { path: path.to_owned(), source })?;
        let key = match (key, policy.logs()) {
            (Some(key), logs) if logs.contains(&key) => key,
            (Some(_), _) => return Err(TrustError::OtherLog),
            (None, [only]) => only.clone(),
            (None, logs) => return Err(TrustError::WhichLog { logs: logs.len() }),
        };
        Ok((key, policy))
    }

    fn witnesses(&self, key: &VerifierKey, keys: &[String], needed: Option<usize>) -> Result<Policy, TrustError> {
        let mut witnesses: Vec<CosignerVerifier> = Vec::new();
        for given in keys {
            let option = "--witness-key";
            let witness = CosignerVerifier::parse(&self.line(option, given)?);
            let witness = witness.map_err(|source| TrustError::Key { option, source })?;
            // Under two names it would still be one witness.
            if witnesses.iter().any(|known| known.public_key == witness.public_key) {
                return Err(TrustError::Twice);
            }
            witnesses.push(witness);
        }
        let needed = needed.unwrap_or(witnesses.len());
        if needed > witnesses.len() {
            return Err(TrustError::TooFew { needed, given: witnesses.len() });
        }
        Ok(Policy::of(key.clone(), witnesses, needed))
    }

    fn digest(
        &self,
        option: &'static str,
        given: &str,
        of_file: impl Fn(&str, &[u8]) -> Result<String, TrustError>,
    ) -> Result<String, TrustError> {
        match given.parse::<ContentDigest>() {
            Ok(digest) => Ok(digest.to_string()),
            Err(_) => of_file(given, &self.file(option, DIGEST_FORM, given)?),
        }
    }

    fn checkpoint(&self, path: &str, key: &VerifierKey) -> Result<Checkpoint, TrustError> {
        let bytes = self.file("--checkpoint", "a checkpoint", path)?;
        let (option, what) = ("--checkpoint", "a checkpoint of this log");
        let wrong = |why: String| TrustError::Pin { option, path: path.to_owned(), what, why };
        let note = std::str::from_utf8(&bytes).map_err(|error| wrong(error.to_string()))?;
        Checkpoint::open(note, key).map_err(|error| wrong(error.to_string()))
    }
}
