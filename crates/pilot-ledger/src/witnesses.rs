//! Asks the configured witnesses for cosignatures, and knows which checkpoint has enough of them.
//!
//! All witnesses are offered the same checkpoint at the same moment, so that their cosignatures collect under one. A
//! witness that is slow or down delays nobody: it is left out of the rounds until it has answered.

mod cosigning;
mod effects;
mod offer;
mod shared;
mod trouble;
mod witness;

pub use cosigning::{CoverError, Witnesses, run};
pub use effects::EffectGate;
pub use offer::{Seen, ask, offer};
pub use trouble::OfferError;
pub use witness::Witness;
