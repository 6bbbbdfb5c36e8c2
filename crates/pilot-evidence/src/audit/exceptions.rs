//! Exceptions: everything in a bundle that an auditor looks at one by one.

use std::collections::{BTreeMap, BTreeSet};

use pilot_core::entry::details::{Attempts, Details, Restored, Started, TrustedCredentials};
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::{ItemId, WorkflowRef};
use pilot_core::time::Time;
use pilot_core::workflow::Definition;

use super::kind::Kind;
use super::progress::Progress;
use crate::credentials::events;
use crate::verify::{Fault, Verdict};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    pub entry: Option<u64>,
    pub at: Option<Time>,
    pub kind: Kind,
    /// Empty if nobody acted.
    pub actor: String,
    pub item: Option<ItemId>,
    pub what: String,
}

/// Collects exceptions from entries in the order of the ledger.
#[derive(Default)]
pub(super) struct Exceptions {
    found: Vec<Exception>,
    items: BTreeMap<ItemId, Progress>,
    last_start: Option<(u64, Started)>,
    /// The times of entries that a fault names, and who acted.
    faulty: BTreeMap<u64, Option<(Time, String)>>,
}

impl Exceptions {
    pub(super) fn new(verdict: &Verdict) -> Exceptions {
        let faulty = verdict.faults.iter().filter_map(|fault| Some((fault.entry?, None))).collect();
        Exceptions { faulty, ..Exceptions::default() }
    }

    /// Takes in one entry. Entries outside the bundle's scope only show what was before.
    pub(super) fn take(&mut self, entry: &Entry, definition: Option<&Definition>, is_inside: bool) {
        if let Some(place) = self.faulty.get_mut(&entry.index) {
            *place = Some((entry.at, actor_of(entry)));
        }
        let told = match (&entry.item, definition) {
            (Some(id), Some(definition)) => self.items.entry(id.clone()).or_default().take(definition.rules(), entry),
            (Some(_), None) => Vec::new(),
            (None, _) => {
                let told = self.of_service(entry);
                if is_inside { told } else { Vec::new() }
            }
        };
        for (kind, what) in told {
            let item = entry.item.clone().or_else(|| erased_item(entry));
            let (at, actor) = (Some(entry.at), actor_of(entry));
            self.found.push(Exception { entry: Some(entry.index), at, kind, actor, item, what });
        }
    }

    /// All exceptions: first the faults of the verdict, then the others in the order of the ledger. Of items, only the
    /// given ones, each with its definition.
    pub(super) fn listed(
        mut self,
        verdict: &Verdict,
        items: &BTreeMap<&ItemId, Option<&Definition>>,
    ) -> Vec<Exception> {
        for (id, progress) in &self.items {
            let definition = items.get(id).copied().flatten();
            let Some((entry, at, what)) = definition.and_then(|known| progress.open_end(known.rules())) else {
                continue;
            };
            let item = Some(id.clone());
            let (entry, at, actor) = (Some(entry), Some(at), String::new());
            self.found.push(Exception { entry, at, kind: Kind::NotJudged, actor, item, what });
        }
        let is_about = |found: &Exception| {
            found.kind == Kind::DocumentsErased || found.item.as_ref().is_none_or(|id| items.contains_key(id))
        };
        let mut others: Vec<_> = self.found.into_iter().filter(is_about).collect();
        others.sort_by_key(|found| found.entry);
        let fault = |fault: &Fault| of_fault(fault, &self.faulty);
        verdict.faults.iter().map(fault).chain(others).collect()
    }

    /// What stands out about an entry on access and the service.
    fn of_service(&mut self, entry: &Entry) -> Vec<(Kind, String)> {
        let Some(details) = entry.details() else {
            let about_item = matches!(
                entry.r#type,
                EntryType::ItemCreated | EntryType::ItemEdited | EntryType::ItemTransition | EntryType::ItemComment
            );
            let what = format!("this program cannot read what this {} says", entry.r#type);
            return if about_item { Vec::new() } else { vec![(Kind::Unreadable, what)] };
        };
        let events = || events(entry).iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let one = match details {
            Details::AccessRefused(attempts) => (Kind::RefusedAttempt, refused(entry, &attempts)),
            Details::AccessTokenExposed(_) => (Kind::TokenExposed, events()),
            Details::CredentialRevoked(_) => (Kind::CredentialRevoked, events()),
            Details::CredentialRefused(_) => (Kind::EndedCredentialUsed, events()),
            Details::CredentialsTrusted(trusted) => (Kind::CredentialsTrusted, accepted_again(&trusted)),
            Details::LedgerRestored(restored) => was_restored(restored),
            Details::DocumentsErased(erased) => {
                let who = operator(erased.operator.as_deref());
                let what = format!("{who} erased {} documents of this item: {}", erased.documents, erased.why);
                (Kind::DocumentsErased, what)
            }
            Details::ClockAccepted(accepted) => {
                let who = operator(accepted.operator.as_deref());
                let what =
                    format!("the machine's clock had jumped ahead to {}, and {who} accepted it", accepted.machine);
                (Kind::ClockAccepted, what)
            }
            Details::ServiceStarted(started) => return self.started(entry.index, started),
            Details::CredentialFirstUsed(_)
            | Details::CredentialExpired(_)
            | Details::CredentialsChanged(_)
            | Details::PermitIssued(_) => return Vec::new(),
        };
        vec![one]
    }

    fn started(&mut self, index: u64, started: Started) -> Vec<(Kind, String)> {
        let mut found = Vec::new();
        if started.role_map.is_none() {
            let what = "this start pins no role map, so from here on nobody's role can be checked".to_owned();
            found.push((Kind::NoRoleMap, what));
        }
        if let Some((before, earlier)) = &self.last_start {
            if earlier.role_map != started.role_map {
                let name = |map: &Option<_>| map.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
                let (old, new) = (name(&earlier.role_map), name(&started.role_map));
                let what = format!("the role map changed since the start at entry {before}: from {old} to {new}");
                found.push((Kind::RoleMapChanged, what));
            }
            let changes = changes(&earlier.definitions, &started.definitions);
            if !changes.is_empty() {
                let what = format!("definitions changed since the start at entry {before}: {}", changes.join("; "));
                found.push((Kind::DefinitionsChanged, what));
            }
        }
        self.last_start = Some((index, started));
        found
    }
}

fn actor_of(entry: &Entry) -> String {
    entry.actor_id.as_ref().map(ToString::to_string).unwrap_or_default()
}

fn erased_item(entry: &Entry) -> Option<ItemId> {
    match entry.details() {
        Some(Details::DocumentsErased(erased)) => Some(erased.item),
        _ => None,
    }
}

fn of_fault(fault: &Fault, faulty: &BTreeMap<u64, Option<(Time, String)>>) -> Exception {
    let place = fault.entry.and_then(|entry| faulty.get(&entry)?.clone());
    let (at, actor) = place.map_or((None, String::new()), |(at, actor)| (Some(at), actor));
    let what = fault.to_string();
    Exception { entry: fault.entry, at, kind: Kind::Fault, actor, item: fault.item.clone(), what }
}

fn operator(name: Option<&str>) -> String {
    name.map_or_else(|| "an operator".to_owned(), |name| format!("the operator {name}"))
}

fn refused(entry: &Entry, Attempts { code, count, since, origins }: &Attempts) -> String {
    let role = entry.role.map(|role| format!(" as {role}")).unwrap_or_default();
    let action = entry.action.as_ref().map(|action| format!(" to {action}")).unwrap_or_default();
    let since = since.map(|since| format!(", the first at {since}")).unwrap_or_default();
    let origins = if origins.is_empty() { String::new() } else { format!(", from {}", origins.join(", ")) };
    match count {
        1 => format!("one attempt{role}{action} was refused: {code}{since}{origins}"),
        count => format!("{count} attempts{role}{action} were refused: {code}{since}{origins}"),
    }
}

fn accepted_again(trusted: &TrustedCredentials) -> String {
    let TrustedCredentials { all, before, credentials, operator: who, why } = trusted;
    let names: Vec<_> = credentials.iter().map(ToString::to_string).collect();
    let which = if *all { "all of them".to_owned() } else { names.join(", ") };
    let who = operator(who.as_deref());
    format!("after a loss, {who} accepted credentials issued before {before} again ({which}): {why}")
}

fn was_restored(Restored { because, backup, operator: who, loss }: Restored) -> (Kind, String) {
    let who = operator(who.as_deref());
    let backup = backup.map(|backup| format!(" of {} entries, made at {}", backup.entries, backup.made_at));
    let backup = backup.unwrap_or_default();
    match loss {
        None => (Kind::LedgerRestored, format!("{who} restored the ledger from a backup{backup}: {because}")),
        Some(loss) => {
            let credentials = loss.credentials.map(|how| format!("; older credentials are {how}")).unwrap_or_default();
            let why = loss.loss_accepted;
            let what = format!(
                "{who} accepted that entries may be lost after a backup{backup}: {why} ({because}){credentials}"
            );
            (Kind::LossAccepted, what)
        }
    }
}

/// What was added to a list of definitions, and what was removed.
fn changes(before: &[WorkflowRef], after: &[WorkflowRef]) -> Vec<String> {
    let digests = |list: &[WorkflowRef]| list.iter().map(|one| one.digest.clone()).collect::<BTreeSet<_>>();
    let (old, new) = (digests(before), digests(after));
    let words = |verb: &str, one: &WorkflowRef| format!("{verb} {} v{} {}", one.name, one.version, one.digest);
    let removed = before.iter().filter(|one| !new.contains(&one.digest)).map(|one| words("removed", one));
    let added = after.iter().filter(|one| !old.contains(&one.digest)).map(|one| words("added", one));
    removed.chain(added).collect()
}
