//! Revocations outlive a restore: everything that knows of any is merged, and where nothing is known about the time
//! since the backup, older credentials are in doubt.

use std::path::Path;

use pilot_ledger::register::{EndedCredentials, OutsideError};
use pilot_setup::config::Config;
use pilot_store::archive::Archive;

use super::entry::Credentials;
use super::keys::lineage;
use crate::cmd::backup;
use crate::exit::Failure;

pub(super) struct Revocations {
    pub known: EndedCredentials,
    /// Whether every revocation up to now is among them.
    pub is_complete: bool,
    pub remarks: Vec<String>,
}

impl Revocations {
    /// From the file next to the checkpoint, the backup, and the existing database. `log` is the name of the log that
    /// is restored, as far as it has one.
    pub(super) fn gather(
        config: &Config,
        log: Option<&str>,
        backup: Option<&Path>,
        ledger: &dyn Archive,
    ) -> Result<Revocations, Failure> {
        let refused = |error: OutsideError| match error {
            OutsideError::Io { .. } => Failure::Environment(error.to_string()),
            OutsideError::Damaged { .. } => Failure::Refused(format!("nothing was restored: {error}")),
        };
        let (mut known, mut remarks) = (EndedCredentials::of_log(log.unwrap_or_default()), Vec::new());
        let here = EndedCredentials::read(&config.revocations_path()).map_err(refused)?;
        // Every revocation is in it before it is acknowledged. One of another log knows nothing of this one.
        let is_complete = here.as_ref().zip(log).is_some_and(|(here, log)| lineage(here.log()).0 == lineage(log).0);
        let there = match backup {
            Some(backup) => EndedCredentials::read(&backup.join(backup::REVOCATIONS)).map_err(refused)?,
            None => None,
        };
        for found in [here, there].into_iter().flatten() {
            known.merge(found);
        }
        if ledger.exists() {
            let read = ledger.fact(EndedCredentials::WHOLE);
            let read = read.and_then(|whole| Ok((whole, ledger.facts(EndedCredentials::FACTS)?)));
            let taken = read.and_then(|(whole, facts)| known.take_in_facts(whole.as_deref(), facts));
            if let Err(error) = taken {
                let place = ledger.place();
                remarks.push(format!("{place}: its revocations cannot be read and are not carried over ({error})"));
            }
        }
        Ok(Revocations { known, is_complete, remarks })
    }

    /// Next to the checkpoint of the log under its new name.
    pub(super) fn write(self, config: &Config, log: &str) -> Result<usize, Failure> {
        let path = config.revocations_path();
        let mut all = EndedCredentials::of_log(log);
        all.merge(self.known);
        all.write(&path).map_err(|error| Failure::environment(path.display(), error))?;
        Ok(all.revoked())
    }
}

/// What is said about credentials after a loss.
pub(super) fn in_words(credentials: Credentials) -> Option<String> {
    match credentials {
        Credentials::Known => None,
        Credentials::Doubted => Some(
            "CREDENTIALS ISSUED BEFORE NOW ARE NOT ACCEPTED: what was revoked since the backup is not known here.\n\
             Rotate them (`pilot rotation begin`, `pilot credential new`): credentials issued from now on are accepted, in a file of schema_version 2, which records when they were issued.\n\
             For those you know were not revoked: run `pilot credential trust --id ID --why WHY` before the start, or --all."
                .to_owned(),
        ),
        Credentials::Trusted => Some(
            "Credentials issued before now are accepted, as you asked: any that were revoked since the backup are valid again."
                .to_owned(),
        ),
    }
}
