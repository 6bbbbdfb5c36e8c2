//! Opens a bundle: checks the signature and hashes, and parses every file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use pilot_core::document::ContentDigest;
use pilot_core::entry::{ENTRY_VERSION, Entry, EntryError};
use pilot_core::role_map::RoleMap;
use pilot_core::workflow::Definition;
use sha2::{Digest, Sha256};

use super::verdict::{Check, Fault};
use crate::bundle::zip::{Packed, read};
use crate::bundle::{ENTRIES_PER_FILE, MANIFEST, Manifest, ManifestError, Piece, REPORT, entries_path};
use crate::note::{Note, NoteError, VerifierKey};

/// An entry with its bytes and where it is.
pub(crate) struct Held<'b> {
    pub bytes: &'b [u8],
    pub entry: Entry,
    pub file: &'b str,
}

/// Everything in a bundle whose bytes are those the log signed.
pub(crate) struct Contents<'b> {
    pub manifest: Manifest,
    /// Files that are listed, absent, and allowed to be.
    pub left_out: Vec<String>,
    pub texts: BTreeMap<&'b str, &'b str>,
    /// Sorted by index.
    pub entries: Vec<Held<'b>>,
    /// Paths to the root, as text, by index.
    pub proofs: BTreeMap<u64, (&'b str, &'b str)>,
    /// Cosigned checkpoints, and consistency proofs up to the newest one, as paths and texts, by size.
    pub kept: BTreeMap<u64, (&'b str, &'b str)>,
    pub consistencies: BTreeMap<u64, (&'b str, &'b str)>,
    pub documents: BTreeMap<ContentDigest, &'b [u8]>,
    /// By their digest, `sha256:…`.
    pub definitions: BTreeMap<String, Arc<Definition>>,
    pub role_maps: BTreeMap<String, RoleMap>,
    pub file_count: usize,
}

/// Opens a bundle, or says what is wrong with the container, the manifest or the files.
pub(crate) fn open<'b>(bundle: &'b [u8], key: &VerifierKey) -> Result<Contents<'b>, Vec<Fault>> {
    let files = read(bundle).map_err(|fault| vec![Fault::new(Check::Container, "container", fault.to_string())])?;
    let manifest = manifest(&files, key).map_err(|fault| vec![fault])?;
    let mut faults = Vec::new();
    let left_out = compare(&files, &manifest, &mut faults);
    if !faults.is_empty() {
        return Err(faults);
    }
    let contents = Contents {
        left_out,
        manifest,
        texts: BTreeMap::new(),
        entries: Vec::new(),
        proofs: BTreeMap::new(),
        kept: BTreeMap::new(),
        consistencies: BTreeMap::new(),
        documents: BTreeMap::new(),
        definitions: BTreeMap::new(),
        role_maps: BTreeMap::new(),
        // Without the report, so that a report generated again from its bundle is the same.
        file_count: files.iter().filter(|file| file.path != REPORT).count(),
    };
    contents.sorted(&files)
}

fn manifest(files: &[Packed<'_>], key: &VerifierKey) -> Result<Manifest, Fault> {
    let wrong = |what: String| Fault::new(Check::Manifest, "manifest", what).in_file(MANIFEST);
    let last = files.last().filter(|file| file.path == MANIFEST);
    let last = last.ok_or_else(|| wrong("it is not the last file, where it belongs".into()))?;
    if !last.is_whole {
        return Err(wrong("its bytes were changed: they do not match its checksum".into()));
    }
    let note = std::str::from_utf8(last.bytes).map_err(|_| wrong("it is not text".into()))?;
    Manifest::open(note, key).map_err(|error| match error {
        ManifestError::Note(NoteError::Unsigned) => wrong(format!("it is signed by {}, not by {key}", signers(note))),
        error => wrong(error.to_string()),
    })
}

fn signers(note: &str) -> String {
    let note = Note::parse(note);
    let lines = note.iter().flat_map(|note| &note.signatures);
    lines.map(|line| format!("{}+{}", line.name, HEXLOWER.encode(&line.id))).collect::<Vec<_>>().join(" and ")
}

/// Compares the files with the list, in its order. Returns what was left out.
fn compare(files: &[Packed<'_>], manifest: &Manifest, faults: &mut Vec<Fault>) -> Vec<String> {
    let wrong = |path: &str, what: &str| Fault::new(Check::Files, "files", what).in_file(path);
    let there: BTreeSet<&str> = files.iter().map(|file| file.path).collect();
    let listed: BTreeMap<&str, &str> = manifest.files.iter().map(|file| (&*file.path, file.sha256.as_str())).collect();
    if listed.len() != manifest.files.len() {
        faults.push(wrong(MANIFEST, "it lists a file twice"));
    }
    let mut left_out = Vec::new();
    for path in manifest.files.iter().map(|file| &*file.path).filter(|path| !there.contains(path)) {
        if Piece::of(path).is_some_and(|piece| piece.may_be_left_out()) {
            left_out.push(path.to_owned());
        } else {
            faults.push(wrong(path, "the manifest lists it, but it is missing"));
        }
    }
    let mut expected = manifest.files.iter().map(|file| &*file.path).filter(|path| there.contains(path));
    for file in files.iter().filter(|file| file.path != MANIFEST) {
        let Some(sha256) = listed.get(file.path) else {
            faults.push(wrong(file.path, "it is not listed in the manifest"));
            continue;
        };
        let in_order = expected.next() == Some(file.path);
        if HEXLOWER.encode(&Sha256::digest(file.bytes)) != *sha256 || !file.is_whole {
            faults.push(wrong(file.path, "its bytes were changed: they do not match the hash in the manifest"));
        } else if !in_order {
            faults.push(wrong(file.path, "it is not at the position the manifest gives"));
        }
    }
    left_out
}

impl<'b> Contents<'b> {
    fn sorted(mut self, files: &[Packed<'b>]) -> Result<Contents<'b>, Vec<Fault>> {
        let mut faults = Vec::new();
        for file in files {
            if let Err(fault) = self.take(file, &mut faults) {
                faults.push(fault);
            }
        }
        if faults.is_empty() { Ok(self) } else { Err(faults) }
    }

    fn take(&mut self, file: &Packed<'b>, faults: &mut Vec<Fault>) -> Result<(), Fault> {
        let wrong = |what: String| Fault::new(Check::Files, "format", what).in_file(file.path);
        let text = || std::str::from_utf8(file.bytes).map_err(|_| wrong("it is not text".into()));
        let own_digest = || ContentDigest::of_bytes(file.bytes);
        let same = |hex: &str| own_digest().as_str().strip_prefix("sha256:") == Some(hex);
        match Piece::of(file.path).ok_or_else(|| wrong("a bundle has no file with this name".into()))? {
            Piece::Manifest | Piece::Report => {}
            Piece::Checkpoint | Piece::CheckpointFrom | Piece::CheckpointTo | Piece::EdgeFrom | Piece::Consistency => {
                self.texts.insert(file.path, text()?);
            }
            Piece::Entries(first) => self.entries(file, first, faults),
            Piece::Proof(index) => {
                self.proofs.insert(index, (file.path, text()?));
            }
            Piece::KeptCheckpoint(size) => {
                self.kept.insert(size, (file.path, text()?));
            }
            Piece::ConsistencyFrom(size) => {
                self.consistencies.insert(size, (file.path, text()?));
            }
            Piece::Document(hex) if same(hex) => {
                self.documents.insert(own_digest(), file.bytes);
            }
            Piece::Definition(hex) if same(hex) => {
                let definition = Definition::from_canonical(file.bytes);
                let definition = definition.map_err(|error| wrong(error.to_string()))?;
                self.definitions.insert(definition.digest().to_string(), Arc::new(definition));
            }
            // Older bundles have only the text. If the rules are there as JSON, the text must be of the same ones.
            Piece::DefinitionText(hex) => {
                let digest = Definition::digest_of(text()?).map_err(|flaws| wrong(flaws.to_string()))?;
                if digest.strip_prefix("sha256:") != Some(hex) {
                    return Err(wrong(format!("its rules have the digest {digest}")));
                }
                if !self.definitions.contains_key(&*digest) {
                    let definition = Definition::parse(text()?).map_err(|flaws| wrong(flaws.to_string()))?;
                    self.definitions.insert(digest.to_string(), Arc::new(definition));
                }
            }
            Piece::RoleMap(hex) if same(hex) => {
                let map = RoleMap::parse(file.bytes)
                    .map_err(|faults| wrong(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
                self.role_maps.insert(own_digest().as_str().to_owned(), map);
            }
            Piece::Document(_) | Piece::Definition(_) | Piece::RoleMap(_) => {
                return Err(wrong(format!("its bytes have the digest {}", own_digest())));
            }
        }
        Ok(())
    }

    fn entries(&mut self, file: &Packed<'b>, first: u64, faults: &mut Vec<Fault>) {
        let fault = |index: Option<u64>, what: String| {
            let fault = Fault::new(Check::Files, "format", what).in_file(file.path);
            Fault { entry: index, ..fault }
        };
        let Some(lines) = file.bytes.strip_suffix(b"\n") else {
            faults.push(fault(None, "its last line has no line break".into()));
            return;
        };
        let lines: Vec<&'b [u8]> = lines.split(|byte| *byte == b'\n').collect();
        if lines.len() > ENTRIES_PER_FILE {
            faults.push(fault(None, format!("it has more than {ENTRIES_PER_FILE} entries")));
        }
        for (number, bytes) in lines.into_iter().enumerate() {
            let entry = match Entry::parse(bytes) {
                Ok(entry) => entry,
                Err(EntryError::Newer { v }) => {
                    faults.push(fault(None, format!("line {}: its format {v} is not known", number + 1)));
                    continue;
                }
                Err(EntryError::Malformed(error)) => {
                    faults.push(fault(None, format!("line {} is not an entry: {error}", number + 1)));
                    continue;
                }
            };
            let index = entry.index;
            if entry.v != ENTRY_VERSION {
                faults.push(fault(Some(index), format!("its format {} is not supported", entry.v)));
            } else if entry.to_bytes().ok().as_deref() != Some(bytes) {
                faults.push(fault(Some(index), "it is not in canonical form".into()));
            }
            if number == 0 && index != first {
                faults.push(fault(
                    Some(index),
                    format!("a file that begins with it must be named {}", entries_path(index)),
                ));
            }
            if self.entries.last().is_some_and(|last| last.entry.index >= index) {
                faults.push(fault(Some(index), "it is not in the order of the ledger".into()));
            }
            self.entries.push(Held { bytes, entry, file: file.path });
        }
    }
}
