//! Where the service listens: an address, or a Unix socket and who may use it.

use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use pilot_wire::socket_file::PATH_BYTES_MAX;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::account::Account;

/// An address of this machine, or the path of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Listen {
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Listen::Tcp(address) => Some(*address),
            Listen::Unix(_) => None,
        }
    }

    pub fn path(&self) -> Option<&Path> {
        match self {
            Listen::Tcp(_) => None,
            Listen::Unix(path) => Some(path),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Tcp(address) => fmt::Display::fmt(address, formatter),
            Listen::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum NoListen {
    #[error("must be an address and a port, such as 127.0.0.1:7450, or a socket, such as unix:/run/pilot/pilot.sock")]
    Neither,
    #[error("the path of a socket must begin with / and end with a file name, as in unix:/run/pilot/pilot.sock")]
    Path,
    #[error("the path of a socket has {0} bytes, but at most {PATH_BYTES_MAX} are possible; choose a shorter one")]
    TooLong(usize),
}

impl FromStr for Listen {
    type Err = NoListen;

    fn from_str(text: &str) -> Result<Listen, NoListen> {
        let Some(path) = text.strip_prefix("unix:") else {
            return text.parse().map(Listen::Tcp).map_err(|_| NoListen::Neither);
        };
        let is_file = path.starts_with('/') && !path.ends_with(['/', '.']) && !path.contains('\0');
        match path.len() {
            _ if !is_file || Path::new(path).file_name().is_none() => Err(NoListen::Path),
            bytes if bytes > PATH_BYTES_MAX => Err(NoListen::TooLong(bytes)),
            _ => Ok(Listen::Unix(path.into())),
        }
    }
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Listen, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Listen;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an address and a port, or a socket")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Listen, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl Serialize for Listen {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Listen {
    fn schema_name() -> Cow<'static, str> {
        "Listen".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "listen" })
    }
}

/// The file of a Unix socket.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Socket {
    /// The user who owns the socket, as a name in `/etc/passwd` or a number. By default it is the service's own; only root can
    /// choose another.
    pub owner: Option<Account>,
    /// The group whose members may connect, as a name in `/etc/group` or a number. By default it is the service's own. A
    /// service that is not root must be a member of it.
    pub group: Option<Account>,
    /// `0660` lets the owner and the group connect, `0600` only the owner.
    pub mode: SocketMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Default)]
pub enum SocketMode {
    #[serde(rename = "0600")]
    Owner,
    #[default]
    #[serde(rename = "0660")]
    Group,
}

impl SocketMode {
    pub const fn bits(self) -> u32 {
        match self {
            SocketMode::Owner => 0o600,
            SocketMode::Group => 0o660,
        }
    }
}

impl<'de> Deserialize<'de> for SocketMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SocketMode, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "0600" => Ok(SocketMode::Owner),
            "0660" => Ok(SocketMode::Group),
            _ => Err(D::Error::custom(
                "must be \"0600\" or \"0660\": to connect, a user needs both rights, and other users must have none. To let \
                 a user in, add it to the socket's group",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_has_an_absolute_path_that_the_kernel_can_take() {
        let long = |bytes: usize| format!("unix:/{}", "x".repeat(bytes - 1));
        for right in ["unix:/run/pilot/pilot.sock", &long(PATH_BYTES_MAX), "127.0.0.1:0", "[::1]:7450"] {
            assert_eq!(right.parse::<Listen>().unwrap().to_string(), right);
        }
        for (wrong, says) in [
            ("unix:pilot.sock", "must begin with /"),
            ("unix:", "must begin with /"),
            ("unix:@pilot", "must begin with /"),
            ("unix:/", "end with a file name"),
            ("unix:/run/", "end with a file name"),
            ("unix:/run/..", "end with a file name"),
            ("unix:/run/\0", "end with a file name"),
            (&long(PATH_BYTES_MAX + 1), "has 108 bytes"),
            ("/run/pilot.sock", "such as unix:/run/pilot/pilot.sock"),
            ("localhost:7450", "such as 127.0.0.1:7450"),
        ] {
            let error = wrong.parse::<Listen>().unwrap_err().to_string();
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }
}
