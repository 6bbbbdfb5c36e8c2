//! The manifest: what a bundle is about and the SHA-256 of every file in it, signed by the log.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use pilot_core::item::ItemId;
use pilot_core::time::Time;
use serde::Serialize;

use crate::bundle::zip::is_plain;
use crate::note::{Note, NoteError, NoteKey, VerifierKey};
use crate::witness::number;

/// Not a valid origin: a log's name has no spaces, so a manifest is never mistaken for a checkpoint.
const FIRST_LINE: &str = "pilot evidence manifest v1";

/// What a bundle is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Every entry about one item.
    Item(ItemId),
    /// Every entry from one time to another: the entries with an index of at least `first` and below `end`.
    Period { from: Time, to: Time, first: u64, end: u64 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub origin: String,
    pub scope: Scope,
    pub made: Time,
    /// How many of the log's own witnesses had cosigned the checkpoint, and how many it has.
    pub cosigned: Option<(usize, usize)>,
    /// What the bundle lacks, and why: a document by its digest, all `documents`, or the `report`.
    pub absent: BTreeMap<String, Absence>,
    /// In the order of the container.
    pub files: Vec<ListedFile>,
}

/// Why something is not in a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Absence {
    /// It was erased from the ledger.
    Erased,
    /// It contains a live token.
    Token,
    /// The bundle was asked for without it.
    NotAskedFor,
    /// It is too long to be searched for tokens.
    TooLong,
    /// It could not be generated.
    Failed,
}

impl Absence {
    const ALL: [Absence; 5] =
        [Absence::Erased, Absence::Token, Absence::NotAskedFor, Absence::TooLong, Absence::Failed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Absence::Erased => "erased",
            Absence::Token => "token",
            Absence::NotAskedFor => "not_asked_for",
            Absence::TooLong => "too_long",
            Absence::Failed => "failed",
        }
    }
}

/// A SHA-256 in hexadecimal.
const HEX_CHARS: usize = 64;

/// Stands for every document, in [`Manifest::absent`].
pub const ALL_DOCUMENTS: &str = "documents";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    pub sha256: [u8; 32],
    pub path: Arc<str>,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ManifestError {
    #[error(transparent)]
    Note(#[from] NoteError),
    #[error("this is not a bundle manifest")]
    Format,
    #[error("the manifest must carry the log's signature and no other")]
    Signatures,
    #[error("the manifest belongs to another log")]
    Origin,
}

impl Manifest {
    pub fn text(&self) -> String {
        let scope = match &self.scope {
            Scope::Item(id) => format!("scope item {id}"),
            Scope::Period { from, to, first, end } => format!("scope period {from} {to}\nrange {first} {end}"),
        };
        let mut text = format!("{FIRST_LINE}\norigin {}\n{scope}\nmade {}\n", self.origin, self.made);
        if let Some((count, all)) = self.cosigned {
            let _ = writeln!(text, "cosigned {count} of {all}");
        }
        for (what, why) in &self.absent {
            text.extend(["absent ", what, " ", why.as_str(), "\n"]);
        }
        // For a long period the list is by far the largest thing in memory, so it is allocated once.
        text.reserve_exact(self.files.iter().map(|file| HEX_CHARS + file.path.len() + 3).sum());
        for ListedFile { sha256, path } in &self.files {
            HEXLOWER.encode_append(sha256, &mut text);
            text.extend(["  ", &**path, "\n"]);
        }
        text
    }

    pub fn sign(&self, key: &NoteKey) -> String {
        let text = self.text();
        let signature = key.sign(&text);
        format!("{text}\n{signature}\n")
    }

    /// Reads the text of a manifest; anything that would not be written exactly this way is refused.
    pub fn parse(text: &str) -> Option<Manifest> {
        let mut lines = text.split_terminator('\n');
        if lines.next()? != FIRST_LINE {
            return None;
        }
        let origin = lines.next()?.strip_prefix("origin ")?.to_owned();
        let scope = lines.next()?.strip_prefix("scope ")?;
        let scope = match scope.split_once(' ')? {
            ("item", id) => Scope::Item(id.parse().ok()?),
            ("period", times) => {
                let (from, to) = times.split_once(' ')?;
                let (first, end) = lines.next()?.strip_prefix("range ")?.split_once(' ')?;
                let (from, to) = (from.parse().ok()?, to.parse().ok()?);
                Scope::Period { from, to, first: number(first)?, end: number(end)? }
            }
            _ => return None,
        };
        let made = lines.next()?.strip_prefix("made ")?.parse().ok()?;
        let mut lines = lines.peekable();
        let cosigned = lines.next_if(|line| line.starts_with("cosigned ")).map(cosigned);
        let mut absent = BTreeMap::new();
        while let Some(line) = lines.next_if(|line| line.starts_with("absent ")) {
            let (what, why) = line.strip_prefix("absent ")?.split_once(' ')?;
            absent.insert(what.to_owned(), Absence::ALL.into_iter().find(|absence| absence.as_str() == why)?);
        }
        let files = lines.map(listed).collect::<Option<_>>()?;
        let cosigned = match cosigned {
            Some(read) => Some(read?),
            None => None,
        };
        Some(Manifest { origin, scope, made, cosigned, absent, files }).filter(|manifest| manifest.text() == text)
    }

    /// Reads a signed manifest and checks the log's signature, which must be the only one, so that nobody can add a
    /// byte.
    pub fn open(note: &str, key: &VerifierKey) -> Result<Manifest, ManifestError> {
        let note = Note::parse(note)?;
        let text = note.opened_with(key)?;
        if note.signatures.len() != 1 {
            return Err(ManifestError::Signatures);
        }
        let manifest = Manifest::parse(text).ok_or(ManifestError::Format)?;
        if manifest.origin == key.name { Ok(manifest) } else { Err(ManifestError::Origin) }
    }
}

fn cosigned(line: &str) -> Option<(usize, usize)> {
    let (count, all) = line.strip_prefix("cosigned ")?.split_once(" of ")?;
    Some((count.parse().ok()?, all.parse().ok()?))
}

fn listed(line: &str) -> Option<ListedFile> {
    let (sha256, path) = line.split_once("  ")?;
    let sha256 = hash_of_hex(sha256)?;
    is_plain(path).then(|| ListedFile { sha256, path: path.into() })
}

/// The hash that is written in these 64 characters.
pub(crate) fn hash_of_hex(hex: &str) -> Option<[u8; 32]> {
    let hex: &[u8; HEX_CHARS] = hex.as_bytes().try_into().ok()?;
    let mut hash = [0; 32];
    HEXLOWER.decode_mut(hex, &mut hash).ok()?;
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::Checkpoint;

    fn manifest(scope: Scope) -> Manifest {
        let file = |path: &str| ListedFile { sha256: [0; 32], path: path.into() };
        let absent = [("report".to_owned(), Absence::TooLong), (format!("sha256:{}", "1".repeat(64)), Absence::Erased)];
        Manifest {
            origin: "log.example".into(),
            scope,
            made: Time::EPOCH,
            cosigned: Some((1, 2)),
            absent: absent.into(),
            files: vec![file("b"), file("a/c")],
        }
    }

    #[test]
    fn a_manifest_reads_as_it_is_written_and_is_no_checkpoint() {
        let key = NoteKey::generate("log.example", &[5; 32]).unwrap();
        let id = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        let period = Scope::Period { from: Time::EPOCH, to: Time::from_unix_micros(1), first: 0, end: 12 };
        for scope in [Scope::Item(id), period] {
            let manifest = manifest(scope);
            let note = manifest.sign(&key);
            assert_eq!(Manifest::open(&note, &key.verifier()), Ok(manifest), "{note}");
            assert!(Checkpoint::open(&note, &key.verifier()).is_err());
            let witness = crate::cosignature::CosignerKey::generate("w.example", &[1; 32]).unwrap();
            let longer = format!("{note}{}\n", witness.cosign("", 0));
            assert_eq!(Manifest::open(&longer, &key.verifier()), Err(ManifestError::Signatures));
            for at in 0..note.len() {
                let mut bytes = note.clone().into_bytes();
                bytes[at] ^= 1;
                let Ok(changed) = String::from_utf8(bytes) else { continue };
                assert!(Manifest::open(&changed, &key.verifier()).is_err(), "byte {at}");
            }
        }
    }

    #[test]
    fn sloppy_manifests_are_refused_though_they_are_signed() {
        let id: ItemId = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        let text = manifest(Scope::Item(id)).text();
        assert!(Manifest::parse(&text).is_some());
        for (part, instead) in [
            ("manifest v1", "manifest v2"),
            ("origin ", "from "),
            ("scope item", "scope thing"),
            ("made 1970-01-01T00:00:00.000000Z", "made 1970-01-01T00:00:00Z"),
            ("cosigned 1 of 2\n", "cosigned 1 of 2\ncosigned 1 of 2\n"),
            ("cosigned 1 of 2\n", "cosigned 01 of 2\n"),
            ("absent report", "absent  report"),
            ("too_long\n", "eaten\n"),
            ("absent report too_long\n", "absent sha256:2 erased\nabsent report too_long\n"),
            ("  b\n", " b\n"),
            ("  b\n", "  ../b\n"),
            ("  b\n", "  b\n\n"),
            ("  a/c\n", "  a/c"),
        ] {
            assert_eq!(Manifest::parse(&text.replace(part, instead)), None, "{instead:?}");
        }
    }
}
