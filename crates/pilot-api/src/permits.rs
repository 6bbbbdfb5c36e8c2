//! Permit tokens.

use pilot_core::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::named;

/// A token for one target. It has no `Debug`, so that it is not printed by accident.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PermitToken")]
pub struct PermitTokenView {
    /// A JWT signed with ES256, for the target only. It is stored nowhere.
    pub token: String,
    /// For whom it is, as its claim `aud` says.
    pub audience: String,
    /// Not after the lease, nor after the window.
    #[schemars(with = "named::Time")]
    pub expires_at: Time,
    pub jti: String,
    /// Which of the published keys signed it.
    pub key_id: String,
    /// The index of its entry `permit.issued` in the ledger.
    pub entry: u64,
}
