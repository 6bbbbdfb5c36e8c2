//! What the register stores for the next start: one fact for each credential that was used, refused or ended.

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

/// What the ledger already has.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Kept {
    /// By fingerprint.
    pub(super) used: BTreeMap<CredentialId, NamedCredential>,
    pub(super) refused: BTreeSet<CredentialId>,
    pub(super) ended: BTreeMap<CredentialId, End>,
}

/// The one fact in which an older program stored all of it.
pub(super) const WHOLE: &str = "credentials";
const USED: &str = "credential/used/";
const REFUSED: &str = "credential/refused/";
pub(super) const ENDED: &str = "credential/ended/";
/// How many credentials that cannot come back are remembered. A count, not a time: a clock that runs ahead for a while
/// must not make the service forget whom it shut out.
pub(super) const KEPT_MAX: usize = 10_000;
/// How many are forgotten with each entry.
pub(super) const FORGOTTEN_MAX: usize = 16;
const DAY: Duration = Duration::from_hours(24);

/// A fact that only has to exist.
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

    /// The fingerprints of those `present` that are valid. A credential that was refused and is valid again may be
    /// refused again some day; one that has ended stays ended, and its refusal is on record.
    pub(super) fn counting<'p>(&self, present: &'p BTreeSet<NamedCredential>) -> BTreeSet<&'p CredentialId> {
        let by_fingerprint: BTreeSet<_> = self.ended.values().filter_map(|end| end.fingerprint.as_ref()).collect();
        let has_ended = |named: &NamedCredential| {
            self.ended.contains_key(named.id()) || by_fingerprint.contains(&named.fingerprint)
        };
        present.iter().filter(|named| !has_ended(named)).map(|named| &named.fingerprint).collect()
    }

    /// What a start changes: the refusals of credentials that are valid again are forgotten, and what an older program
    /// stored in one fact is split into one for each.
    pub(super) async fn at_start(
        store: &dyn Store,
        present: &BTreeSet<NamedCredential>,
    ) -> Result<Vec<Fact>, StoreError> {
        let counting = Kept::load(store).await?.counting(present);
        let were_refused = read::<There>(REFUSED, store.facts(REFUSED).await?)?.into_keys();
        let back = were_refused.filter(|fingerprint| counting.contains(fingerprint));
        let mut facts: Vec<_> = back.map(|back| Fact { name: refused_name(&back), value: None }).collect();
        let Some(bytes) = store.fact(WHOLE).await? else { return Ok(facts) };
        let kept = Kept::parse(&bytes)?;
        facts.extend(kept.used.values().map(used));
        facts.extend(kept.refused.iter().filter(|refused| !counting.contains(refused)).map(refused));
        facts.extend(kept.ended.iter().map(|(id, end)| ended(id, end)));
        facts.push(Fact { name: WHOLE.to_owned(), value: None });
        Ok(facts)
    }

    /// What can be forgotten, at most `max` of each kind. Forgetting a `used` or `refused` credential can cost a second
    /// entry. Of the `ended`, only those go that can no longer be shown, oldest first, and not before their first use
    /// is forgotten: a credential known to be used but not to have ended would end again. The one being written stays.
    pub(super) fn surplus(&self, now: Time, max: usize, written: &str) -> Surplus {
        let is_past = |time: Option<Time>| time.is_some_and(|time| time.plus(DAY) <= now);
        let past = self.used.values().filter(|named| is_past(named.expires_at)).map(|named| named.fingerprint.clone());
        let too_many = self.refused.len().saturating_sub(KEPT_MAX).min(max);
        let forgettable = self.ended.iter().filter_map(|(id, end)| Some((end.forget_at?, id, end)));
        let forgettable = forgettable.filter(|(time, ..)| is_past(Some(*time)));
        let mut forgettable: Vec<_> = forgettable.map(|(time, id, end)| (time, id.clone(), end)).collect();
        let too_many_ended = forgettable.len().saturating_sub(KEPT_MAX).min(max);
        forgettable.sort_unstable_by(|(one, a, _), (other, b, _)| (one, a).cmp(&(other, b)));
        let is_used =
            |end: &End| end.fingerprint.as_ref().is_some_and(|fingerprint| self.used.contains_key(fingerprint));
        let ended = forgettable.into_iter().take(too_many_ended).filter(|(.., end)| !is_used(end));
        let refused = self.refused.iter().take(too_many).cloned();
        Surplus {
            used: past.take(max).filter(|fingerprint| used_name(fingerprint) != written).collect(),
            refused: refused.filter(|fingerprint| refused_name(fingerprint) != written).collect(),
            ended: ended.map(|(_, id, _)| id).filter(|id| ended_name(id) != written).collect(),
        }
    }

    /// Called once the change is recorded.
    pub(super) fn forget(&mut self, surplus: &Surplus) {
        self.used.retain(|fingerprint, _| !surplus.used.contains(fingerprint));
        self.refused.retain(|fingerprint| !surplus.refused.contains(fingerprint));
        self.ended.retain(|id, _| !surplus.ended.contains(id));
    }
}

/// What no longer has to be remembered.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Surplus {
    used: BTreeSet<CredentialId>,
    refused: BTreeSet<CredentialId>,
    ended: BTreeSet<CredentialId>,
}

impl Surplus {
    /// As deletions of facts.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let used = self.used.iter().map(used_name);
        let names = used.chain(self.refused.iter().map(refused_name)).chain(self.ended.iter().map(ended_name));
        names.map(|name| Fact { name, value: None }).collect()
    }
}

/// Facts by the rest of their names, after the prefix.
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

pub(super) fn used_name(fingerprint: &CredentialId) -> String {
    format!("{USED}{fingerprint}")
}

pub(super) fn used(named: &NamedCredential) -> Fact {
    Fact { name: used_name(&named.fingerprint), value: Some(persisted::to_bytes(named)) }
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
