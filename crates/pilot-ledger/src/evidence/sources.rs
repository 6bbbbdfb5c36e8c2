//! What evidence is made from.

use std::sync::Arc;

use pilot_core::leak::LeakGuard;
use pilot_evidence::bundle::BundleError;
use pilot_explain::graph::Layouts;
use pilot_store::{Store, StoreError};

use crate::clock::LedgerClock;
use crate::signer::{SignError, Signer};
use crate::witnesses::Witnesses;

#[derive(Clone)]
pub struct Sources {
    pub store: Arc<dyn Store>,
    pub signer: Arc<Signer>,
    pub witnesses: Arc<Witnesses>,
    pub guard: Arc<LeakGuard>,
    pub clock: LedgerClock,
    /// Of the diagrams in reports.
    pub layouts: Arc<Layouts>,
}

#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    #[error("there is no such item")]
    NoSuchItem,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Sign(#[from] SignError),
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error("entry {0} cannot be read")]
    Entry(u64),
    #[error("the definition {0} is not in the store")]
    Definition(String),
    #[error("{0} contains a live token")]
    Token(&'static str),
    #[error("a checkpoint of {kept} entries is newer than the ledger, which has {size}")]
    NotThatLong { kept: u64, size: u64 },
    #[error("the bundle would have {0} entries")]
    TooMany(u64),
    #[error("the client has disconnected")]
    Gone,
}
