//! Where the ledger and the items are kept.

pub mod sqlite;
