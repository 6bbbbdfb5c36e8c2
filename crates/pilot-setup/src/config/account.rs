//! Users and groups of this machine, by name or number.

use std::borrow::Cow;
use std::fmt;
use std::fs;
use std::path::Path;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// What the kernel shows for every user that does not exist in the service's own user namespace.
const NOBODY: u32 = 65_534;

/// A user or a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Account {
    Number(u32),
    Name(String),
}

#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("`{name}` is not in {}; create it, or give its number if it is kept elsewhere", file.display())]
    Unknown { name: String, file: &'static Path },
    #[error("{} cannot be read: {source}; give the number instead of the name", file.display())]
    Read { file: &'static Path, source: std::io::Error },
    #[error("{NOBODY} cannot be trusted: the kernel shows it for all users that it cannot name")]
    Nobody,
}

impl Account {
    pub fn user(&self) -> Result<u32, AccountError> {
        self.look_up(Path::new("/etc/passwd"))
    }

    pub fn group(&self) -> Result<u32, AccountError> {
        self.look_up(Path::new("/etc/group"))
    }

    /// A user who may speak for others.
    pub fn trusted_user(&self) -> Result<u32, AccountError> {
        self.user().and_then(|id| if id == NOBODY { Err(AccountError::Nobody) } else { Ok(id) })
    }

    /// Both files have the name in the first column and the number in the third. A static program cannot ask the
    /// machine's other directories.
    fn look_up(&self, file: &'static Path) -> Result<u32, AccountError> {
        let name = match self {
            Account::Number(id) => return Ok(*id),
            Account::Name(name) => name,
        };
        let text = fs::read(file).map_err(|source| AccountError::Read { file, source })?;
        find(&String::from_utf8_lossy(&text), name).ok_or_else(|| AccountError::Unknown { name: name.clone(), file })
    }
}

fn find(text: &str, name: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let mut columns = line.split(':');
        columns.next().filter(|found| *found == name)?;
        columns.nth(1)?.parse().ok()
    })
}

impl fmt::Display for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Account::Number(id) => write!(formatter, "{id}"),
            Account::Name(name) => formatter.write_str(name),
        }
    }
}

const EXPECTED: &str = "a name or a number";
const WRONG: &str = "must be a name or a number, such as haproxy or 101";

fn parse<E: serde::de::Error>(text: &str) -> Result<Account, E> {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@$".contains(&byte);
    if let Ok(id) = text.parse() {
        return Ok(Account::Number(id));
    }
    let is_name = (1..=32).contains(&text.len())
        && text.bytes().all(is_sign)
        && !text.starts_with(|first: char| first.is_ascii_digit() || first == '-');
    if is_name { Ok(Account::Name(text.to_owned())) } else { Err(E::custom(WRONG)) }
}

struct One;

impl Visitor<'_> for One {
    type Value = Account;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(EXPECTED)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Account, E> {
        u32::try_from(number).map(Account::Number).map_err(|_| E::custom(WRONG))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Account, E> {
        parse(text)
    }
}

impl<'de> Deserialize<'de> for Account {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Account, D::Error> {
        deserializer.deserialize_any(One)
    }
}

impl JsonSchema for Account {
    fn schema_name() -> Cow<'static, str> {
        "Account".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer"] })
    }
}

/// A list, or in the environment a text with commas.
pub(super) struct Accounts(pub(super) Vec<Account>);

impl JsonSchema for Accounts {
    fn schema_name() -> Cow<'static, str> {
        "Accounts".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["array", "string"], "items": { "type": ["string", "integer"] } })
    }
}

impl<'de> Deserialize<'de> for Accounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Accounts, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Accounts;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of names and numbers")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Accounts, E> {
                text.split(',').map(|part| parse(part.trim())).collect::<Result<_, _>>().map(Accounts)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Accounts, A::Error> {
                let mut accounts = Vec::new();
                while let Some(account) = list.next_element()? {
                    accounts.push(account);
                }
                Ok(Accounts(accounts))
            }
        }
        deserializer.deserialize_any(List)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_whole_and_a_number_is_itself() {
        let text = "root:x:0:0::/root:/bin/sh\nproxyx:x:7:7::/:\nproxy:x:13:13::/:\nodd\nbad:x:many:1\n";
        let found = ["root", "proxy", "prox", "odd", "bad", ""].map(|name| find(text, name));
        assert_eq!(found, [Some(0), Some(13), None, None, None, None]);
        assert_eq!(Account::Number(4711).user().unwrap(), 4711);
    }

    #[test]
    fn the_user_that_stands_for_all_the_kernel_cannot_name_is_not_trusted() {
        assert!(matches!(Account::Number(NOBODY).trusted_user(), Err(AccountError::Nobody)));
        assert_eq!(Account::Number(NOBODY).user().unwrap(), NOBODY);
    }
}
