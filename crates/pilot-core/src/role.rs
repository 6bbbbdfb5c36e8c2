//! The five separated roles of the specification.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Initiator,
    Approver,
    SecurityAdmin,
    Executor,
    Auditor,
}

impl Role {
    pub const ALL: [Role; 5] = [Role::Initiator, Role::Approver, Role::SecurityAdmin, Role::Executor, Role::Auditor];

    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Initiator => "initiator",
            Role::Approver => "approver",
            Role::SecurityAdmin => "security_admin",
            Role::Executor => "executor",
            Role::Auditor => "auditor",
        }
    }

    /// Entries about access and credentials are for two roles only.
    pub const fn sees_every_entry(self) -> bool {
        matches!(self, Role::SecurityAdmin | Role::Auditor)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a role is one of initiator, approver, security_admin, executor, auditor")]
pub struct UnknownRole;

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        Role::ALL.into_iter().find(|role| role.as_str() == text).ok_or(UnknownRole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_written_exactly_as_the_specification_lists_it() {
        let names: Vec<_> = Role::ALL.iter().map(Role::to_string).collect();
        assert_eq!(names, ["initiator", "approver", "security_admin", "executor", "auditor"]);
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
        }
        for wrong in ["", "Approver", "approver ", "admin", "security-admin"] {
            assert_eq!(wrong.parse::<Role>(), Err(UnknownRole), "{wrong:?}");
        }
    }
}
