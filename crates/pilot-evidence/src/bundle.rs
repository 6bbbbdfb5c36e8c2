//! Evidence bundles: one file an auditor takes away, in the format of docs/audit/evidence-format.md.

pub mod manifest;
pub mod redact;
pub mod source;
mod writer;
pub mod zip;

pub use manifest::{ALL_DOCUMENTS, Absence, ListedFile, Manifest, ManifestError, Scope};
pub use writer::{BundleError, BundleWriter, Parts, PeriodParts, assemble};

pub const MANIFEST: &str = "manifest";
pub const CHECKPOINT: &str = "checkpoint";
pub const CHECKPOINT_FROM: &str = "checkpoints/from";
pub const CHECKPOINT_TO: &str = "checkpoints/to";
pub const EDGE_FROM: &str = "proofs/from.edge";
pub const CONSISTENCY: &str = "proofs/consistency";
pub const REPORT: &str = "report.html";
const ENTRIES: &str = "entries/";
const DOCUMENTS: &str = "documents/";
const DEFINITIONS: &str = "definitions/";
const ROLE_MAPS: &str = "role-maps/";
const PROOFS: &str = "proofs/";
const CHECKPOINTS: &str = "checkpoints/";
const TIMESTAMPS: &str = "timestamps/";

/// The most entries in one file of a bundle.
pub const ENTRIES_PER_FILE: usize = 256;

/// What a file of a bundle is, determined by its path alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'p> {
    Manifest,
    Checkpoint,
    CheckpointFrom,
    CheckpointTo,
    EdgeFrom,
    Consistency,
    Report,
    /// Entries, the first of which has this index.
    Entries(u64),
    /// Proves that the entry with this index is in the log.
    Proof(u64),
    /// A cosigned checkpoint of this size, which dates entries.
    KeptCheckpoint(u64),
    /// Proves that the log continues its tree of this size.
    ConsistencyFrom(u64),
    /// A checkpoint of this size, as a timestamping authority was shown it.
    Stamped(u64),
    /// The reply of that authority.
    Timestamp(u64),
    /// By digest, 64 hexadecimal characters.
    Document(&'p str),
    /// The rules of a definition as canonical JSON, by their digest.
    Definition(&'p str),
    /// The text that a definition was read from, by the digest of its rules.
    DefinitionText(&'p str),
    RoleMap(&'p str),
}

impl<'p> Piece<'p> {
    pub fn of(path: &'p str) -> Option<Piece<'p>> {
        let fixed = match path {
            MANIFEST => Some(Piece::Manifest),
            CHECKPOINT => Some(Piece::Checkpoint),
            CHECKPOINT_FROM => Some(Piece::CheckpointFrom),
            CHECKPOINT_TO => Some(Piece::CheckpointTo),
            EDGE_FROM => Some(Piece::EdgeFrom),
            CONSISTENCY => Some(Piece::Consistency),
            REPORT => Some(Piece::Report),
            _ => None,
        };
        let between = |before, after| path.strip_prefix(before).and_then(|rest: &str| rest.strip_suffix(after));
        let digest = |before, after| between(before, after).filter(|hex: &&str| is_hex_digest(hex));
        fixed
            .or_else(|| between(ENTRIES, ".jsonl").and_then(index).map(Piece::Entries))
            .or_else(|| between(PROOFS, ".tlog-proof").and_then(index).map(Piece::Proof))
            .or_else(|| between(PROOFS, ".consistency").and_then(index).map(Piece::ConsistencyFrom))
            .or_else(|| between(CHECKPOINTS, "").and_then(index).map(Piece::KeptCheckpoint))
            .or_else(|| between(TIMESTAMPS, ".tsr").and_then(index).map(Piece::Timestamp))
            .or_else(|| between(TIMESTAMPS, "").and_then(index).map(Piece::Stamped))
            .or_else(|| digest(DOCUMENTS, ".json").map(Piece::Document))
            .or_else(|| digest(DEFINITIONS, ".json").map(Piece::Definition))
            .or_else(|| digest(DEFINITIONS, ".toml").map(Piece::DefinitionText))
            .or_else(|| digest(ROLE_MAPS, ".json").map(Piece::RoleMap))
    }

    /// Whether this file may be missing although the manifest lists it: that is how content is left out.
    pub fn may_be_left_out(&self) -> bool {
        matches!(self, Piece::Document(_) | Piece::Report)
    }
}

fn is_hex_digest(hex: &str) -> bool {
    hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Twelve digits, or more if twelve are too few.
fn index(text: &str) -> Option<u64> {
    let index = text.parse().ok()?;
    (index_text(index) == text).then_some(index)
}

fn index_text(index: u64) -> String {
    format!("{index:012}")
}

pub fn entries_path(first: u64) -> String {
    format!("{ENTRIES}{}.jsonl", index_text(first))
}

pub fn proof_path(index: u64) -> String {
    format!("{PROOFS}{}.tlog-proof", index_text(index))
}

pub fn kept_checkpoint_path(size: u64) -> String {
    format!("{CHECKPOINTS}{}", index_text(size))
}

pub fn consistency_path(size: u64) -> String {
    format!("{PROOFS}{}.consistency", index_text(size))
}

pub fn stamped_path(size: u64) -> String {
    format!("{TIMESTAMPS}{}", index_text(size))
}

pub fn timestamp_path(size: u64) -> String {
    format!("{TIMESTAMPS}{}.tsr", index_text(size))
}

/// `digest` is 64 hexadecimal characters, with or without a leading `sha256:`; also in the functions below.
pub fn document_path(digest: &str) -> String {
    format!("{DOCUMENTS}{}.json", bare(digest))
}

pub fn definition_path(digest: &str) -> String {
    format!("{DEFINITIONS}{}.json", bare(digest))
}

pub fn definition_text_path(digest: &str) -> String {
    format!("{DEFINITIONS}{}.toml", bare(digest))
}

pub fn role_map_path(digest: &str) -> String {
    format!("{ROLE_MAPS}{}.json", bare(digest))
}

fn bare(digest: &str) -> &str {
    digest.strip_prefix("sha256:").unwrap_or(digest)
}
