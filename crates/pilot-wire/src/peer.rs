//! Who is at the other end of a connection.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What the number of a user begins with, so that it cannot be taken for an address.
const USER: &str = "uid:";

/// Where a connection or a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Address {
    Ip(IpAddr),
    /// A user of this machine, at the other end of a Unix socket.
    User(u32),
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Address {
        Address::Ip(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Ip(address) => fmt::Display::fmt(address, formatter),
            Address::User(id) => write!(formatter, "{USER}{id}"),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("is neither an IP address nor a user")]
pub struct NotAnAddress;

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Address, NotAnAddress> {
        match text.strip_prefix(USER) {
            Some(id) => id.parse().map(Address::User).map_err(|_| NotAnAddress),
            None => text.parse().map(Address::Ip).map_err(|_| NotAnAddress),
        }
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Address, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// The client's certificate and its chain up to the issuer, as verified in the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerCertificate(pub Arc<[CertificateDer<'static>]>);

/// What is counted together: an address, with IPv6 the network that one customer is assigned, or a user.
pub fn origin(address: Address) -> Address {
    match address {
        Address::Ip(IpAddr::V6(address)) => {
            Address::Ip(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into())
        }
        Address::Ip(IpAddr::V4(_)) | Address::User(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_of_one_customer_counts_as_one_address() {
        let shown = |text: &str| origin(Address::Ip(text.parse().unwrap())).to_string();
        assert_eq!(shown("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(shown("192.0.2.7"), "192.0.2.7");
    }

    #[test]
    fn each_user_counts_as_one_and_as_no_address() {
        assert_eq!(origin(Address::User(33)).to_string(), "uid:33");
        for (text, address) in [("uid:33", Some(Address::User(33))), ("::1", Some(Address::Ip("::1".parse().unwrap())))]
        {
            assert_eq!(text.parse::<Address>().ok(), address);
        }
        for wrong in ["33", "uid:", "uid:-1", "uid:::1", ""] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
