//! The keys of a restore: the one that the log had, and the one under which it continues.

use std::path::Path;

use pilot_evidence::note::{NoteKey, VerifierKey};
use pilot_setup::config::Config;
use pilot_setup::log_key::{self, LogKey};
use pilot_setup::random;

use crate::cmd::backup::{self, Manifest};
use crate::exit::Failure;

pub(super) struct Keys {
    /// The log's, as far as it is known.
    pub known: Option<VerifierKey>,
    /// The one that can sign now: the log's, or another one that a signer offers.
    at_hand: Option<LogKey>,
}

impl Keys {
    /// `backup` is its directory and its manifest.
    pub(super) async fn find(config: &Config, backup: Option<(&Path, &Manifest)>) -> Result<Keys, Failure> {
        let Some(signer) = &config.log.signer else {
            let key = from_files(config, backup.map(|(directory, _)| directory))?;
            return Ok(Keys { known: key.as_ref().map(NoteKey::verifier), at_hand: key.map(LogKey::from) });
        };
        let known = match (config.log_public_key_path(), config.log_key_path()) {
            (public, _) if public.exists() => Some(log_key::read_public(&public)?),
            (_, private) if private.exists() => Some(log_key::load(&private)?.verifier()),
            // The manifest's claims were compared with the backup's files.
            _ => backup.and_then(|(_, manifest)| VerifierKey::parse(&manifest.verifier_key).ok()),
        };
        Ok(Keys { known, at_hand: Some(LogKey::offered(signer).await?) })
    }

    /// The log's own key, if it can sign now.
    pub(super) fn own(&self) -> Option<&LogKey> {
        self.at_hand.as_ref().filter(|key| Some(key.verifier()) == self.known)
    }

    /// Nothing is missing, so the log continues under its key.
    pub(super) fn keep(self) -> Result<LogKey, Failure> {
        match self {
            Keys { known: Some(known), at_hand: Some(key) } if key.verifier() == known => Ok(key),
            Keys { known: Some(known), at_hand: Some(other) } => Err(Failure::Refused(format!(
                "nothing was restored: nothing is missing, so the log continues under its key, but log.signer has another one.\n\
                 the log's key: {known}\n\
                 the program's: {}\n\
                 Fix: let log.signer name the log's key and its name, and run this again.",
                other.verifier()
            ))),
            _ => Err(Failure::Refused("nothing was restored: the log's key is not here".into())),
        }
    }

    /// Another key for a log that may lack entries, with another name too: to witnesses and auditors it is a different
    /// log, which begins with what is left of this one.
    pub(super) fn renew(self) -> Result<LogKey, Failure> {
        let next = match &self.known {
            Some(known) => next_name(&known.name),
            None => format!("pilot.local/{:08x}", u32::from_ne_bytes(random::bytes()?)),
        };
        match (self.at_hand, self.known) {
            (Some(key @ LogKey::Helper(_)), Some(known)) => {
                let offered = key.verifier();
                if offered.public_key != known.public_key && offered.name == next {
                    return Ok(key);
                }
                Err(Failure::Refused(format!(
                    "nothing was restored: entries are missing, so the log has to continue under a new key, and Pilot cannot make one where log.signer keeps it.\n\
                     Fix: make another Ed25519 key there and keep the old one; in [log.signer], let command use the new key and set name = \"{next}\"; then run this again."
                )))
            }
            (Some(key @ LogKey::Helper(_)), None) => Ok(key),
            _ => {
                let key = NoteKey::generate(&next, &random::bytes()?);
                Ok(key.map_err(|error| Failure::Environment(error.to_string()))?.into())
            }
        }
    }
}

/// The existing key, or the one in the backup.
fn from_files(config: &Config, backup: Option<&Path>) -> Result<Option<NoteKey>, Failure> {
    if config.log_key_path().exists() {
        return Ok(Some(log_key::load_checked(config)?));
    }
    let there = backup.map(|directory| directory.join(backup::KEY)).filter(|path| path.exists());
    Ok(there.map(|path| log_key::load(&path)).transpose()?)
}

fn next_name(name: &str) -> String {
    match name.rsplit_once(".r").and_then(|(base, number)| Some((base, number.parse::<u32>().ok()?))) {
        Some((base, number)) => format!("{base}.r{}", number + 1),
        None => format!("{name}.r2"),
    }
}
