//! Ended credentials, stored outside the database as well: restoring a ledger from a backup must not bring back a
//! credential that was revoked since. And which credentials are doubted if even that record is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use pilot_core::credentials::CredentialId;
use pilot_core::limits::PRIVATE_FILE_BYTES_MAX;
use pilot_core::time::Time;
use pilot_setup::error::StartError;
use pilot_setup::private_file;
use pilot_store::StoreError;
use serde::{Deserialize, Serialize};

use super::ended::{End, Ended};
use super::kept::{self, ENDED, Kept, WHOLE};
use crate::persisted;

const SCHEMA_VERSION: u32 = 1;

#[derive(Debug, thiserror::Error)]
pub enum OutsideError {
    #[error("{path}: cannot be read: {source}")]
    Io { path: String, source: io::Error },
    #[error(
        "{path}: lists the revoked credentials, and is damaged: {cause}\n\
         Fix: restore it from a backup. Without one, move it aside: revocations in the ledger still apply."
    )]
    Damaged { path: String, cause: String },
}

impl From<OutsideError> for StartError {
    fn from(error: OutsideError) -> Self {
        match error {
            OutsideError::Io { .. } => StartError::Environment { what: error.to_string(), source: None },
            OutsideError::Damaged { .. } => StartError::Refused(error.to_string()),
        }
    }
}

/// Ended credentials of one log.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndedCredentials {
    schema_version: u32,
    /// The log it belongs to.
    log: String,
    pub(super) ended: BTreeMap<CredentialId, End>,
}

impl EndedCredentials {
    pub fn of_log(log: &str) -> EndedCredentials {
        EndedCredentials { schema_version: SCHEMA_VERSION, log: log.to_owned(), ended: BTreeMap::new() }
    }

    pub fn log(&self) -> &str {
        &self.log
    }

    pub fn read(path: &Path) -> Result<Option<EndedCredentials>, OutsideError> {
        let damaged = |cause: String| OutsideError::Damaged { path: path.display().to_string(), cause };
        let failed = |source| OutsideError::Io { path: path.display().to_string(), source };
        let bytes = match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found if found.as_ref().is_ok_and(|found| found.len() > PRIVATE_FILE_BYTES_MAX) => {
                return Err(damaged("it is too long".to_owned()));
            }
            found => found.and_then(|_| std::fs::read(path)).map_err(failed)?,
        };
        let read: EndedCredentials = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        match read.schema_version {
            SCHEMA_VERSION => Ok(Some(read)),
            other => Err(damaged(format!("schema_version {other} is not supported"))),
        }
    }

    /// From the facts that a ledger stores next to its entries: those whose names begin with
    /// [`EndedCredentials::FACTS`], and the one named [`EndedCredentials::WHOLE`] from an older program.
    pub fn take_in_facts(&mut self, whole: Option<&[u8]>, facts: Vec<(String, Vec<u8>)>) -> Result<(), StoreError> {
        if let Some(bytes) = whole {
            self.take_in(Kept::parse(bytes)?.ended);
        }
        self.take_in(kept::read(ENDED, facts)?);
        Ok(())
    }

    pub const FACTS: &str = ENDED;
    pub const WHOLE: &str = WHOLE;

    pub fn merge(&mut self, other: EndedCredentials) {
        self.take_in(other.ended);
    }

    fn take_in(&mut self, ended: BTreeMap<CredentialId, End>) {
        for (id, end) in ended {
            match self.ended.get(&id) {
                // A revocation says more than an expiry.
                Some(known) if known.how == Ended::Revoked || end.how == Ended::Expired => {}
                _ => drop(self.ended.insert(id, end)),
            }
        }
    }

    pub fn revoked(&self) -> usize {
        self.ended.values().filter(|end| end.how == Ended::Revoked).count()
    }

    pub fn write(&self, path: &Path) -> io::Result<()> {
        private_file::replace(path, &serde_json::to_vec_pretty(self).map_err(io::Error::other)?)
    }
}

/// The file, and what is known to be in it.
pub(super) struct Outside {
    path: PathBuf,
    known: EndedCredentials,
}

impl Outside {
    /// Merges the file and the ledger; the result is on disk when this returns.
    pub(super) fn open(path: &Path, log: &str, kept: &Kept, now: Time) -> Result<Outside, OutsideError> {
        let found = EndedCredentials::read(path)?;
        if let Some(found) = found.as_ref().filter(|found| found.log != log) {
            let (path, other) = (path.display(), &found.log);
            tracing::warn!(
                "{path}: was written by the log `{other}`; the credentials it lists as revoked are revoked here too"
            );
        }
        let mut known =
            EndedCredentials { log: log.to_owned(), ..found.clone().unwrap_or(EndedCredentials::of_log(log)) };
        known.take_in(
            kept.ended.iter().filter(|(_, end)| end.is_lasting()).map(|(id, end)| (id.clone(), end.clone())).collect(),
        );
        // Tokens that nobody can show any more need not be remembered forever.
        let mut all = Kept { ended: std::mem::take(&mut known.ended), ..Kept::default() };
        let surplus = all.surplus(now, usize::MAX, "");
        all.forget(&surplus);
        known.ended = all.ended;
        let is_same = found.is_some_and(|found| found.log == log && found.ended == known.ended);
        if !is_same {
            let failed = |source| OutsideError::Io { path: path.display().to_string(), source };
            known.write(path).map_err(failed)?;
        }
        Ok(Outside { path: path.to_owned(), known })
    }

    pub(super) fn ended(&self) -> &BTreeMap<CredentialId, End> {
        &self.known.ended
    }

    /// On disk when this returns. Revocations are few, so the whole file is rewritten and is never incomplete.
    pub(super) fn add(&mut self, id: &CredentialId, end: &End) -> io::Result<()> {
        let is_known =
            self.known.ended.get(id).is_some_and(|known| known.how == Ended::Revoked || known.how == end.how);
        if is_known {
            return Ok(());
        }
        let before = self.known.ended.insert(id.clone(), End { revocation: None, ..end.clone() });
        self.known.write(&self.path).inspect_err(|_| {
            match before {
                Some(before) => self.known.ended.insert(id.clone(), before),
                None => self.known.ended.remove(id),
            };
        })
    }
}

/// After a loss that may include revocations: credentials issued before it are not valid until an operator says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// Credentials issued before this are doubted.
    pub before: Time,
    #[serde(default)]
    pub trusted: BTreeSet<CredentialId>,
    #[serde(default)]
    pub is_over: bool,
}

impl Doubt {
    /// The fact's name.
    pub const FACT: &str = "credentials_doubted";

    pub fn about_all_before(before: Time) -> Doubt {
        Doubt { before, trusted: BTreeSet::new(), is_over: false }
    }

    pub fn parse(bytes: &[u8]) -> Result<Doubt, StoreError> {
        persisted::from_bytes("which credentials are doubted", bytes)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        persisted::to_bytes(self)
    }

    /// `issued` is when the credential was issued, if it says so.
    pub fn is_about(&self, id: &CredentialId, issued: Option<Time>) -> bool {
        !self.is_over && issued.is_none_or(|issued| issued < self.before) && !self.trusted.contains(id)
    }
}
