//! The register of credentials: which have ended, by revocation or expiry, and what the ledger already says about each.
//!
//! A credential that has ended stays ended, across restarts and whatever the clock says. The first use of a credential,
//! its end and the first refusal after that are entries: together with the additions and removals that every start
//! records, they are the evidence of a rotation.

mod diary;
mod ended;
mod event;
mod kept;
mod names;
mod outside;
mod revocation;
mod state;

pub use diary::{Diary, run};
pub use ended::{Ended, Revocation};
pub use event::Automatic;
pub use names::{KnownCredential, NamedCredential, ShownCredential};
pub use outside::{Doubt, EndedCredentials, OutsideError};
pub use revocation::{RevokeError, Wish, revoke, revoke_by_itself};
pub use state::Register;

/// What a start changes in the register.
pub(crate) async fn at_start(
    store: &dyn pilot_store::Store,
    present: &std::collections::BTreeSet<NamedCredential>,
) -> Result<Vec<pilot_store::Fact>, pilot_store::StoreError> {
    kept::Kept::at_start(store, present).await
}
