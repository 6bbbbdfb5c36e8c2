//! URIs (RFC 3986).

use core::net::Ipv6Addr;

pub(super) fn is_uri(text: &str) -> bool {
    is_reference(text, true)
}

pub(super) fn is_uri_reference(text: &str) -> bool {
    is_reference(text, false)
}

fn is_reference(text: &str, needs_scheme: bool) -> bool {
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    // A colon in the first segment ends a scheme, or is wrong.
    let colon = rest.find([':', '/']).filter(|at| rest.get(*at..).is_some_and(|rest| rest.starts_with(':')));
    let hierarchy = match colon.and_then(|at| rest.split_at_checked(at)) {
        Some((scheme, rest)) if is_scheme(scheme) => rest.strip_prefix(':').unwrap_or_default(),
        Some(_) => return false,
        None if needs_scheme => return false,
        None => rest,
    };
    let path = match hierarchy.strip_prefix("//") {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            if !is_authority(authority) {
                return false;
            }
            path
        }
        None => hierarchy,
    };
    has_only(path, b":@/") && has_only(query, b":@/?") && has_only(fragment, b":@/?")
}

fn is_scheme(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(is_sign)
}

fn is_authority(text: &str) -> bool {
    let (user, place) = text.split_once('@').unwrap_or(("", text));
    let in_brackets = place.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (is_host, port) = if let Some((address, port)) = in_brackets {
        (is_address(address), port)
    } else {
        let (host, port) = place.split_at(place.find(':').unwrap_or(place.len()));
        (has_only(host, b""), port)
    };
    let is_port =
        port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()));
    has_only(user, b":") && is_host && is_port
}

/// What stands in brackets: an address of IPv6, or of a later version.
fn is_address(text: &str) -> bool {
    let is_later = |rest: &str| {
        rest.split_once('.').is_some_and(|(version, address)| {
            let is_version = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_version && !address.is_empty() && address.bytes().all(|byte| is_plain(byte) || byte == b':')
        })
    };
    text.strip_prefix(['v', 'V']).map_or_else(|| text.parse::<Ipv6Addr>().is_ok(), is_later)
}

/// `unreserved` and `sub-delims`.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte)
}

/// Nothing but plain signs, encoded ones, and these.
fn has_only(text: &str, signs: &[u8]) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let mut is_digit = || bytes.next().is_some_and(|digit| digit.is_ascii_hexdigit());
        let is_allowed = if byte == b'%' { is_digit() && is_digit() } else { is_plain(byte) || signs.contains(&byte) };
        if !is_allowed {
            return false;
        }
    }
    true
}
