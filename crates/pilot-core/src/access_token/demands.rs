//! What a token must say beyond being genuine, valid and for this service. Each demand can only keep a token out: none
//! makes anyone an actor or gives anyone a role.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fault::Fault;
use crate::limits::{CLAIM_PATH_NAMES_MAX, CLAIM_VALUES_MAX};
use crate::role::Role;
use crate::role_set::RoleSet;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Demands {
    /// Which clients may call. If empty, all of the provider's.
    pub clients: Vec<String>,
    /// All of them are needed.
    pub scopes: Vec<String>,
    /// One of them is needed, for people.
    pub acr: Vec<String>,
    /// All of them are needed, for people.
    pub amr: Vec<String>,
    pub roles: Option<RoleDemand>,
}

/// Which values a token must have for the role that the role map gives its actor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleDemand {
    pub claim: ClaimPath,
    /// A role that is not listed here is not accepted at all.
    pub values: BTreeMap<Role, Needed>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Needed {
    Nothing,
    OneOf(Vec<String>),
}

/// A claim, or a member of an object in one: `roles`, `realm_access.roles`, `https://pilot.example/roles`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimPath(Vec<String>);

impl ClaimPath {
    pub fn parse(text: &str) -> Option<ClaimPath> {
        // Some providers demand an address as the name of a claim, and its dots are part of it.
        let names: Vec<_> = if text.starts_with("https://") { vec![text] } else { text.split('.').collect() };
        let is_name = |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
        let is_sound = names.len() <= CLAIM_PATH_NAMES_MAX && names.iter().all(is_name);
        is_sound.then(|| ClaimPath(names.into_iter().map(str::to_owned).collect()))
    }

    fn find<'c>(&self, claims: &'c Map<String, Value>) -> Option<&'c Value> {
        let (first, rest) = self.0.split_first()?;
        rest.iter().try_fold(claims.get(first)?, |value, name| value.as_object()?.get(name))
    }
}

impl Demands {
    pub(super) fn check_client(&self, client: &str) -> Result<(), Fault> {
        let is_known = self.clients.is_empty() || self.clients.iter().any(|known| known == client);
        if is_known { Ok(()) } else { Err(Fault::OtherClient) }
    }

    /// `scope` is a string with spaces (RFC 9068); `scp` is that or a list. With both, nobody could say which one counts.
    pub(super) fn check_scopes(&self, claims: &Map<String, Value>) -> Result<(), Fault> {
        if self.scopes.is_empty() {
            return Ok(());
        }
        let found = match (claims.get("scope"), claims.get("scp")) {
            (Some(Value::String(scope)), None) | (None, Some(Value::String(scope))) => return self.check_scope(scope),
            (None, Some(scp @ Value::Array(_))) => texts(scp),
            _ => None,
        };
        let found = found.ok_or(Fault::Scope)?;
        if has_all(&self.scopes, &found) { Ok(()) } else { Err(Fault::Scope) }
    }

    /// The same for a `scope` that the provider said elsewhere.
    pub fn check_scope(&self, scope: &str) -> Result<(), Fault> {
        let found: Vec<_> = scope.split(' ').filter(|word| !word.is_empty()).take(CLAIM_VALUES_MAX + 1).collect();
        if found.len() <= CLAIM_VALUES_MAX && has_all(&self.scopes, &found) { Ok(()) } else { Err(Fault::Scope) }
    }

    /// How a person has signed in. Machines do not sign in, so nothing is demanded of them here.
    pub(super) fn check_sign_in(&self, claims: &Map<String, Value>) -> Result<(), Fault> {
        let acr = claims.get("acr").and_then(Value::as_str);
        if !self.acr.is_empty() && !acr.is_some_and(|acr| self.acr.iter().any(|known| known == acr)) {
            return Err(Fault::Acr);
        }
        let has_all_of = |amr: &Value| amr.is_array() && texts(amr).is_some_and(|found| has_all(&self.amr, &found));
        if self.amr.is_empty() || claims.get("amr").is_some_and(has_all_of) { Ok(()) } else { Err(Fault::Amr) }
    }

    /// The roles that the token does not stand in the way of.
    pub(super) fn roles(&self, claims: &Map<String, Value>) -> Result<RoleSet, Fault> {
        let every = Role::ALL.into_iter().fold(RoleSet::EMPTY, RoleSet::with);
        let Some(RoleDemand { claim, values }) = &self.roles else { return Ok(every) };
        let found = claim.find(claims).map_or(Some(Vec::new()), texts).ok_or(Fault::RolesClaim)?;
        let suffices = |needed: &Needed| match needed {
            Needed::Nothing => true,
            Needed::OneOf(values) => values.iter().any(|value| found.contains(&value.as_str())),
        };
        let allowed = values.iter().filter(|(_, needed)| suffices(needed)).map(|(role, _)| *role);
        Ok(allowed.fold(RoleSet::EMPTY, RoleSet::with))
    }
}

/// One string, or a list of strings.
fn texts(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(one) => Some(vec![one]),
        Value::Array(list) if list.len() <= CLAIM_VALUES_MAX => list.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

fn has_all(needed: &[String], found: &[&str]) -> bool {
    needed.iter().all(|one| found.contains(&one.as_str()))
}
