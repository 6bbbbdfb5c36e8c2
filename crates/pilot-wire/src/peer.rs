//! Who is at the other end of a connection.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;

/// The other end, according to the socket. The listener adds it to every request if anything needs it.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// The client's certificate and its chain up to the issuer, as verified in the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerCertificate(pub Arc<[CertificateDer<'static>]>);

/// What is counted together: an address or, with IPv6, the network that one customer is assigned.
pub fn origin(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_of_one_customer_counts_as_one_address() {
        let shown = |text: &str| origin(text.parse().unwrap()).to_string();
        assert_eq!(shown("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(shown("192.0.2.7"), "192.0.2.7");
    }
}
