//! What happens to credentials while the service runs.

use pilot_core::time::Time;

use super::names::{KnownCredential, NamedCredential};

/// Something in a credential's life that becomes an entry, exactly once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    FirstUsed(NamedCredential),
    Refused(NamedCredential, &'static str),
    /// With the time from which it no longer has to be remembered.
    Expired(NamedCredential, Option<Time>),
    Revoked(KnownCredential, Automatic),
}

/// Why the service revokes a credential on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Automatic {
    TokenInUrl,
    /// Someone else put it into content that everyone may read.
    TokenInContent,
    /// Its issuer says so.
    RevocationList,
    /// It was revoked before, but the ledger has lost that entry.
    CarriedOver,
}
