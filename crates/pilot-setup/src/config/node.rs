//! `[node]`: this process among others that share a ledger.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::error::StartError;

const NAME_CHARACTERS_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Node {
    /// The name of this node, for people: 1 to 64 printable ASCII characters without spaces. By default it is the host
    /// name of the machine.
    #[serde(deserialize_with = "name")]
    #[schemars(length(min = 1, max = NAME_CHARACTERS_MAX))]
    pub name: Option<String>,
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(deserializer)?;
    let wrong = "node.name: must be 1 to 64 printable ASCII characters without spaces";
    if is_name(&name) { Ok(Some(name)) } else { Err(D::Error::custom(wrong)) }
}

fn is_name(text: &str) -> bool {
    (1..=NAME_CHARACTERS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl Node {
    /// The one that is set, or the machine's.
    pub fn name(&self) -> Result<String, StartError> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let refused = "node.name: the host name of this machine cannot be used; set [node] name";
        if is_name(&host) { Ok(host) } else { Err(StartError::Refused(refused.into())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_can_be_printed() {
        let read = |name: &str| toml::from_str::<Node>(&format!("name = \"{name}\""));
        for name in ["a", "node-1.example", &"n".repeat(64)] {
            assert_eq!(read(name).unwrap().name().unwrap(), name);
        }
        for name in ["", "a b", "ä", "a\\t", &"n".repeat(65)] {
            assert!(read(name).unwrap_err().message().contains("1 to 64 printable ASCII characters"), "{name}");
        }
    }

    #[test]
    fn without_a_name_it_is_the_machine_s() {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        assert_eq!(Node::default().name().unwrap(), host.trim_end());
    }
}
