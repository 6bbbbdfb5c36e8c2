//! Where a search need not look. The index says of each block of items which texts cannot be in it; whatever may be is
//! looked at, so a search finds the same with it and without it.
//!
//! One thread makes it, after the store was opened and when a search asks for it: no write pays for it. What it does not
//! cover yet, a search looks at.

mod candidates;
mod file;
mod grams;
mod indexer;
mod shared;
mod signal;
mod slab;

pub(super) use candidates::{Candidates, Place};
#[cfg(test)]
pub(super) use file::beside;
pub(super) use file::destroy;
pub(super) use indexer::Indexer;
pub(super) use shared::SearchIndex;
pub(super) use slab::Geometry;
