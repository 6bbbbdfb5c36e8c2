//! Which peers may speak for their callers: the mesh, and nobody else.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use http::header::{FORWARDED, HeaderName};
use http::request::Parts;
use pilot_core::digest::Digest;
use pilot_core::limits::MESH_SECRETS_MAX;
use pilot_core::token;
use pilot_setup::config::{ClientAddress, Mesh};
use pilot_wire::framing::Malformed;
use pilot_wire::peer::{Peer, PeerCertificate};
use rustls::pki_types::CertificateDer;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// RFC 9440.
const CLIENT_CERT: HeaderName = HeaderName::from_static("client-cert");
const CLIENT_CERT_CHAIN: HeaderName = HeaderName::from_static("client-cert-chain");
/// Longer chains occur only in attempts to keep us busy.
const CHAIN_MAX: usize = 8;
/// Headers with which a proxy speaks for its callers. From anyone else they are just the caller's claim, and are
/// removed.
const CLAIMS: [&str; 9] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-client-cert",
    "x-real-ip",
    "client-cert",
    "client-cert-chain",
    MESH_SECRET,
];
/// The header by which a mesh with a secret is recognised. It goes no further than this file.
const MESH_SECRET: &str = "pilot-mesh-secret";

/// Which peers are trusted when they speak for others.
#[derive(Debug, Default)]
pub struct Edge {
    mesh: Option<Mesh>,
    /// Any of these identifies a peer as the mesh; without any, its address does. Digests, since nobody needs the
    /// secrets again.
    secrets: Vec<Digest>,
    /// Callers who do not come through the mesh are refused.
    mesh_only: bool,
    /// Browsers are told to use only https from now on. That applies to a whole host for a whole year, so a pilot on
    /// somebody's `localhost` must not say it.
    pub https_only: bool,
}

impl Edge {
    pub fn new(mesh: Option<Mesh>, mesh_only: bool, secrets: Vec<Digest>) -> Edge {
        Edge { mesh_only: mesh_only && mesh.is_some(), mesh, secrets, https_only: false }
    }

    /// TLS ends here.
    pub fn encrypted(https_only: bool) -> Edge {
        Edge { https_only, ..Edge::default() }
    }

    /// The address the request comes from, which is the caller's and not the mesh's. Afterwards the head contains no
    /// claims of an untrusted peer.
    pub fn admit(&self, head: &mut Parts) -> Result<IpAddr, Malformed> {
        let peer = head.extensions.get::<Peer>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0);
        let trusted = self.mesh.as_ref().filter(|mesh| mesh.trusts(peer) && self.is_mesh(&head.headers));
        if trusted.is_none() && self.mesh_only {
            // The same whether the address or the secret was wrong.
            return Err(Malformed::Framing("Connect through the mesh: this peer is not part of it."));
        }
        let address = trusted.and_then(|mesh| caller(mesh, &head.headers)).unwrap_or(peer);
        let certificate = trusted.and_then(|_| certificate(&head.headers));
        // Searched first: almost no request has one, and a search costs less than nine removals.
        if head.headers.keys().any(|name| CLAIMS.contains(&name.as_str())) {
            for claim in CLAIMS {
                head.headers.remove(claim);
            }
        }
        if let Some(certificate) = certificate {
            head.extensions.insert(certificate);
        }
        Ok(address)
    }
}

impl Edge {
    /// Compared as digests, in constant time, and with every secret.
    fn is_mesh(&self, headers: &HeaderMap) -> bool {
        if self.secrets.is_empty() {
            return true;
        }
        let mut lines = headers.get_all(MESH_SECRET).iter();
        let (Some(line), None) = (lines.next(), lines.next()) else { return false };
        let shown = Digest::of(line.as_bytes());
        self.secrets.iter().fold(false, |found, secret| secret.matches(&shown) | found)
    }
}

/// The secrets of the mesh, from its file: one per line, so that a new one can be added next to the old one.
pub fn parse_mesh_secrets(bytes: &[u8]) -> Result<Vec<Digest>, &'static str> {
    let lines: Vec<_> =
        bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|it| !it.is_empty()).collect();
    match lines.len() {
        1..=MESH_SECRETS_MAX if lines.iter().all(|line| token::is_well_formed(line)) => {
            Ok(lines.into_iter().map(Digest::of).collect())
        }
        _ => Err("must contain one to four secrets, one per line, each of 32 to 256 printable ASCII characters"),
    }
}

/// The last address in the chain that is not the mesh's own: those before it were written by the caller.
fn caller(mesh: &Mesh, headers: &HeaderMap) -> Option<IpAddr> {
    let name = match mesh.client_address {
        ClientAddress::XForwardedFor => &X_FORWARDED_FOR,
        ClientAddress::Forwarded => &FORWARDED,
    };
    let lines: Vec<_> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    for part in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
        let address = match mesh.client_address {
            ClientAddress::XForwardedFor => parse_address(part.trim()),
            ClientAddress::Forwarded => forwarded_for(part),
        }?;
        if !mesh.trusts(address) {
            return Some(address);
        }
    }
    None
}

/// The `for` of one element of RFC 7239: `for=192.0.2.43`, `for="[2001:db8::1]:4711"`.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let pairs = element.split(';').filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(name, _)| name.eq_ignore_ascii_case("for")).map(|(_, value)| value);
    parse_address(values.next()?.trim_matches('"'))
}

/// With or without a port, with or without brackets.
fn parse_address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().ok().or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

/// RFC 9440: one structured byte sequence, `:base64:`, and a list of them for the chain to the issuer.
fn certificate(headers: &HeaderMap) -> Option<PeerCertificate> {
    let mut lines = headers.get_all(CLIENT_CERT).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let first = byte_sequence(line.as_bytes())?;
    let lines = headers.get_all(CLIENT_CERT_CHAIN).iter();
    let others = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).take(CHAIN_MAX);
    let others = others.map(|part| byte_sequence(part.trim_ascii())).collect::<Option<Vec<_>>>()?;
    Some(PeerCertificate([first].into_iter().chain(others).collect()))
}

fn byte_sequence(text: &[u8]) -> Option<CertificateDer<'static>> {
    let encoded = text.strip_prefix(b":")?.strip_suffix(b":")?;
    Some(data_encoding::BASE64.decode(encoded).ok()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn head(peer: &str, lines: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder();
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        head.extensions.insert(Peer(peer.parse().unwrap()));
        head
    }

    fn mesh(client_address: ClientAddress) -> Mesh {
        Mesh { trusted: vec!["10.0.0.0/8".parse().unwrap()], client_address, clients: None, secret_file: None }
    }

    #[track_caller]
    fn check(client_address: ClientAddress, peer: &str, lines: &[(&str, &str)], expected: &str) {
        let mut head = head(peer, lines);
        let address = Edge::new(Some(mesh(client_address)), false, Vec::new()).admit(&mut head).unwrap();
        assert_eq!(address.to_string(), expected);
        assert_eq!(head.headers.keys().count(), 0, "no claim is left");
    }

    #[test]
    fn the_caller_is_the_last_address_the_mesh_did_not_write_about_itself() {
        use ClientAddress::{Forwarded, XForwardedFor};
        let xff = |value| [("x-forwarded-for", value)];
        check(XForwardedFor, "10.1.1.1", &xff("192.0.2.7"), "192.0.2.7");
        check(XForwardedFor, "10.1.1.1", &xff("6.6.6.6, 192.0.2.7, 10.2.2.2"), "192.0.2.7");
        check(XForwardedFor, "10.1.1.1", &xff("192.0.2.7:4711"), "192.0.2.7");
        check(XForwardedFor, "10.1.1.1", &xff("[2001:db8::1]:4711"), "2001:db8::1");
        check(XForwardedFor, "10.1.1.1", &xff("::ffff:192.0.2.7"), "192.0.2.7");
        check(
            XForwardedFor,
            "10.1.1.1",
            &[("x-forwarded-for", "6.6.6.6"), ("x-forwarded-for", "192.0.2.7")],
            "192.0.2.7",
        );
        check(XForwardedFor, "10.1.1.1", &xff("unknown"), "10.1.1.1");
        check(XForwardedFor, "10.1.1.1", &[], "10.1.1.1");
        check(Forwarded, "10.1.1.1", &[("forwarded", "for=6.6.6.6, for=192.0.2.7;proto=https")], "192.0.2.7");
        check(Forwarded, "10.1.1.1", &[("forwarded", "proto=https;For=\"[2001:db8::1]:4711\"")], "2001:db8::1");
    }

    #[test]
    fn the_header_the_mesh_does_not_write_is_not_believed() {
        check(ClientAddress::XForwardedFor, "10.1.1.1", &[("forwarded", "for=6.6.6.6")], "10.1.1.1");
        check(ClientAddress::Forwarded, "10.1.1.1", &[("x-forwarded-for", "6.6.6.6")], "10.1.1.1");
    }

    #[test]
    fn claims_of_others_are_removed_and_believed_by_nobody() {
        let claims = [
            ("x-forwarded-for", "6.6.6.6"),
            ("forwarded", "for=6.6.6.6"),
            ("x-real-ip", "6.6.6.6"),
            ("client-cert", ":AAAA:"),
            ("client-cert-chain", ":AAAA:"),
            ("x-forwarded-client-cert", "Hash=00"),
        ];
        check(ClientAddress::XForwardedFor, "192.0.2.9", &claims, "192.0.2.9");
        let mut head = head("192.0.2.9", &claims);
        Edge::default().admit(&mut head).unwrap();
        assert!(head.headers.is_empty() && head.extensions.get::<PeerCertificate>().is_none());
    }

    #[test]
    fn a_certificate_is_taken_from_the_mesh_alone_and_only_when_it_is_one_byte_sequence() {
        let seen = |peer, lines: &[(&str, &str)]| {
            let mut head = head(peer, lines);
            Edge::new(Some(mesh(ClientAddress::XForwardedFor)), false, Vec::new()).admit(&mut head).unwrap();
            head.extensions
                .get::<PeerCertificate>()
                .map(|certificate| certificate.0.iter().flat_map(|der| der.to_vec()).collect::<Vec<_>>())
        };
        assert_eq!(seen("10.1.1.1", &[("client-cert", ":MAA=:")]), Some(vec![0x30, 0]));
        let chain = ("client-cert-chain", ":MQA=:, :MgA=:");
        assert_eq!(seen("10.1.1.1", &[("client-cert", ":MAA=:"), chain]), Some(vec![0x30, 0, 0x31, 0, 0x32, 0]));
        assert_eq!(seen("10.1.1.1", &[("client-cert", ":MAA=:"), ("client-cert-chain", "MQA=")]), None);
        assert_eq!(seen("10.1.1.1", &[chain]), None);
        assert_eq!(seen("192.0.2.9", &[("client-cert", ":MAA=:")]), None);
        assert_eq!(seen("10.1.1.1", &[("client-cert", "MAA=")]), None);
        assert_eq!(seen("10.1.1.1", &[("client-cert", ":MAA=:"), ("client-cert", ":MAA=:")]), None);
    }

    #[test]
    fn with_a_mesh_alone_others_are_refused() {
        let edge = Edge::new(Some(mesh(ClientAddress::XForwardedFor)), true, Vec::new());
        assert!(edge.admit(&mut head("10.1.1.1", &[])).is_ok());
        assert!(edge.admit(&mut head("192.0.2.9", &[])).is_err());
    }

    const SECRET: &str = "mesh-mesh-mesh-mesh-mesh-mesh-mesh-1";
    const NEXT: &str = "mesh-mesh-mesh-mesh-mesh-mesh-mesh-2";

    #[test]
    fn with_a_secret_the_address_alone_makes_nobody_the_mesh() {
        let secrets = || parse_mesh_secrets(format!("{SECRET}\n{NEXT}\n").as_bytes()).unwrap();
        let certificate = ("client-cert", ":MAA=:");
        let admitted = |peer, lines: &[(&str, &str)]| {
            let mesh = || Some(mesh(ClientAddress::XForwardedFor));
            let mut head = head(peer, &[lines, &[certificate]].concat());
            let only = Edge::new(mesh(), true, secrets()).admit(&mut head.clone()).is_ok();
            Edge::new(mesh(), false, secrets()).admit(&mut head).unwrap();
            assert!(head.headers.is_empty(), "the secret goes no further");
            (only, head.extensions.get::<PeerCertificate>().is_some())
        };
        for secret in [SECRET, NEXT] {
            assert_eq!(admitted("10.1.1.1", &[("pilot-mesh-secret", secret)]), (true, true));
        }
        assert_eq!(admitted("10.1.1.1", &[]), (false, false));
        assert_eq!(
            admitted("10.1.1.1", &[("pilot-mesh-secret", "mesh-mesh-mesh-mesh-mesh-mesh-mesh-3")]),
            (false, false)
        );
        assert_eq!(admitted("10.1.1.1", &[("pilot-mesh-secret", SECRET), ("pilot-mesh-secret", NEXT)]), (false, false));
        assert_eq!(
            admitted("192.0.2.9", &[("pilot-mesh-secret", SECRET)]),
            (false, false),
            "and neither does the secret"
        );
    }

    #[test]
    fn a_file_of_secrets_holds_one_to_four_that_cannot_be_guessed() {
        assert_eq!(parse_mesh_secrets(format!("\r\n {SECRET} \r\n").as_bytes()).map(|found| found.len()), Ok(1));
        for wrong in ["", "\n", "short", &format!("{SECRET} {NEXT}"), &[SECRET; 5].join("\n"), &"x".repeat(257)] {
            assert!(parse_mesh_secrets(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
