//! The register of credentials: which have ended, by revocation or by time, and what of their lives is in the ledger.
//!
//! What has ended stays ended, across restarts and whatever the clock says. The first use of a credential, its end and
//! the first refusal after it are entries: with the additions and removals that every start writes down, they are the
//! evidence of a rotation.

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
