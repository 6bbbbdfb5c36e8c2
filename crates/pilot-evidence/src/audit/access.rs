//! The access review: who had which role and which credential, from when until when.

use std::collections::{BTreeMap, BTreeSet};

use pilot_core::actor::ActorId;
use pilot_core::document::ContentDigest;
use pilot_core::entry::details::Details;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::role::Role;
use pilot_core::role_map::{Kind, RoleMap};
use pilot_core::time::Time;

use crate::bundle::Scope;
use crate::verify::register::{End, Life, Moment, Register};

/// Where a row is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    RoleMap,
    Credential,
    /// Acted in this role, and neither a role map nor a credential in the bundle says why they could.
    Acted,
}

impl Source {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Source::RoleMap => "role_map",
            Source::Credential => "credential",
            Source::Acted => "acted",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct AccessRow {
    pub source: Source,
    pub actor: Option<ActorId>,
    pub role: Option<Role>,
    /// `human`, `machine`, or empty if no role map in the bundle says so.
    pub kind: &'static str,
    pub credential_id: String,
    pub fingerprint: String,
    pub from: Option<Moment>,
    /// Without an entry if it is only known by its expiry.
    pub until: Option<(Time, Option<u64>)>,
    /// How it ended, or `in force`, or `not known`.
    pub ended: &'static str,
    /// Entries about items in the bundle's scope that are theirs, and the last one.
    pub moves: u64,
    pub last_move: Option<Moment>,
    pub role_map: String,
    pub approved_by: String,
}

pub(crate) struct Access {
    /// What is not known, and why.
    pub notices: Vec<String>,
    pub rows: Vec<AccessRow>,
}

type Whose = (Option<ActorId>, Option<Role>);

/// Collects roles and credentials from entries in the order of the ledger.
pub(super) struct Review<'c> {
    scope: &'c Scope,
    role_maps: &'c BTreeMap<String, RoleMap>,
    register: Register,
    /// The register knows every credential, because the ledger was followed from its first entry.
    is_followed: bool,
    /// A start in scope without a list of credentials.
    unlisted: Option<u64>,
    /// The role map in force.
    pinned: Option<ContentDigest>,
    /// The rows of earlier role maps.
    past: Vec<AccessRow>,
    /// The rows of the one in force.
    present: Vec<AccessRow>,
    kinds: BTreeMap<ActorId, Kind>,
    moves: BTreeMap<Whose, (u64, Moment)>,
}

impl<'c> Review<'c> {
    pub(super) fn new(
        scope: &'c Scope,
        role_maps: &'c BTreeMap<String, RoleMap>,
        register: Option<Register>,
    ) -> Review<'c> {
        Review {
            scope,
            role_maps,
            is_followed: register.is_some(),
            register: register.unwrap_or_default(),
            unlisted: None,
            pinned: None,
            past: Vec::new(),
            present: Vec::new(),
            kinds: BTreeMap::new(),
            moves: BTreeMap::new(),
        }
    }

    /// Takes in one entry. Those before the scope show which role map was in force when it began.
    pub(super) fn take(&mut self, entry: &Entry, is_inside: bool) {
        let moment = Moment { entry: entry.index, at: entry.at };
        // The register already knows what was before the scope, if anybody does.
        if is_inside || !self.is_followed {
            self.register.follow(entry);
        }
        if entry.r#type == EntryType::ServiceStarted {
            let started = match entry.details() {
                Some(Details::ServiceStarted(started)) => started,
                _ => pilot_core::entry::details::Started::default(),
            };
            if !self.register.is_listed() && is_inside {
                self.unlisted.get_or_insert(entry.index);
            }
            self.pin(started.role_map, moment);
        }
        if entry.item.is_some() && is_inside {
            let theirs = self.moves.entry((entry.actor_id.clone(), entry.role)).or_insert((0, moment));
            *theirs = (theirs.0 + 1, moment);
        }
    }

    /// From here on this role map is in force.
    fn pin(&mut self, map: Option<ContentDigest>, moment: Moment) {
        if map == self.pinned {
            return;
        }
        let ended = if map.is_some() { "another role map" } else { "no role map" };
        for row in self.present.drain(..) {
            self.past.push(AccessRow { until: Some((moment.at, Some(moment.entry))), ended, ..row });
        }
        let digest = map.as_ref().map(ToString::to_string).unwrap_or_default();
        for mapped in self.role_maps.get(&digest).iter().flat_map(|map| &map.actors) {
            self.kinds.insert(mapped.actor.actor_id.clone(), mapped.kind);
        }
        if let Some(known) = self.role_maps.get(&digest) {
            let approved_by = known.approved_by.join("; ");
            self.present.extend(known.actors.iter().map(|mapped| AccessRow {
                source: Source::RoleMap,
                actor: Some(mapped.actor.actor_id.clone()),
                role: Some(mapped.actor.role),
                kind: kind_words(mapped.kind),
                from: Some(moment),
                role_map: digest.clone(),
                approved_by: approved_by.clone(),
                ..AccessRow::empty()
            }));
        }
        self.pinned = map;
    }

    pub(super) fn listed(mut self) -> Access {
        let notices = self.notices();
        let (first, as_of) = match self.scope {
            Scope::Item(_) => (0, None),
            Scope::Period { first, to, .. } => (*first, Some(*to)),
        };
        let open = if as_of.is_some() { "in force" } else { "not known" };
        let mut rows = std::mem::take(&mut self.past);
        rows.extend(self.present.drain(..).map(|row| AccessRow { ended: open, ..row }));
        let is_here = |life: &&Life| life.ended.is_none_or(|(moment, _)| moment.entry >= first);
        let lives = self.register.lives().filter(is_here);
        rows.extend(lives.map(|life| self.of_life(life, as_of.filter(|_| self.is_followed))));
        let explained: BTreeSet<Whose> = rows.iter().map(|row| (row.actor.clone(), row.role)).collect();
        let others = self.moves.keys().filter(|(actor, _)| actor.is_some()).filter(|whose| !explained.contains(whose));
        let others = others.map(|(actor, role)| AccessRow {
            actor: actor.clone(),
            role: *role,
            ended: "not known",
            ..AccessRow::empty()
        });
        rows.extend(others.collect::<Vec<_>>());
        for row in &mut rows {
            let theirs = self.moves.get(&(row.actor.clone(), row.role));
            (row.moves, row.last_move) = theirs.map_or((0, None), |(count, last)| (*count, Some(*last)));
        }
        rows.sort_by_key(|row| (row.actor.clone(), row.source, row.from, row.until, row.fingerprint.clone()));
        Access { notices, rows }
    }

    /// `as_of` is the end of the period, if the ledger was followed up to there.
    fn of_life(&self, life: &Life, as_of: Option<Time>) -> AccessRow {
        let expiry = life.named.expires_at;
        let (until, ended) = match (life.ended, expiry) {
            (Some((moment, End::Expired)), expiry) => {
                (Some((expiry.unwrap_or(moment.at).min(moment.at), Some(moment.entry))), End::Expired.words())
            }
            (Some((moment, _)), Some(expiry)) if expiry < moment.at => (Some((expiry, None)), End::Expired.words()),
            (Some((moment, end)), _) => (Some((moment.at, Some(moment.entry))), end.words()),
            (None, Some(expiry)) if as_of.is_some_and(|as_of| expiry <= as_of) => {
                (Some((expiry, None)), End::Expired.words())
            }
            (None, expiry) => (expiry.map(|at| (at, None)), if as_of.is_some() { "in force" } else { "not known" }),
        };
        let named = &life.named;
        let kind = named.actor_id.as_ref().and_then(|actor| self.kinds.get(actor));
        let text = |name: &Option<pilot_core::credentials::CredentialId>| {
            name.as_ref().map(ToString::to_string).unwrap_or_default()
        };
        AccessRow {
            source: Source::Credential,
            actor: named.actor_id.clone(),
            role: named.role,
            kind: kind.map_or("", |kind| kind_words(*kind)),
            credential_id: text(&named.credential_id),
            fingerprint: text(&named.fingerprint),
            from: life.since,
            until,
            ended,
            ..AccessRow::empty()
        }
    }

    fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        match self.scope {
            Scope::Item(_) => notices.push(
                "This bundle is about one item. It has only those starts of the service that were in force when something \
                 happened to the item. Who else had a role, who had a credential, and until when, is not known. The \
                 bundle of a period from the ledger's first entry shows it."
                    .to_owned(),
            ),
            Scope::Period { first, .. } if !self.is_followed => notices.push(format!(
                "This period begins at entry {first}, and the periods before it were not given with --after. Credentials \
                 that were listed earlier are not known, except where an entry of this period names them. Roles may have \
                 been approved earlier than shown."
            )),
            Scope::Period { .. } => {}
        }
        notices.extend(self.unlisted.map(|entry| {
            format!(
                "At the start at entry {entry} the service read no credentials from a file: people signed in with an \
                 identity provider or with certificates, whose credentials the ledger does not list."
            )
        }));
        notices
    }
}

impl AccessRow {
    fn empty() -> AccessRow {
        AccessRow {
            source: Source::Acted,
            actor: None,
            role: None,
            kind: "",
            credential_id: String::new(),
            fingerprint: String::new(),
            from: None,
            until: None,
            ended: "",
            moves: 0,
            last_move: None,
            role_map: String::new(),
            approved_by: String::new(),
        }
    }
}

const fn kind_words(kind: Kind) -> &'static str {
    match kind {
        Kind::Human => "human",
        Kind::Machine => "machine",
    }
}
