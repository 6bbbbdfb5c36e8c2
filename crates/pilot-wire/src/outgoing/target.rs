//! Where a request goes that someone else chose: checked as text, and again when its name is resolved. The connection is
//! made to the addresses that were checked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http::Uri;

use super::forbidden::why_forbidden;

const HTTPS_PORT: u16 = 443;
const HTTP_PORT: u16 = 80;
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// What may be reached besides public addresses by https on port 443.
pub struct Reach {
    /// Whether an address that is not public is allowed all the same.
    pub allows: Box<dyn Fn(IpAddr) -> bool + Send + Sync>,
    pub ports: Vec<u16>,
    /// Without TLS, and on port 80 too: only to addresses that `allows`.
    pub http: bool,
}

impl Reach {
    /// Nothing more.
    pub fn public() -> Reach {
        Reach { allows: Box::new(|_| false), ports: Vec::new(), http: false }
    }
}

/// No message contains the path or the query, which may be secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error("is not an address such as https://host/path")]
    Malformed,
    #[error("must begin with https://")]
    Scheme,
    #[error("must not contain a user or a password")]
    User,
    #[error("must not contain a fragment")]
    Fragment,
    #[error("has a host that is neither a name nor an address in its usual form")]
    Host,
    #[error("uses port {0}, which is not allowed")]
    Port(u16),
    #[error("leads to {address}, which is not allowed: {why}")]
    Forbidden { address: IpAddr, why: &'static str },
    #[error("leads to {0}, which must not be reached without TLS")]
    PublicHttp(IpAddr),
    #[error("leads to no address")]
    NoAddress,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Address(IpAddr),
    Name(String),
}

/// A URL that passed every check that needs no network.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    uri: Uri,
    host: Host,
    port: u16,
    is_https: bool,
}

impl Target {
    pub fn parse(text: &str, reach: &Reach) -> Result<Target, TargetError> {
        if text.contains('\\') || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TargetError::Malformed);
        }
        let (scheme, rest) = text.split_once("://").ok_or(TargetError::Malformed)?;
        let is_https = scheme.eq_ignore_ascii_case("https");
        let is_plain = reach.http && scheme.eq_ignore_ascii_case("http");
        if !(is_https || is_plain) {
            return Err(TargetError::Scheme);
        }
        if rest.contains('#') {
            return Err(TargetError::Fragment);
        }
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(TargetError::User);
        }
        let (host, port) = split_port(authority)?;
        let port = port.unwrap_or(if is_https { HTTPS_PORT } else { HTTP_PORT });
        let host = read_host(host)?;
        let is_usual = port == HTTPS_PORT || (is_plain && port == HTTP_PORT);
        if !is_usual && !reach.ports.contains(&port) {
            return Err(TargetError::Port(port));
        }
        let uri = text.parse().map_err(|_| TargetError::Malformed)?;
        let target = Target { uri, host, port, is_https };
        if let Host::Address(address) = target.host {
            target.check(&[address], reach)?;
        }
        Ok(target)
    }

    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Host and port: all of the address that may be shown.
    pub fn shown(&self) -> String {
        let host = match &self.host {
            Host::Address(IpAddr::V6(address)) => format!("[{address}]"),
            Host::Address(address) => address.to_string(),
            Host::Name(name) => name.clone(),
        };
        if self.port == HTTPS_PORT { host } else { format!("{host}:{}", self.port) }
    }

    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// Refuses all of them if one is forbidden: a name that leads to both would be tried until the wrong one answers.
    pub fn check(&self, addresses: &[IpAddr], reach: &Reach) -> Result<(), TargetError> {
        for address in addresses {
            let is_disguised = matches!(address, IpAddr::V6(inner) if inner.to_ipv4_mapped().is_some());
            let is_opened = !is_disguised && (reach.allows)(*address);
            match why_forbidden(*address) {
                Some(why) if !is_opened => return Err(TargetError::Forbidden { address: *address, why }),
                None if !self.is_https && !is_opened => return Err(TargetError::PublicHttp(*address)),
                _ => {}
            }
        }
        if addresses.is_empty() { Err(TargetError::NoAddress) } else { Ok(()) }
    }

    /// Resolves the name, once.
    pub(super) async fn resolve(
        &self,
        reach: &Reach,
    ) -> Result<Vec<SocketAddr>, Box<dyn std::error::Error + Send + Sync>> {
        let addresses: Vec<IpAddr> = match &self.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => {
                let found = tokio::net::lookup_host((name.as_str(), self.port)).await?;
                found.map(|address| address.ip()).collect()
            }
        };
        self.check(&addresses, reach)?;
        Ok(addresses.into_iter().map(|address| SocketAddr::new(address, self.port)).collect())
    }
}

/// The host, with the brackets of an IPv6 address, and the port if there is one.
fn split_port(authority: &str) -> Result<(&str, Option<u16>), TargetError> {
    let after_address = authority.rfind(']').map_or(0, |at| at + 1);
    let colon = authority.get(after_address..).and_then(|rest| rest.find(':'));
    let Some(colon) = colon else { return Ok((authority, None)) };
    let (host, port) = authority.split_at_checked(after_address + colon).ok_or(TargetError::Malformed)?;
    let digits = port.get(1..).unwrap_or_default();
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    let port = digits.parse().ok().filter(|_| is_plain).ok_or(TargetError::Malformed)?;
    Ok((host, Some(port)))
}

/// Other programs read `0x7f.1` or `127.1` as an address, so nothing that could be a number passes as a name.
fn read_host(host: &str) -> Result<Host, TargetError> {
    if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let address: Ipv6Addr = inner.parse().map_err(|_| TargetError::Host)?;
        return Ok(Host::Address(address.into()));
    }
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Ok(Host::Address(address.into()));
    }
    let is_label = |label: &str| {
        let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(is_sign)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = host.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    if host.len() <= NAME_BYTES_MAX && host.split('.').all(is_label) && !is_number {
        return Ok(Host::Name(host.to_ascii_lowercase()));
    }
    Err(TargetError::Host)
}
