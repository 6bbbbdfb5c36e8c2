//! What happens to credentials while the service runs.

use pilot_core::time::Time;

use super::names::{KnownCredential, NamedCredential};

/// Something in a credential's life that becomes an entry, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    FirstUsed(NamedCredential),
    Refused(NamedCredential, &'static str),
    /// With the time from which it need not be remembered.
    Expired(NamedCredential, Option<Time>),
    Revoked(KnownCredential, Automatic),
}

/// Why the service revokes a credential by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Automatic {
    TokenInUrl,
    /// Someone else wrote it into what everyone was to read.
    TokenInContent,
    /// Its issuer says so.
    RevocationList,
    /// It was revoked before, and the ledger has lost that.
    CarriedOver,
}
