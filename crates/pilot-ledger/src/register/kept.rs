//! What the register keeps for the next start: a fact for each credential that was used, refused or ended.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pilot_core::credentials::CredentialId;
use pilot_core::time::Time;
use pilot_store::{Fact, Store, StoreError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ended::End;
use super::names::NamedCredential;
use crate::persisted;

/// What the ledger holds already.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Kept {
    /// By fingerprint.
    pub(super) used: BTreeMap<CredentialId, NamedCredential>,
    pub(super) refused: BTreeSet<CredentialId>,
    pub(super) ended: BTreeMap<CredentialId, End>,
}

/// Where an older program kept all of it.
pub(super) const WHOLE: &str = "credentials";
const USED: &str = "credential/used/";
const REFUSED: &str = "credential/refused/";
pub(super) const ENDED: &str = "credential/ended/";
/// Of credentials that cannot come back, so many are remembered. By number and not by the clock: one that runs ahead for
/// a while must not make the service forget whom it shut out.
pub(super) const KEPT_MAX: usize = 10_000;
/// How many are forgotten with one entry.
const FORGOTTEN_MAX: usize = 16;
const DAY: Duration = Duration::from_hours(24);

/// Nothing to be said but that it is there.
#[derive(Serialize, Deserialize)]
struct There {}

impl Kept {
    pub(super) fn parse(bytes: &[u8]) -> Result<Kept, StoreError> {
        persisted::from_bytes("the register of credentials", bytes)
    }

    pub(super) async fn load(store: &dyn Store) -> Result<Kept, StoreError> {
        let mut kept = match store.fact(WHOLE).await? {
            Some(bytes) => Kept::parse(&bytes)?,
            None => Kept::default(),
        };
        kept.used.extend(read(USED, store.facts(USED).await?)?);
        kept.refused.extend(read::<There>(REFUSED, store.facts(REFUSED).await?)?.into_keys());
        kept.ended.extend(read(ENDED, store.facts(ENDED).await?)?);
        Ok(kept)
    }

    /// All of it as facts of their own, where an older program kept it in one.
    pub(super) async fn divided(store: &dyn Store) -> Result<Vec<Fact>, StoreError> {
        let Some(bytes) = store.fact(WHOLE).await? else { return Ok(Vec::new()) };
        let kept = Kept::parse(&bytes)?;
        let facts = kept.used.values().map(used);
        let facts = facts.chain(kept.refused.iter().map(refused));
        let facts = facts.chain(kept.ended.iter().map(|(id, end)| ended(id, end)));
        Ok(facts.chain([Fact { name: WHOLE.to_owned(), value: None }]).collect())
    }

    /// Keeps what there is within bounds, and gives what is to be forgotten with the next entry. Of `used` and `refused`,
    /// forgetting can cost a second entry; of `ended`, only what cannot be shown any more goes, the longest past first.
    pub(super) fn tidy(&mut self, now: Time) -> Vec<Fact> {
        let is_past = |time: Option<Time>| time.is_some_and(|time| time.plus(DAY) <= now);
        let past = self.used.iter().filter(|(_, named)| is_past(named.expires_at)).map(|(id, _)| id.clone());
        let past: Vec<_> = past.take(FORGOTTEN_MAX).collect();
        let mut names: Vec<_> = past.iter().map(|id| format!("{USED}{id}")).collect();
        for id in &past {
            self.used.remove(id);
        }
        while self.refused.len() > KEPT_MAX {
            names.extend(self.refused.pop_first().map(|id| format!("{REFUSED}{id}")));
        }
        let forgettable = self.ended.iter().filter_map(|(id, end)| Some((end.forget_at?, id.clone())));
        let mut forgettable: Vec<_> = forgettable.filter(|(time, _)| is_past(Some(*time))).collect();
        let surplus = forgettable.len().saturating_sub(KEPT_MAX).min(FORGOTTEN_MAX);
        forgettable.sort_unstable();
        for (_, id) in forgettable.into_iter().take(surplus) {
            self.ended.remove(&id);
            names.push(format!("{ENDED}{id}"));
        }
        names.into_iter().map(|name| Fact { name, value: None }).collect()
    }
}

/// By what stands behind the beginning of their names.
pub(super) fn read<T: DeserializeOwned>(
    beginning: &str,
    facts: Vec<(String, Vec<u8>)>,
) -> Result<BTreeMap<CredentialId, T>, StoreError> {
    let one = |(name, value): (String, Vec<u8>)| {
        let id = name.strip_prefix(beginning).and_then(|id| id.parse().ok());
        let id = id.ok_or_else(|| StoreError::Damaged(format!("the fact `{name}` names no credential")))?;
        Ok((id, persisted::from_bytes(&format!("the fact `{name}`"), &value)?))
    };
    facts.into_iter().map(one).collect()
}

pub(super) fn used_name(named: &NamedCredential) -> String {
    format!("{USED}{}", named.fingerprint)
}

pub(super) fn used(named: &NamedCredential) -> Fact {
    Fact { name: used_name(named), value: Some(persisted::to_bytes(named)) }
}

pub(super) fn refused_name(fingerprint: &CredentialId) -> String {
    format!("{REFUSED}{fingerprint}")
}

pub(super) fn refused(fingerprint: &CredentialId) -> Fact {
    Fact { name: refused_name(fingerprint), value: Some(persisted::to_bytes(&There {})) }
}

pub(super) fn ended_name(id: &CredentialId) -> String {
    format!("{ENDED}{id}")
}

pub(super) fn ended(id: &CredentialId, end: &End) -> Fact {
    Fact { name: ended_name(id), value: Some(persisted::to_bytes(end)) }
}
