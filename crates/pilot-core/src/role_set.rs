//! A set of roles, small enough to copy.

use std::fmt;

use serde::ser::{Serialize, Serializer};

use crate::role::Role;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RoleSet(u8);

impl RoleSet {
    pub const EMPTY: RoleSet = RoleSet(0);
    /// How many sets of roles there are.
    pub(crate) const COUNT: usize = 32;

    /// In the order of their numbers.
    pub(crate) fn all_sets() -> impl Iterator<Item = RoleSet> {
        (0..32).map(RoleSet)
    }

    const fn bit(role: Role) -> u8 {
        1 << role as u8
    }

    pub const fn one(role: Role) -> RoleSet {
        RoleSet(RoleSet::bit(role))
    }

    pub const fn contains(self, role: Role) -> bool {
        self.0 & RoleSet::bit(role) != 0
    }

    #[must_use]
    pub const fn with(self, role: Role) -> RoleSet {
        RoleSet(self.0 | RoleSet::bit(role))
    }

    #[must_use]
    pub const fn union(self, other: RoleSet) -> RoleSet {
        RoleSet(self.0 | other.0)
    }

    #[must_use]
    pub const fn shared(self, other: RoleSet) -> RoleSet {
        RoleSet(self.0 & other.0)
    }

    #[must_use]
    pub const fn without(self, other: RoleSet) -> RoleSet {
        RoleSet(self.0 & !other.0)
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    pub fn iter(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |role| self.contains(*role))
    }

    /// A number below 32 that identifies this set.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

impl FromIterator<Role> for RoleSet {
    fn from_iter<T: IntoIterator<Item = Role>>(roles: T) -> Self {
        roles.into_iter().fold(RoleSet::EMPTY, RoleSet::with)
    }
}

impl Serialize for RoleSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// `approver or security_admin`: how a person would say it.
impl fmt::Display for RoleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(Role::as_str).collect();
        match names.split_last() {
            None => f.write_str("nobody"),
            Some((last, [])) => f.write_str(last),
            Some((last, rest)) => write!(f, "{} or {last}", rest.join(", ")),
        }
    }
}
