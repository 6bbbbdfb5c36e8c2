//! Addresses and networks, as `tls.trusted` lists them.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// An address, or all that share a prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Network {
    base: u128,
    prefix: u32,
    is_v4: bool,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "must be an address or a network, such as 10.0.0.0/8, with no bit set beyond its prefix; /0 would trust everyone"
)]
pub struct NotANetwork;

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Network, NotANetwork> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse::<u32>().map_err(|_| NotANetwork)?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NotANetwork)?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(bits);
        let network = Network { base: number(address), prefix, is_v4: address.is_ipv4() };
        let is_sound = (1..=bits).contains(&prefix) && network.masked(network.base) == network.base;
        is_sound.then_some(network).ok_or(NotANetwork)
    }
}

impl Network {
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.is_v4 && self.masked(number(address)) == self.base
    }

    fn masked(&self, number: u128) -> u128 {
        let bits: u32 = if self.is_v4 { 32 } else { 128 };
        let beyond = bits.saturating_sub(self.prefix);
        number.checked_shr(beyond).and_then(|kept| kept.checked_shl(beyond)).unwrap_or(0)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match u32::try_from(self.base) {
            Ok(base) if self.is_v4 => write!(formatter, "{}/{}", Ipv4Addr::from(base), self.prefix),
            _ => write!(formatter, "{}/{}", Ipv6Addr::from(self.base), self.prefix),
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// A list, or in the environment a text with commas.
pub(super) struct Networks(pub(super) Vec<Network>);

impl JsonSchema for Networks {
    fn schema_name() -> Cow<'static, str> {
        "Networks".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["array", "string"], "items": { "type": "string", "format": "network" } })
    }
}

impl<'de> Deserialize<'de> for Networks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Networks, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Networks;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of addresses and networks")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Networks, E> {
                let networks = text.split(',').map(|part| part.trim().parse()).collect::<Result<_, _>>();
                networks.map(Networks).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Networks, A::Error> {
                let mut networks = Vec::new();
                while let Some(text) = list.next_element::<String>()? {
                    networks.push(text.parse().map_err(A::Error::custom)?);
                }
                Ok(Networks(networks))
            }
        }
        deserializer.deserialize_any(List)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_the_addresses_that_share_its_prefix() {
        let holds = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().contains(address.parse::<IpAddr>().unwrap())
        };
        assert!(holds("127.0.0.1", "127.0.0.1"));
        assert!(!holds("127.0.0.1", "127.0.0.2"));
        assert!(holds("10.0.0.0/8", "10.255.0.1"));
        assert!(!holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("10.0.0.0/8", "::ffff:10.0.0.1"), "an IPv4 address may come in the dress of an IPv6 one");
        assert!(holds("fd00::/8", "fd12::1"));
        assert!(!holds("fd00::/8", "fe80::1"));
        assert!(!holds("::1", "0.0.0.1"));
    }

    #[test]
    fn a_network_with_stray_bits_or_without_any_prefix_is_refused() {
        for text in ["10.0.0.1/8", "0.0.0.0/0", "::/0", "10.0.0.0/33", "::1/129", "", "host", "10.0.0.0/x", "1.2.3"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
        assert_eq!("10.0.0.0/8".parse::<Network>().unwrap().to_string(), "10.0.0.0/8");
        assert_eq!("::1".parse::<Network>().unwrap().to_string(), "::1/128");
    }
}
