//! What the register keeps for the next start.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pilot_core::credentials::CredentialId;
use pilot_core::time::Time;
use pilot_store::StoreError;
use serde::{Deserialize, Serialize};

use super::ended::End;
use super::names::NamedCredential;

/// What the ledger holds already, kept beside it under one name.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Kept {
    /// By fingerprint.
    pub(super) used: BTreeMap<CredentialId, NamedCredential>,
    pub(super) refused: BTreeSet<CredentialId>,
    pub(super) ended: BTreeMap<CredentialId, End>,
}

pub(super) const FACT: &str = "credentials";
/// Of credentials that cannot come back, so many are remembered. By number and not by the clock: one that runs ahead for
/// a while must not make the service forget whom it shut out.
pub(super) const KEPT_MAX: usize = 10_000;
const DAY: Duration = Duration::from_hours(24);

impl Kept {
    pub(super) fn parse(bytes: &[u8]) -> Result<Kept, StoreError> {
        let unreadable = |error| StoreError::Damaged(format!("the register of credentials cannot be read: {error}"));
        serde_json::from_slice(bytes).map_err(unreadable)
    }

    /// Keeps what there is within bounds. Of `used` and `refused`, forgetting can cost a second entry; of `ended`, only
    /// what cannot be shown any more goes, the longest past first.
    pub(super) fn tidy(&mut self, now: Time) {
        let is_past = |time: Option<Time>| time.is_some_and(|time| time.plus(DAY) <= now);
        self.used.retain(|_, named| !is_past(named.expires_at));
        while self.refused.len() > KEPT_MAX {
            self.refused.pop_first();
        }
        let forgettable = self.ended.iter().filter_map(|(id, end)| Some((end.forget_at?, id.clone())));
        let mut forgettable: Vec<_> = forgettable.filter(|(time, _)| is_past(Some(*time))).collect();
        let surplus = forgettable.len().saturating_sub(KEPT_MAX);
        forgettable.sort_unstable();
        for (_, id) in forgettable.into_iter().take(surplus) {
            self.ended.remove(&id);
        }
    }

    /// Names, times and numbers alone: writing them as JSON cannot fail.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}
