//! What is in a backup: each file with its digest, and the size of the ledger.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use pilot_core::time::Time;
use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::note::{NoteKey, VerifierKey};
use pilot_store::archive::Report;
use pilot_store::engines;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::layout;
use crate::exit::Failure;

pub(super) const NAME: &str = "manifest.json";
const SCHEMA_VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub schema_version: u32,
    pub version: String,
    pub made_at: Time,
    pub entries: u64,
    pub root: Option<String>,
    /// How many entries the checkpoint in the backup covers.
    pub signed_entries: Option<u64>,
    pub verifier_key: String,
    pub files: Vec<File>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub name: String,
    pub bytes: u64,
    pub sha256: String,
}

impl Manifest {
    pub(crate) fn make(
        directory: &Path,
        made_at: Time,
        report: &Report,
        note: Option<&str>,
        key: &VerifierKey,
    ) -> Result<Manifest, Failure> {
        let signed = note.and_then(|note| Checkpoint::open(note, key).ok());
        Ok(Manifest {
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            made_at,
            entries: report.entries,
            root: report.root.clone(),
            signed_entries: signed.map(|checkpoint| checkpoint.size),
            verifier_key: key.to_string(),
            files: files(directory)?,
        })
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, Failure> {
        serde_json::to_vec_pretty(self).map_err(|error| Failure::environment("JSON", error))
    }

    /// Reads the manifest of a backup and compares every file with it.
    pub(crate) fn read(directory: &Path) -> Result<Manifest, Failure> {
        /// Read first: a newer manifest is not a damaged one, whatever else is in it.
        #[derive(Deserialize)]
        struct Format {
            schema_version: u32,
        }
        let path = directory.join(NAME);
        let bytes = fs::read(&path).map_err(|error| {
            Failure::Usage(format!(
                "{}: cannot be read ({error}); is this a directory made by `pilot backup`?",
                path.display()
            ))
        })?;
        let wrong = |what: String| Failure::Refused(format!("{}: the backup is damaged: {what}", directory.display()));
        let unreadable = |error| wrong(format!("{NAME}: {error}"));
        let Format { schema_version } = serde_json::from_slice(&bytes).map_err(unreadable)?;
        if schema_version > SCHEMA_VERSION {
            let newer = format!("was made by a newer version of pilot (schema_version {schema_version})");
            return Err(Failure::Refused(format!("{}: {newer}; use that version", path.display())));
        }
        let manifest: Manifest = serde_json::from_slice(&bytes).map_err(unreadable)?;
        if manifest.schema_version != SCHEMA_VERSION {
            return Err(wrong(format!("{NAME}: schema_version {schema_version} is not supported")));
        }
        let present: Vec<_> = files(directory)?.into_iter().filter(|file| file.name != NAME).collect();
        let missing = manifest.files.iter().find(|file| !present.contains(file));
        let added = present.iter().find(|file| manifest.files.iter().all(|known| known.name != file.name));
        match (missing, added) {
            (Some(file), _) => Err(wrong(format!("{} is missing or changed", file.name))),
            (None, Some(file)) => Err(wrong(format!("{} was not part of it", file.name))),
            (None, None) => Ok(manifest),
        }
    }

    /// Compares what the manifest says about the ledger with the files: the manifest contains the files' digests, but
    /// nothing contains its own.
    pub(crate) fn check_claims(&self, directory: &Path, report: &Report) -> Result<(), Failure> {
        let mut wrong = Vec::new();
        if self.entries != report.entries {
            wrong.push(format!("entries is {}, but the database has {}", self.entries, report.entries));
        }
        if self.root != report.root {
            wrong.push("root is not the root of the database".to_owned());
        }
        match VerifierKey::parse(&self.verifier_key) {
            Ok(key) => self.check_signed(directory, &key, &mut wrong)?,
            Err(error) => wrong.push(format!("verifier_key is not valid: {error}")),
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let wrong = wrong.join("\n");
        Err(Failure::Refused(format!(
            "{}: the backup is damaged: {NAME} does not match its files:\n{wrong}",
            directory.display()
        )))
    }

    /// Checks the key and the checkpoint, if they are in the backup.
    fn check_signed(&self, directory: &Path, key: &VerifierKey, wrong: &mut Vec<String>) -> Result<(), Failure> {
        let read = |name: &str| -> Result<Option<String>, Failure> {
            let path = directory.join(name);
            match fs::read_to_string(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                read => read.map(Some).map_err(|error| Failure::environment(path.display(), error)),
            }
        };
        let secret = read(layout::KEY)?.map(|text| NoteKey::parse(&text));
        match secret {
            Some(Err(error)) => wrong.push(format!("{} cannot be used: {error}", layout::KEY)),
            Some(Ok(secret)) if secret.verifier().to_string() != self.verifier_key => {
                wrong.push(format!("verifier_key is not that of {}", layout::KEY));
            }
            _ => {}
        }
        let signed = read(layout::CHECKPOINT)?.map(|note| Checkpoint::open(&note, key));
        match (&signed, self.signed_entries) {
            (Some(Err(error)), _) => {
                wrong.push(format!("verifier_key does not match the signature of {} ({error})", layout::CHECKPOINT));
            }
            (Some(Ok(checkpoint)), claimed) if claimed != Some(checkpoint.size) => {
                wrong.push(format!("signed_entries is not the {} of {}", checkpoint.size, layout::CHECKPOINT));
            }
            (None, Some(_)) => wrong.push(format!("signed_entries is given, but there is no {}", layout::CHECKPOINT)),
            _ => {}
        }
        if let Some(Ok(Checkpoint { size, root, .. })) = signed {
            let found = engines::archive_in_file(directory.join(layout::DATABASE)).root_at(size);
            if found.map_err(|error| Failure::Environment(error.to_string()))? != Some(root) {
                wrong.push(format!("{} does not match the database at {size} entries", layout::CHECKPOINT));
            }
        }
        Ok(())
    }

    pub(crate) fn in_words(&self, out: &Path) -> String {
        let has_key = self.files.iter().any(|file| file.name == layout::KEY);
        let key = if has_key {
            "It contains the log signing key: protect it like the key itself."
        } else {
            "Not in it: the log signing key and the credential file. Keep copies of both elsewhere."
        };
        let signed = match self.signed_entries {
            Some(size) => format!("{size} of them covered by its checkpoint"),
            None => "WITHOUT a checkpoint: the second place was empty".to_owned(),
        };
        format!("{}: a verified backup of {} entries, {signed}.\n{key}", out.display(), self.entries)
    }
}

/// Every file below the directory, sorted by name.
fn files(directory: &Path) -> Result<Vec<File>, Failure> {
    let (mut found, mut directories) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(below) = directories.pop() {
        let here = directory.join(&below);
        let failed = |error: std::io::Error| Failure::environment(here.display(), error);
        for entry in fs::read_dir(&here).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = below.join(entry.file_name());
            if entry.file_type().map_err(failed)?.is_dir() {
                directories.push(name);
            } else {
                found.push(describe(directory, &name).map_err(failed)?);
            }
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

fn describe(directory: &Path, name: &Path) -> std::io::Result<File> {
    let mut file = fs::File::open(directory.join(name))?;
    let (mut hash, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 20]);
    loop {
        let read = file.read(&mut buffer)?;
        let Some(part) = buffer.get(..read).filter(|part| !part.is_empty()) else { break };
        hash.update(part);
        bytes += part.len() as u64;
    }
    let digest: [u8; 32] = hash.finalize().into();
    let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(File { name: name.display().to_string(), bytes, sha256 })
}

/// A configuration without anything that could be a secret: the credentials of a database are part of its address.
pub(crate) fn redact_config(text: &str) -> String {
    let mut redacted = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        redacted.push_str(before);
        redacted.push_str("://");
        let ends = |c: char| c.is_whitespace() || "\"'/?#,".contains(c);
        let authority = after.get(..after.find(ends).unwrap_or(after.len())).unwrap_or("");
        if let Some(at) = authority.rfind('@') {
            redacted.push_str("(withheld)");
            rest = after.get(at..).unwrap_or("");
        } else {
            rest = after;
        }
    }
    redacted.push_str(rest);
    let secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["password", "secret", "token", "private"].iter().any(|word| name.contains(word))
    };
    let line = |line: &str| match line.split_once('=') {
        Some((name, _)) if secret(name) && !name.contains("_file") => format!("{name}= \"(withheld)\"\n"),
        _ => format!("{line}\n"),
    };
    redacted.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::redact_config;

    #[test]
    fn a_configuration_keeps_its_paths_and_loses_its_passwords() {
        let text = "[store]\nurl = \"postgres://ana:pa:ss@db/pilot\"\nclient_secret = 'x'\ntoken_file = \"t\"\n[log]\nwitnesses = [{ url = \"https://w.example/a@b\" }]\n";
        let expected = "[store]\nurl = \"postgres://(withheld)@db/pilot\"\nclient_secret = \"(withheld)\"\ntoken_file = \"t\"\n[log]\nwitnesses = [{ url = \"https://w.example/a@b\" }]\n";
        assert_eq!(redact_config(text), expected);
    }
}
