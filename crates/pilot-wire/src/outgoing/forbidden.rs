//! Addresses that a request must not go to when someone else chose where it goes: everything that is not public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// First address, length of the prefix, and what the range is for.
type Range<A> = (A, u32, &'static str);

const V4: &[Range<Ipv4Addr>] = &[
    (Ipv4Addr::UNSPECIFIED, 8, "this network"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "shared by a carrier"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    // A public address at which every machine of one cloud finds its platform.
    (Ipv4Addr::new(168, 63, 129, 16), 32, "the platform of a cloud"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "for protocols"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "for documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a relay to IPv6"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "for benchmarks"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "for documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "for documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::BROADCAST, 32, "broadcast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
];

/// The narrower range first.
const V6: &[Range<Ipv6Addr>] = &[
    (Ipv6Addr::UNSPECIFIED, 128, "unspecified"),
    (Ipv6Addr::LOCALHOST, 128, "loopback"),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xFFFF, 0, 0), 96, "IPv4 in IPv6"),
    (Ipv6Addr::new(0, 0, 0, 0, 0xFFFF, 0, 0, 0), 96, "translated to IPv4"),
    (Ipv6Addr::UNSPECIFIED, 96, "IPv4 in IPv6"),
    (Ipv6Addr::new(0x64, 0xFF9B, 0, 0, 0, 0, 0, 0), 96, "translated to IPv4"),
    (Ipv6Addr::new(0x64, 0xFF9B, 1, 0, 0, 0, 0, 0), 48, "translated to IPv4"),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64, "discarded"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, "tunnelled to IPv4"),
    (Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0), 48, "for benchmarks"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "for protocols"),
    (Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 0), 32, "for documentation"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "tunnelled to IPv4"),
    (Ipv6Addr::new(0x3FFF, 0, 0, 0, 0, 0, 0, 0), 20, "for documentation"),
    (Ipv6Addr::new(0xFC00, 0, 0, 0, 0, 0, 0, 0), 7, "private"),
    (Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 0), 10, "link-local"),
    (Ipv6Addr::new(0xFEC0, 0, 0, 0, 0, 0, 0, 0), 10, "site-local"),
    (Ipv6Addr::new(0xFF00, 0, 0, 0, 0, 0, 0, 0), 8, "multicast"),
];
/// Of IPv6, only this is public at all.
const PUBLIC: Range<Ipv6Addr> = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3, "public");

/// What the range is for that the address is in; `None` if it is public.
pub fn why_forbidden(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => {
            let is_in = |(base, prefix, _): &&Range<Ipv4Addr>| {
                (u32::from(address) ^ u32::from(*base)).checked_shr(32 - prefix).unwrap_or(0) == 0
            };
            V4.iter().find(is_in).map(|(_, _, why)| *why)
        }
        IpAddr::V6(address) => {
            let is_in = |(base, prefix, _): &&Range<Ipv6Addr>| {
                (u128::from(address) ^ u128::from(*base)).checked_shr(128 - prefix).unwrap_or(0) == 0
            };
            let named = V6.iter().find(is_in).map(|(_, _, why)| *why);
            named.or_else(|| (!is_in(&&PUBLIC)).then_some("not public"))
        }
    }
}
