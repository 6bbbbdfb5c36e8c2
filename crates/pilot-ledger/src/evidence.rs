//! What an auditor takes away: which entries, documents, rules, role maps and proofs belong to an item or a period.

mod exports;
mod gather;
mod plan;
mod sources;

pub use exports::{Busy, Exports, Place};
pub use gather::write;
pub use plan::{Options, Plan, Wanted};
pub use sources::{EvidenceError, Sources};
