//! Proofs that entries are in the log.

use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize)]
pub struct ProofsView {
    /// The signed tree head the proofs lead to.
    pub checkpoint: String,
    pub proofs: Vec<ProofView>,
    /// What to give as `after` for the rest; none when this was all.
    pub next: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Proof")]
pub struct ProofView {
    pub index: u64,
    /// Base64 SHA-256.
    pub leaf_hash: String,
    pub hashes: Vec<String>,
}
