//! Why a witness has not cosigned.

use pilot_store::StoreError;
use pilot_wire::outgoing::OutgoingError;

#[derive(Debug, thiserror::Error)]
pub enum OfferError {
    #[error("it cannot be reached: {0}")]
    Unreachable(#[from] OutgoingError),
    #[error("the proof for it cannot be computed: {0}")]
    Store(#[from] StoreError),
    #[error("it does not know this log (404); give it the line `pilot log key` prints")]
    UnknownLog,
    #[error("it does not accept this log's key (403); give it the line `pilot log key` prints")]
    UnknownKey,
    #[error("it has cosigned {theirs} entries of this log, but the ledger has {ours}: entries are missing here")]
    Ahead { ours: u64, theirs: u64 },
    #[error("it has cosigned another root at {size} entries: this log has forked")]
    OtherRoot { size: u64 },
    #[error("what it has cosigned at {size} entries is not the beginning of this ledger: this log has forked")]
    Inconsistent { size: u64 },
    #[error("it answered {0}, which is not a valid answer from a witness")]
    Strange(String),
}

impl OfferError {
    /// Whether this shows a second history of this log.
    pub fn is_conflict(&self) -> bool {
        matches!(self, OfferError::Ahead { .. } | OfferError::OtherRoot { .. } | OfferError::Inconsistent { .. })
    }
}
