//! Looks at a ledger without asking the rules: whatever they allowed, these things must be true of it.

use std::collections::{BTreeMap, BTreeSet};

use pilot_core::entry::{Entry, EntryType};
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_store::{Store, StoredEntry};
use serde_json::Value;

pub fn entry_of(stored: &StoredEntry) -> Entry {
    serde_json::from_slice(&stored.bytes).unwrap()
}

pub async fn entries(store: &dyn Store) -> Vec<Entry> {
    store.entries(0, usize::MAX).await.unwrap().iter().map(entry_of).collect()
}

/// What is known of an item from its entries alone.
#[derive(Default)]
struct Story {
    version: u64,
    state: Option<String>,
    definition: Option<String>,
    content: Option<String>,
    needed: usize,
    roles: BTreeMap<String, Role>,
    approvals: BTreeSet<String>,
    cleared_by: Option<String>,
    effects: u64,
}

/// Gives the number of executions that were begun.
pub async fn invariants(store: &dyn Store) -> u64 {
    let mut items: BTreeMap<String, Story> = BTreeMap::new();
    let mut last_at = Time::EPOCH;
    for (place, stored) in store.entries(0, usize::MAX).await.unwrap().iter().enumerate() {
        let entry = entry_of(stored);
        assert_eq!((entry.index, stored.index), (place as u64, place as u64), "indices have no gaps");
        assert!(entry.at >= last_at, "time runs backwards at {place}");
        last_at = entry.at;
        if let Some(id) = &entry.item {
            let told = items.entry(id.to_string()).or_default();
            if let Some(payload) = payload_after(store, &entry).await {
                told.needed = if payload["risk"] == "high" { 2 } else { 1 };
            }
            told.goes_on(&entry);
        }
    }
    let effects = items.values().map(|told| told.effects).sum();
    for (id, told) in items {
        let item = store.item(id.parse().unwrap()).await.unwrap().unwrap();
        assert_eq!((item.version, Some(&*item.state)), (told.version, told.state.as_deref()), "{id}");
        assert_eq!(
            item.participants.iter().map(|(who, role)| (who.to_string(), *role)).collect::<BTreeMap<_, _>>(),
            told.roles
        );
    }
    effects
}

async fn payload_after(store: &dyn Store, entry: &Entry) -> Option<Value> {
    if !matches!(entry.r#type, EntryType::ItemCreated | EntryType::ItemEdited) {
        return None;
    }
    let history = store.history(entry.item.clone()?).await.unwrap();
    let stored = history.iter().find(|stored| stored.index == entry.index)?;
    let content: Value = serde_json::from_slice(&stored.documents.first()?.1).unwrap();
    Some(content["payload"].clone())
}

impl Story {
    fn goes_on(&mut self, entry: &Entry) {
        let place = entry.index;
        let definition = entry.definition.as_deref().unwrap().to_owned();
        assert_eq!(*self.definition.get_or_insert_with(|| definition.clone()), definition, "{place}: other rules");
        if entry.r#type == EntryType::ItemComment {
            return assert_eq!(entry.version, Some(self.version), "{place}: a comment moves nothing");
        }
        assert_eq!(entry.version, Some(self.version + 1), "{place}: versions have no gaps");
        assert_eq!(entry.from.as_deref(), self.state.as_deref(), "{place}: it leaves where it was");
        let content = entry.content.as_ref().unwrap().to_string();
        let may_change = matches!(self.state.as_deref(), None | Some("draft" | "returned"));
        let is_changed = self.content.as_ref().is_some_and(|before| *before != content);
        assert!(!is_changed || may_change && entry.r#type == EntryType::ItemEdited, "{place}: content changed");
        self.acted(entry);
        self.voted(entry, is_changed);
        self.took_effect(entry);
        self.version += 1;
        self.content = Some(content);
        self.state = Some(entry.to.as_deref().unwrap().to_owned());
    }

    /// One person, one role, for good.
    fn acted(&mut self, entry: &Entry) {
        let (Some(who), Some(role)) = (&entry.actor_id, entry.role) else {
            let to = entry.to.as_deref().unwrap();
            return assert!(matches!(to, "expired" | "indeterminate"), "{}: time led to {to}", entry.index);
        };
        let known = *self.roles.entry(who.to_string()).or_insert(role);
        assert_eq!(known, role, "{}: {who} acts in two roles", entry.index);
    }

    /// Each person counts once, and as many as needed have to agree.
    fn voted(&mut self, entry: &Entry, is_changed: bool) {
        let (action, place) = (entry.action.as_deref().unwrap(), entry.index);
        let who = entry.actor_id.as_ref().map(ToString::to_string).unwrap_or_default();
        match action {
            "approve" => {
                assert!(self.approvals.insert(who), "{place}: someone counts twice");
                let is_carried = entry.to.as_deref() == Some("approved");
                assert_eq!(
                    is_carried,
                    self.approvals.len() >= self.needed,
                    "{place}: {} of {}",
                    self.approvals.len(),
                    self.needed
                );
            }
            "revoke_approval" => {
                assert!(self.approvals.remove(&who), "{place}: a vote nobody gave");
                self.cleared_by = None;
            }
            "return" => {
                self.approvals.clear();
                self.cleared_by = None;
            }
            "clear" => self.cleared_by = Some(who),
            _ => {}
        }
        assert!(!is_changed || self.approvals.is_empty(), "{place}: a vote outlived its content");
    }

    /// Nothing is executed before everyone who must has agreed, each of them another person.
    fn took_effect(&mut self, entry: &Entry) {
        let is_effect = |state: Option<&str>| matches!(state, Some("executing" | "rolling_back"));
        if !is_effect(entry.to.as_deref()) || is_effect(entry.from.as_deref()) {
            return;
        }
        self.effects += 1;
        let place = entry.index;
        let present: BTreeSet<Role> = self.roles.values().copied().collect();
        for role in [Role::Initiator, Role::SecurityAdmin, Role::Executor] {
            assert!(present.contains(&role), "{place}: executed without {role}");
        }
        assert!(self.cleared_by.is_some(), "{place}: executed, and nobody cleared it");
        let is_controlled = !self.is_emergency();
        assert!(!is_controlled || self.approvals.len() >= self.needed, "{place}: executed without approval");
    }

    fn is_emergency(&self) -> bool {
        let [_, emergency] = pilot_core::workflow::builtin::builtin();
        self.definition.as_deref() == Some(&**emergency.digest())
    }
}
