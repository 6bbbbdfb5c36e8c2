//! Whether everyone who acted had a credential at the time: followed through a ledger from its first entry, as starts and
//! the lives of credentials tell it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use pilot_core::actor::{Actor, ActorId};
use pilot_core::credentials::CredentialId;
use pilot_core::entry::details::{Changes, Details, Named};
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::ItemId;
use pilot_core::time::Time;

use super::contents::{Contents, Held};
use super::verdict::{Check, Control, Fault, Finding};
use crate::bundle::Scope;

/// A request that was let in just before its credential ended may be recorded just after.
const UNDER_WAY: Duration = Duration::from_mins(1);

/// The entries that tell of credentials.
const TELLING: [EntryType; 4] = [
    EntryType::ServiceStarted,
    EntryType::CredentialsChanged,
    EntryType::CredentialRevoked,
    EntryType::CredentialExpired,
];

/// Every credential the ledger has told of so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Register {
    by_fingerprint: BTreeMap<CredentialId, Life>,
    /// Lives that another one of the same credential followed, and ends of credentials that were never listed here.
    past: Vec<Life>,
    /// The fingerprints of each actor's credentials.
    by_actor: BTreeMap<ActorId, BTreeSet<CredentialId>>,
    /// Whether the service reads credentials from a file, whose changes are in the ledger. If people sign in elsewhere,
    /// the ledger does not know who could.
    is_listed: bool,
}

/// An entry, and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub entry: u64,
    pub at: Time,
}

/// From the entry that listed a credential to the one that ended it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Life {
    pub named: Named,
    /// `None` if only its end is known.
    pub since: Option<Moment>,
    pub ended: Option<(Moment, End)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Removed,
    /// Listed again at once with other properties, such as a later expiry.
    Changed,
    Revoked,
    Expired,
}

impl End {
    pub(crate) const fn words(self) -> &'static str {
        match self {
            End::Removed => "removed",
            End::Changed => "changed",
            End::Revoked => "revoked",
            End::Expired => "expired",
        }
    }
}

impl Register {
    /// Takes in what one entry tells.
    pub(crate) fn follow(&mut self, entry: &Entry) {
        let moment = Moment { entry: entry.index, at: entry.at };
        match entry.details() {
            Some(Details::ServiceStarted(started)) => {
                self.is_listed = started.credentials.count.is_some_and(|count| count > 0);
                self.change(started.credentials, moment);
            }
            Some(Details::CredentialsChanged(changed)) => self.change(changed.credentials, moment),
            Some(Details::CredentialRevoked(revoked)) => self.end(&revoked.credential, moment, End::Revoked),
            Some(Details::CredentialExpired(expired)) => self.end(&expired.credential, moment, End::Expired),
            _ => {}
        }
    }

    /// A credential that is in both lists was changed.
    fn change(&mut self, Changes { added, removed, .. }: Changes, moment: Moment) {
        for named in &removed {
            self.end(named, moment, End::Removed);
        }
        for named in added {
            let Some(fingerprint) = named.fingerprint.clone() else { continue };
            // What was revoked stays revoked, whatever a file says.
            let is_over = |life: &Life| life.ended.is_some_and(|(_, end)| end == End::Revoked);
            if !self.by_fingerprint.get(&fingerprint).is_some_and(is_over) {
                if let Some(actor_id) = named.actor_id.clone() {
                    self.by_actor.entry(actor_id).or_default().insert(fingerprint.clone());
                }
                let life = Life { named, since: Some(moment), ended: None };
                let before = self.by_fingerprint.insert(fingerprint, life);
                self.past.extend(before.map(|life| life.followed(moment)));
            }
        }
    }

    fn end(&mut self, named: &Named, moment: Moment, end: End) {
        let life = if let Some(fingerprint) = &named.fingerprint {
            self.by_fingerprint.get_mut(fingerprint)
        } else {
            let is_it = |life: &&mut Life| life.named.credential_id == named.credential_id;
            self.by_fingerprint.values_mut().find(is_it).filter(|_| named.credential_id.is_some())
        };
        if let Some(life) = life {
            let before = life.ended.filter(|(_, earlier)| *earlier == End::Revoked);
            life.ended = before.or(Some((moment, end)));
        } else {
            // Nobody acts by it, but a reader wants to know that it was there.
            self.past.push(Life { named: named.clone(), since: None, ended: Some((moment, end)) });
        }
    }

    /// Every life the ledger has told of, in no particular order.
    pub(crate) fn lives(&self) -> impl Iterator<Item = &Life> {
        self.past.iter().chain(self.by_fingerprint.values())
    }

    /// What is wrong with this actor acting at this time, if anything.
    pub(super) fn objection(&self, actor: &Actor, at: Time) -> Option<String> {
        if !self.is_listed {
            return None;
        }
        let fingerprints = || self.by_actor.get(&actor.actor_id).into_iter().flatten();
        let lives = || fingerprints().filter_map(|fingerprint| self.by_fingerprint.get(fingerprint));
        // A credential may have passed to someone else since.
        let is_own =
            |life: &&Life| (&life.named.actor_id, life.named.role) == (&Some(actor.actor_id.clone()), Some(actor.role));
        let own = || lives().filter(is_own);
        if own().any(|life| life.is_in_force(at)) {
            return None;
        }
        let Actor { actor_id, role, operated_by: _ } = actor;
        let last = own().filter_map(Life::end).max_by_key(|(ended, _)| *ended);
        Some(match last {
            None => format!("{actor_id} acts as {role}, but had no credential for that"),
            Some((ended, end)) => {
                format!("{actor_id} acts as {role}, but their last credential was {} at {ended}", end.words())
            }
        })
    }

    pub(crate) fn is_listed(&self) -> bool {
        self.is_listed
    }
}

impl Life {
    /// When it ended or will end, and how.
    fn end(&self) -> Option<(Time, End)> {
        let expiry = self.named.expires_at.map(|at| (at, End::Expired));
        self.ended.map(|(moment, end)| (moment.at, end)).into_iter().chain(expiry).min_by_key(|(at, _)| *at)
    }

    /// As it is once the same credential was listed again.
    fn followed(self, moment: Moment) -> Life {
        let ended = match self.ended {
            Some((earlier, end)) if earlier != moment || end != End::Removed => Some((earlier, end)),
            _ => Some((moment, End::Changed)),
        };
        Life { ended, ..self }
    }

    fn is_in_force(&self, at: Time) -> bool {
        self.end().is_none_or(|(ended, _)| at < ended.plus(UNDER_WAY))
    }
}

/// What the register of credentials has to say about the entries of a bundle.
pub(super) struct Credentials {
    objections: BTreeMap<u64, String>,
    /// Why nothing can be said, if so.
    unknown: Option<&'static str>,
}

impl Credentials {
    /// Follows the register through the bundle: from nothing if it begins with the ledger, or from where the previous
    /// period left it.
    pub(super) fn follow(contents: &Contents<'_>, register: Option<&mut Register>) -> io::Result<Credentials> {
        let (Scope::Period { first, end, .. }, Some(register)) = (&contents.manifest.scope, register) else {
            let unknown = Some("that needs the ledger from entry 0: a period from its beginning, or --after");
            return Ok(Credentials { objections: BTreeMap::new(), unknown });
        };
        let mut objections = BTreeMap::new();
        let mut is_listed = false;
        for mark in contents.entries.iter().filter(|mark| (*first..*end).contains(&mark.index)) {
            if TELLING.contains(&mark.r#type) {
                register.follow(&contents.entry(mark)?);
            }
            is_listed |= register.is_listed();
            let acted =
                mark.actor.filter(|_| mark.item.is_some()).and_then(|actor| contents.actors.get(actor as usize));
            let objection = acted.and_then(|actor| register.objection(actor, mark.at));
            objections.extend(objection.map(|what| (mark.index, what)));
        }
        let elsewhere = "people signed in elsewhere, so the ledger does not list their credentials";
        Ok(Credentials { objections, unknown: (!is_listed).then_some(elsewhere) })
    }

    pub(super) fn check(&self, id: &ItemId, history: &[Held<'_>], faults: &mut Vec<Fault>) -> Finding<Control> {
        let control = Control::Credentials;
        let found = history.iter().filter_map(|held| Some((held, self.objections.get(&held.entry.index)?)));
        let mut wrong = None;
        for (held, what) in found {
            wrong.get_or_insert(what);
            let fault = Fault::new(Check::Legality, "credential", what.clone());
            faults.push(fault.in_file(held.file).at_entry(held.entry.index).of_item(id));
        }
        match (wrong, self.unknown) {
            (Some(what), _) => Finding::fails(control, what.clone()),
            (None, Some(why)) => Finding::not_checked(control, why),
            (None, None) => Finding::holds(control, "everyone had a credential in force"),
        }
    }
}
