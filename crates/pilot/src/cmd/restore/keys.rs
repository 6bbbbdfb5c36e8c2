//! The keys of a restore: the one that the log had, and the one under which it continues.

use std::fs;
use std::path::{Path, PathBuf};

use pilot_evidence::note::{NoteKey, VerifierKey};
use pilot_setup::config::Config;
use pilot_setup::log_key::{self, LogKey};
use pilot_setup::{private_file, random};

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
            _ => Err(Failure::Refused("nothing was restored: the log's key is not available".into())),
        }
    }

    /// Another key for a log that may lack entries, with another name too: to witnesses and auditors it is a different
    /// log, which begins with what is left of this one.
    pub(super) fn renew(self, config: &Config) -> Result<LogKey, Failure> {
        match (self.at_hand, self.known) {
            (Some(key @ LogKey::Helper(_)), known) => offered_as_new(key, known, config),
            (_, known) => {
                let next = match &known {
                    Some(known) => next_name(&known.name, None),
                    None => format!("pilot.local/{:08x}", u32::from_ne_bytes(random::bytes()?)),
                };
                let key = NoteKey::generate(&next, &random::bytes()?);
                Ok(key.map_err(|error| Failure::Environment(error.to_string()))?.into())
            }
        }
    }
}

/// A new key in a file was never used. One that a signer offers may have been, so its log gets a name that no log ever had:
/// the first, refused, attempt chooses it and writes it down.
fn offered_as_new(key: LogKey, known: Option<VerifierKey>, config: &Config) -> Result<LogKey, Failure> {
    let Some(known) = known else {
        let path = config.log_public_key_path();
        return Err(Failure::Refused(format!(
            "nothing was restored: {} is missing, so nobody can tell whether log.signer has this log's key or another one.\n\
             Fix: write the line that `pilot log key` printed for this log into the file (a backup's manifest.json has it as verifier_key, and so does everyone who checks the log), and run this again.",
            path.display()
        )));
    };
    let path = next_name_path(config);
    let chosen = fs::read_to_string(&path).ok().map(|text| text.trim().to_owned());
    let offered = key.verifier();
    // An interrupted attempt has already made it the log's key; nothing was served under it.
    let is_new = offered.public_key != known.public_key || Some(&known.name) == chosen.as_ref();
    if is_new && Some(&offered.name) == chosen.as_ref() {
        return Ok(key);
    }
    let next = match chosen {
        Some(next) => Ok(next),
        None => choose(&path, &known.name),
    }?;
    Err(Failure::Refused(format!(
        "nothing was restored: entries are missing, so the log has to continue under a new key, and Pilot cannot make one where log.signer keeps it.\n\
         Fix: make another Ed25519 key there and keep the old one; in [log.signer], let command use the new key and set name = \"{next}\"; then run this again."
    )))
}

fn choose(path: &Path, name: &str) -> Result<String, Failure> {
    let next = next_name(name, Some(u32::from_ne_bytes(random::bytes()?)));
    let written = private_file::replace(path, format!("{next}\n").as_bytes());
    written.map_err(|error| Failure::environment(path.display(), error))?;
    Ok(next)
}

/// Where the name of a log that is about to begin is written down.
pub(super) fn next_name_path(config: &Config) -> PathBuf {
    config.data_dir.join("log.next")
}

/// The existing key, or the one in the backup.
fn from_files(config: &Config, backup: Option<&Path>) -> Result<Option<NoteKey>, Failure> {
    if config.log_key_path().exists() {
        return Ok(Some(log_key::load_checked(config)?));
    }
    let there = backup.map(|directory| directory.join(backup::KEY)).filter(|path| path.exists());
    let Some(key) = there.map(|path| log_key::load(&path)).transpose()? else { return Ok(None) };
    let public = config.log_public_key_path();
    if public.exists() && log_key::read_public(&public)? != key.verifier() {
        let public = public.display();
        return Err(Failure::Refused(format!("nothing was restored: the backup's log.key is not the key in {public}")));
    }
    Ok(Some(key))
}

/// The old name and a number, and for a key that may have been used before a mark that no other name has.
fn next_name(name: &str, mark: Option<u32>) -> String {
    let (base, number) = lineage(name);
    let mark = mark.map_or_else(String::new, |mark| format!("-{mark:08x}"));
    format!("{base}.r{}{mark}", number + 1)
}

/// The name that a log began with, and how often it had to continue under a new one: `name.r2` and `name.r2-0123abcd` are
/// the second.
pub(super) fn lineage(name: &str) -> (&str, u32) {
    let split = || {
        let (base, rest) = name.rsplit_once(".r")?;
        let (number, mark) = rest.split_once('-').unwrap_or((rest, "00000000"));
        let is_mark = mark.len() == 8 && mark.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        (is_mark && is_number).then_some((base, number.parse().ok()?))
    };
    split().unwrap_or((name, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_continues_keeps_its_name_and_counts() {
        assert_eq!(next_name("log.example", None), "log.example.r2");
        assert_eq!(next_name("log.example.r2", None), "log.example.r3");
        assert_eq!(next_name("log.example", Some(0xAB)), "log.example.r2-000000ab");
        assert_eq!(next_name("log.example.r2-000000ab", Some(1)), "log.example.r3-00000001");
        for name in ["log.example", "a.r", "a.rx", "a.r2-", "a.r2-xyz", "a.r2-0123456"] {
            assert_eq!(lineage(name), (name, 1));
        }
    }
}
