//! Writing a bundle.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use pilot_core::document::ContentDigest;
use pilot_core::entry::Entry;
use pilot_core::sha256::sha256;
use pilot_core::time::Time;
use pilot_core::workflow::Definition;

use crate::bundle::zip::{ZipWriter, is_plain};
use crate::bundle::{
    Absence, CHECKPOINT, CHECKPOINT_FROM, CHECKPOINT_TO, CONSISTENCY, EDGE_FROM, ENTRIES_PER_FILE, ListedFile,
    MANIFEST, Manifest, Piece, REPORT, Scope, consistency_path, definition_path, definition_text_path, document_path,
    entries_path, kept_checkpoint_path, proof_path, role_map_path, stamped_path, timestamp_path,
};
use crate::merkle::Hash;
use crate::note::{NoteError, NoteKey, VerifierKey};
use crate::tlog_proof::TlogProof;
use crate::witness::hash_lines;

#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    #[error("{0} is not a valid path in a bundle, or already exists")]
    Path(String),
    #[error("{0} is 4 GiB or larger; choose a shorter period")]
    TooLarge(String),
    #[error("an entry cannot be read: {0}")]
    Entry(#[from] serde_json::Error),
    #[error("a definition cannot be read: {0}")]
    Definition(String),
    #[error("the report could not be generated: {0}")]
    Report(String),
    #[error("the manifest: {0}")]
    Signature(#[from] NoteError),
}

/// Writes the files of a bundle one after another. It holds one file at a time: what is ready can be sent immediately.
#[derive(Clone)]
pub struct BundleWriter {
    zip: ZipWriter,
    scope: Scope,
    made: Time,
    cosigned: Option<(usize, usize)>,
    absent: BTreeMap<String, Absence>,
    files: Vec<ListedFile>,
    paths: HashSet<Arc<str>>,
}

impl BundleWriter {
    pub fn new(scope: Scope, made: Time) -> BundleWriter {
        let (zip, files, paths) = (ZipWriter::default(), Vec::new(), HashSet::new());
        BundleWriter { zip, scope, made, cosigned: None, absent: BTreeMap::new(), files, paths }
    }

    /// How many of the log's own witnesses have cosigned the checkpoint, and how many it has.
    pub fn cosigned(&mut self, count: usize, all: usize) {
        self.cosigned = Some((count, all));
    }

    /// Says why something is not in the bundle: a document by its digest, [`crate::bundle::ALL_DOCUMENTS`], or the
    /// report.
    pub fn absent(&mut self, what: impl Into<String>, why: Absence) {
        self.absent.insert(what.into(), why);
    }

    /// Adds one file. Its path must be one of the format, and not used yet.
    pub fn add(&mut self, path: &str, bytes: &[u8]) -> Result<(), BundleError> {
        self.add_hashed(path, sha256([bytes]), bytes)
    }

    fn add_hashed(&mut self, path: &str, sha256: [u8; 32], bytes: &[u8]) -> Result<(), BundleError> {
        let known = Piece::of(path).is_some_and(|piece| piece != Piece::Manifest);
        // One string for the list, the manifest and the container: a period may have very many files.
        let shared: Arc<str> = path.into();
        if !known || !is_plain(path) || !self.paths.insert(Arc::clone(&shared)) {
            return Err(BundleError::Path(path.to_owned()));
        }
        self.files.push(ListedFile { sha256, path: Arc::clone(&shared) });
        if self.zip.add(shared, bytes) { Ok(()) } else { Err(BundleError::TooLarge(path.to_owned())) }
    }

    /// Adds one file unless it is already there: documents and definitions are identified by their digest.
    fn add_once(&mut self, path: &str, bytes: &[u8]) -> Result<(), BundleError> {
        if self.paths.contains(path) { Ok(()) } else { self.add(path, bytes) }
    }

    /// The log's newest signed checkpoint, with any cosignatures.
    pub fn checkpoint(&mut self, note: &str) -> Result<(), BundleError> {
        self.add(CHECKPOINT, note.as_bytes())
    }

    /// What proves that a period's entries are complete.
    pub fn period(&mut self, parts: &PeriodParts) -> Result<(), BundleError> {
        self.add(CHECKPOINT_FROM, parts.from.as_bytes())?;
        self.add(CHECKPOINT_TO, parts.to.as_bytes())?;
        self.add(EDGE_FROM, hash_lines(&parts.edge).as_bytes())?;
        self.add(CONSISTENCY, hash_lines(&parts.consistency).as_bytes())
    }

    /// Entries in ascending order, as they are stored: at most [`ENTRIES_PER_FILE`].
    pub fn entries(&mut self, first: u64, entries: &[Vec<u8>]) -> Result<(), BundleError> {
        let mut lines = Vec::with_capacity(entries.iter().map(|entry| entry.len() + 1).sum());
        for entry in entries {
            lines.extend_from_slice(entry);
            lines.push(b'\n');
        }
        self.add(&entries_path(first), &lines)
    }

    /// A document as it is stored.
    pub fn document(&mut self, bytes: &[u8]) -> Result<(), BundleError> {
        // A document's digest is also the hash for the manifest.
        let hash = sha256([bytes]);
        let path = document_path(&HEXLOWER.encode(&hash));
        if self.paths.contains(&*path) { Ok(()) } else { self.add_hashed(&path, hash, bytes) }
    }

    /// A definition as canonical JSON, whose SHA-256 is the digest by which items refer to it; and, for people, the text
    /// it was read from.
    pub fn definition(&mut self, definition: &Definition, text: &str) -> Result<(), BundleError> {
        self.add_once(&definition_path(definition.digest()), &definition.to_canonical())?;
        self.add_once(&definition_text_path(definition.digest()), text.as_bytes())
    }

    /// The role map as it was read at a start.
    pub fn role_map(&mut self, bytes: &[u8]) -> Result<(), BundleError> {
        self.add_once(&role_map_path(ContentDigest::of_bytes(bytes).as_str()), bytes)
    }

    /// Proves that one entry is in the tree of the bundle's checkpoint.
    pub fn proof(&mut self, index: u64, path: &[Hash], checkpoint: &str) -> Result<(), BundleError> {
        let proof = TlogProof { index, path: path.to_vec(), checkpoint };
        self.add(&proof_path(index), proof.to_text().as_bytes())
    }

    /// A cosigned checkpoint, which dates entries.
    pub fn kept_checkpoint(&mut self, size: u64, note: &str) -> Result<(), BundleError> {
        self.add_once(&kept_checkpoint_path(size), note.as_bytes())
    }

    /// A checkpoint that a timestamping authority was shown, and its reply.
    pub fn timestamp(&mut self, size: u64, note: &str, reply: &[u8]) -> Result<(), BundleError> {
        self.add_once(&stamped_path(size), note.as_bytes())?;
        self.add_once(&timestamp_path(size), reply)
    }

    /// Proves that the bundle's checkpoint continues the tree of this size.
    pub fn consistency_from(&mut self, size: u64, proof: &[Hash]) -> Result<(), BundleError> {
        self.add_once(&consistency_path(size), hash_lines(proof).as_bytes())
    }

    pub fn report(&mut self, html: &str) -> Result<(), BundleError> {
        self.add(REPORT, html.as_bytes())
    }

    /// How many bytes are ready to be sent.
    pub fn ready_bytes(&self) -> usize {
        self.zip.ready_bytes()
    }

    /// Takes the bytes that are ready to be sent.
    pub fn take_ready(&mut self) -> Vec<u8> {
        self.zip.take_ready()
    }

    /// Nothing more is added: what is left is to sign the manifest.
    pub fn close(self, origin: &str) -> Closed {
        let BundleWriter { zip, scope, made, cosigned, absent, files, paths } = self;
        drop(paths);
        let manifest = Manifest { origin: origin.to_owned(), scope, made, cosigned, absent, files };
        Closed { zip, manifest: manifest.text() }
    }

    /// Signs the manifest and returns the rest of the bundle.
    pub fn finish(self, key: &NoteKey) -> Result<Vec<u8>, BundleError> {
        let verifier = key.verifier();
        let closed = self.close(&verifier.name);
        let signature = key.sign_bytes(closed.manifest().as_bytes());
        closed.finish(&verifier, &signature)
    }
}

/// A bundle that lacks only the signature of its manifest.
pub struct Closed {
    zip: ZipWriter,
    manifest: String,
}

impl Closed {
    /// What the log's key has to sign.
    pub fn manifest(&self) -> &str {
        &self.manifest
    }

    /// The rest of the bundle, if the signature of the manifest is by this key's private half.
    pub fn finish(self, key: &VerifierKey, signature: &[u8; 64]) -> Result<Vec<u8>, BundleError> {
        let Closed { mut zip, manifest } = self;
        let note = key.note(manifest, signature)?;
        if !zip.add(MANIFEST, note.as_bytes()) {
            return Err(BundleError::TooLarge(MANIFEST.to_owned()));
        }
        drop(note);
        Ok(zip.finish())
    }
}

/// Everything that goes into a bundle, for one that fits into memory.
#[derive(Debug, Clone)]
pub struct Parts {
    pub scope: Scope,
    pub made: Time,
    /// The log's newest signed checkpoint.
    pub checkpoint: String,
    /// Only for a period.
    pub period: Option<PeriodParts>,
    /// In ascending order, as stored. For an item: all entries about it, and the `service.started` in force at each of
    /// them. For a period: all its entries; before them the older entries of its items, and the `service.started` in
    /// force at each; and the entries just before and just after the period.
    pub entries: Vec<Vec<u8>>,
    pub documents: Vec<Vec<u8>>,
    /// Their texts.
    pub definitions: Vec<String>,
    pub role_maps: Vec<Vec<u8>>,
    /// Index and path to the root of the checkpoint: for a period, for each entry outside it; for an item, for every
    /// entry.
    pub proofs: Vec<(u64, Vec<Hash>)>,
    /// Cosigned checkpoints of earlier sizes, each with the proof that the newest continues it, unless the entries of a
    /// period show that.
    pub kept: Vec<(u64, String, Option<Vec<Hash>>)>,
    /// Timestamped checkpoints, with the replies of the authority.
    pub timestamps: Vec<(u64, String, Vec<u8>)>,
    /// What is missing, and why.
    pub absent: BTreeMap<String, Absence>,
    pub report: Option<String>,
}

#[derive(Debug, Clone)]
pub struct PeriodParts {
    /// Signed checkpoint of the tree before the period's first entry.
    pub from: String,
    /// Signed checkpoint of the tree with the period's last entry.
    pub to: String,
    /// [`crate::proof::peaks`] of the tree of `from`.
    pub edge: Vec<Hash>,
    /// From `to` to the newest checkpoint.
    pub consistency: Vec<Hash>,
}

/// A whole bundle.
pub fn assemble(parts: &Parts, key: &NoteKey) -> Result<Vec<u8>, BundleError> {
    let mut writer = BundleWriter::new(parts.scope.clone(), parts.made);
    writer.checkpoint(&parts.checkpoint)?;
    if let Some(period) = &parts.period {
        writer.period(period)?;
    }
    for role_map in &parts.role_maps {
        writer.role_map(role_map)?;
    }
    for text in &parts.definitions {
        let definition = Definition::parse(text);
        let definition = definition.map_err(|flaws| BundleError::Definition(flaws.to_string()))?;
        writer.definition(&definition, text)?;
    }
    for entries in parts.entries.chunks(ENTRIES_PER_FILE) {
        if let Some(first) = entries.first() {
            let first: Entry = serde_json::from_slice(first)?;
            writer.entries(first.index, entries)?;
        }
    }
    for document in &parts.documents {
        writer.document(document)?;
    }
    for (index, path) in &parts.proofs {
        writer.proof(*index, path, &parts.checkpoint)?;
    }
    for (size, note, proof) in &parts.kept {
        writer.kept_checkpoint(*size, note)?;
        if let Some(proof) = proof {
            writer.consistency_from(*size, proof)?;
        }
    }
    for (size, note, reply) in &parts.timestamps {
        writer.timestamp(*size, note, reply)?;
    }
    if let Some(report) = &parts.report {
        writer.report(report)?;
    }
    parts.absent.iter().for_each(|(what, why)| writer.absent(what, *why));
    writer.finish(key)
}
