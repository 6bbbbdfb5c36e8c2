//! Which peers may speak for their callers: the mesh, and nobody else.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use http::header::{FORWARDED, HeaderName, HeaderValue};
use http::request::Parts;
use pilot_core::client_certificate::{self, Certificates, Fault};
use pilot_core::digest::Digest;
use pilot_core::limits::MESH_SECRETS_MAX;
use pilot_core::token;
use pilot_setup::config::{ClientAddress, ClientCertificate, Mesh};
use pilot_wire::framing::Malformed;
use pilot_wire::peer::{Address, PeerCertificate};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const CLIENT_CERT_CHAIN: &str = "Client-Cert-Chain";
/// Headers with which a proxy speaks for its callers. From anyone else they are just the caller's claim, and are
/// removed.
const CLAIMS: [&str; 10] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-client-cert",
    "x-real-ip",
    "client-cert",
    "client-cert-chain",
    "x-ssl-client-cert",
    MESH_SECRET,
];
/// The header by which a mesh with a secret is recognised. It goes no further than this file.
const MESH_SECRET: &str = "pilot-mesh-secret";

/// Which peers are trusted when they speak for others.
#[derive(Debug, Default)]
pub struct Edge {
    mesh: Option<Mesh>,
    /// The users that count as the mesh on a Unix socket.
    users: Vec<u32>,
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
        Edge { mesh_only: mesh_only && mesh.is_some(), mesh, users: Vec::new(), secrets, https_only: false }
    }

    /// On a Unix socket these users are the mesh.
    #[must_use]
    pub fn with_users(self, users: Vec<u32>) -> Edge {
        Edge { users, ..self }
    }

    /// TLS ends here.
    pub fn encrypted(https_only: bool) -> Edge {
        Edge { https_only, ..Edge::default() }
    }

    /// The address the request comes from, which is the caller's and not that of its mesh, the peer. Afterwards the head contains no
    /// claims of an untrusted peer.
    pub fn admit(&self, head: &mut Parts, peer: Address) -> Result<Address, Malformed> {
        let mesh = self.mesh.as_ref().filter(|mesh| is_place_of(mesh, &self.users, peer));
        let trusted = mesh.filter(|_| self.is_mesh(&head.headers));
        if trusted.is_none() && self.mesh_only {
            // The same whether the address, the user or the secret was wrong.
            return Err(Malformed::Framing("Connect through the mesh: this peer is not part of it."));
        }
        let address = trusted.and_then(|mesh| caller(mesh, &head.headers)).map_or(peer, Address::Ip);
        let certificate = trusted.map(|mesh| certificate(mesh.client_certificate, &head.headers));
        // Searched first: almost no request has one, and a search costs less than ten removals.
        if head.headers.keys().any(|name| CLAIMS.contains(&name.as_str())) {
            for claim in CLAIMS {
                head.headers.remove(claim);
            }
        }
        match certificate {
            Some(Ok(Some(certificate))) => drop(head.extensions.insert(certificate)),
            Some(Err(unread)) => drop(head.extensions.insert(unread)),
            Some(Ok(None)) | None => {}
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

/// Whether the mesh's connections come from there. On a Unix socket only a user counts, and otherwise only an address.
pub fn is_place_of(mesh: &Mesh, users: &[u32], peer: Address) -> bool {
    match peer {
        Address::Ip(address) => mesh.trusts(address),
        Address::User(id) => users.contains(&id),
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

/// Why there is no certificate although the mesh sent something about one. For the request's log line: it contains nothing
/// of what was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnreadCertificate {
    #[error("{header} {fault}")]
    Unreadable { header: &'static str, fault: Fault },
    // The caller may have written it, and a plain hint would then open the door to all of them.
    #[error(
        "no {expected}, but {found}: set client_certificate = \"{setting}\" if the mesh writes it; if it comes from the caller, the mesh must remove it"
    )]
    OtherFormat { expected: &'static str, found: &'static str, setting: &'static str },
}

const fn header_of(format: ClientCertificate) -> &'static str {
    match format {
        ClientCertificate::Rfc9440 => "Client-Cert",
        ClientCertificate::Nginx => "X-SSL-Client-Cert",
        ClientCertificate::Xfcc => "X-Forwarded-Client-Cert",
    }
}

fn certificate(format: ClientCertificate, headers: &HeaderMap) -> Result<Option<PeerCertificate>, UnreadCertificate> {
    let header = header_of(format);
    let unreadable = |header| move |fault| UnreadCertificate::Unreadable { header, fault };
    let lines = |header| headers.get_all(header).iter().map(HeaderValue::as_bytes);
    let Some(line) = client_certificate::only(lines(header)).map_err(unreadable(header))? else {
        return find_other_format(format, headers).map_or(Ok(None), Err);
    };
    let certificates: Certificates = match format {
        ClientCertificate::Rfc9440 => {
            let chain = client_certificate::read_byte_sequences(lines(CLIENT_CERT_CHAIN));
            let chain = chain.map_err(unreadable(CLIENT_CERT_CHAIN))?;
            client_certificate::read_byte_sequence(line).map(|first| [vec![first], chain].concat())
        }
        ClientCertificate::Nginx => client_certificate::read_escaped_pem(line),
        ClientCertificate::Xfcc => client_certificate::read_xfcc(line),
    }
    .map_err(unreadable(header))?;
    Ok(Some(PeerCertificate(certificates.into_iter().map(Into::into).collect())))
}

fn find_other_format(format: ClientCertificate, headers: &HeaderMap) -> Option<UnreadCertificate> {
    if format == ClientCertificate::Rfc9440 && headers.contains_key(CLIENT_CERT_CHAIN) {
        return Some(UnreadCertificate::Unreadable { header: CLIENT_CERT_CHAIN, fault: Fault::ChainOnly });
    }
    let other = ClientCertificate::ALL.into_iter().find(|other| headers.contains_key(header_of(*other)))?;
    let (expected, found) = (header_of(format), header_of(other));
    Some(UnreadCertificate::OtherFormat { expected, found, setting: other.as_str() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use http::Request;

    fn head(lines: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder();
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn mesh(client_address: ClientAddress) -> Mesh {
        let trusted = vec!["10.0.0.0/8".parse().unwrap()];
        let client_certificate = ClientCertificate::Rfc9440;
        let trusted_users = Vec::new();
        Mesh { trusted, trusted_users, client_address, client_certificate, clients: None, secret_file: None }
    }

    #[track_caller]
    fn check(client_address: ClientAddress, peer: &str, lines: &[(&str, &str)], expected: &str) {
        let mut head = head(lines);
        let edge = Edge::new(Some(mesh(client_address)), false, Vec::new());
        let address = edge.admit(&mut head, peer.parse().unwrap()).unwrap();
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
            ("x-ssl-client-cert", "-----BEGIN%20CERTIFICATE-----%0A"),
        ];
        check(ClientAddress::XForwardedFor, "192.0.2.9", &claims, "192.0.2.9");
        let mut head = head(&claims);
        Edge::default().admit(&mut head, "192.0.2.9".parse().unwrap()).unwrap();
        assert!(head.headers.is_empty() && head.extensions.get::<PeerCertificate>().is_none());
        assert!(head.extensions.get::<UnreadCertificate>().is_none(), "nor does anyone say what was wrong with them");
    }

    const RFC9440: (&str, &str) = ("client-cert", ":MAA=:");
    const NGINX: (&str, &str) =
        ("x-ssl-client-cert", "-----BEGIN%20CERTIFICATE-----%0AMAA%3D%0A-----END%20CERTIFICATE-----%0A");
    const XFCC: (&str, &str) = (
        "x-forwarded-client-cert",
        "Hash=e4f60d0aa6d7f3d3b6a6494b1c861b99f649c6f9ec51abaf201b20f297327c95;Cert=\"-----BEGIN%20CERTIFICATE-----%0AMAA%3D%0A-----END%20CERTIFICATE-----%0A\"",
    );

    /// What identity gets to see of these headers.
    #[track_caller]
    fn check_certificate(client_certificate: ClientCertificate, lines: &[(&str, &str)], expected: &Expect) {
        let mut head = head(lines);
        let mesh = Mesh { client_certificate, ..mesh(ClientAddress::XForwardedFor) };
        Edge::new(Some(mesh), false, Vec::new()).admit(&mut head, "10.1.1.1".parse().unwrap()).unwrap();
        assert!(head.headers.is_empty(), "no claim is left");
        let (read, unread) = (head.extensions.get::<PeerCertificate>(), head.extensions.get::<UnreadCertificate>());
        let verdict = match (read, unread) {
            (Some(certificate), None) => format!("{} certificates", certificate.0.len()),
            (None, Some(unread)) => unread.to_string(),
            (None, None) => "nothing".to_owned(),
            both @ (Some(_), Some(_)) => panic!("{both:?}"),
        };
        expected.assert_eq(&verdict);
    }

    #[test]
    fn exactly_the_configured_header_is_believed() {
        use ClientCertificate::{Nginx, Rfc9440, Xfcc};
        let all = [RFC9440, NGINX, XFCC];
        for (format, own) in [(Rfc9440, RFC9440), (Nginx, NGINX), (Xfcc, XFCC)] {
            check_certificate(format, &[own], &expect!["1 certificates"]);
            check_certificate(format, &all, &expect!["1 certificates"]);
            check_certificate(format, &[], &expect!["nothing"]);
        }
        check_certificate(
            Rfc9440,
            &[NGINX],
            &expect![[
                r#"no Client-Cert, but X-SSL-Client-Cert: set client_certificate = "nginx" if the mesh writes it; if it comes from the caller, the mesh must remove it"#
            ]],
        );
        check_certificate(
            Rfc9440,
            &[XFCC],
            &expect![[
                r#"no Client-Cert, but X-Forwarded-Client-Cert: set client_certificate = "xfcc" if the mesh writes it; if it comes from the caller, the mesh must remove it"#
            ]],
        );
        check_certificate(
            Nginx,
            &[RFC9440],
            &expect![[
                r#"no X-SSL-Client-Cert, but Client-Cert: set client_certificate = "rfc9440" if the mesh writes it; if it comes from the caller, the mesh must remove it"#
            ]],
        );
        check_certificate(
            Xfcc,
            &[NGINX],
            &expect![[
                r#"no X-Forwarded-Client-Cert, but X-SSL-Client-Cert: set client_certificate = "nginx" if the mesh writes it; if it comes from the caller, the mesh must remove it"#
            ]],
        );
    }

    #[test]
    fn what_cannot_be_read_says_which_header_and_why_and_nothing_of_its_value() {
        use ClientCertificate::{Nginx, Rfc9440, Xfcc};
        check_certificate(
            Rfc9440,
            &[("client-cert", ":{placeholder}:")],
            &expect!["Client-Cert is not a byte sequence, `:base64:`"],
        );
        check_certificate(Rfc9440, &[RFC9440, RFC9440], &expect!["Client-Cert was sent more than once"]);
        check_certificate(
            Rfc9440,
            &[RFC9440, ("client-cert-chain", "MQA=")],
            &expect!["Client-Cert-Chain is not a byte sequence, `:base64:`"],
        );
        check_certificate(
            Rfc9440,
            &[("client-cert-chain", ":MQA=:")],
            &expect!["Client-Cert-Chain came without `Client-Cert`"],
        );
        check_certificate(Nginx, &[NGINX, NGINX], &expect!["X-SSL-Client-Cert was sent more than once"]);
        check_certificate(
            Nginx,
            &[("x-ssl-client-cert", ":MAA=:")],
            &expect![
                "X-SSL-Client-Cert is not exactly one certificate in PEM, URL-encoded as in nginx's `$ssl_client_escaped_cert`"
            ],
        );
        check_certificate(Xfcc, &[XFCC, XFCC], &expect!["X-Forwarded-Client-Cert was sent more than once"]);
        check_certificate(
            Xfcc,
            &[("x-forwarded-client-cert", "Hash=00,Hash=01")],
            &expect![
                "X-Forwarded-Client-Cert has more than one element, so more than one proxy wrote it or a certificate forged it"
            ],
        );
        check_certificate(
            Xfcc,
            &[("x-forwarded-client-cert", "Hash=00;URI=spiffe://example.org/a")],
            &expect!["X-Forwarded-Client-Cert must have exactly one `Cert`"],
        );
    }

    #[test]
    fn a_certificate_is_taken_from_the_mesh_alone_and_only_when_it_is_one_byte_sequence() {
        let seen = |peer: &str, lines: &[(&str, &str)]| {
            let mut head = head(lines);
            let edge = Edge::new(Some(mesh(ClientAddress::XForwardedFor)), false, Vec::new());
            edge.admit(&mut head, peer.parse().unwrap()).unwrap();
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
        assert!(edge.admit(&mut head(&[]), "10.1.1.1".parse().unwrap()).is_ok());
        assert!(edge.admit(&mut head(&[]), "192.0.2.9".parse().unwrap()).is_err());
    }

    #[test]
    fn on_a_unix_socket_the_listed_users_are_the_mesh_and_nobody_else() {
        let edge = |only| Edge::new(Some(mesh(ClientAddress::XForwardedFor)), only, Vec::new()).with_users(vec![33]);
        let claims = [RFC9440, ("x-forwarded-for", "192.0.2.7")];
        for (peer, address, is_mesh) in
            [("uid:33", "192.0.2.7", true), ("uid:0", "uid:0", false), ("uid:34", "uid:34", false)]
        {
            let mut admitted = head(&claims);
            let peer: Address = peer.parse().unwrap();
            assert_eq!(edge(false).admit(&mut admitted, peer).unwrap().to_string(), address);
            assert_eq!(admitted.extensions.get::<PeerCertificate>().is_some(), is_mesh, "{peer}");
            assert!(admitted.headers.is_empty(), "no claim is left");
            assert_eq!(edge(true).admit(&mut head(&claims), peer).is_ok(), is_mesh, "{peer}");
        }
        assert_eq!(edge(false).admit(&mut head(&[]), "uid:33".parse().unwrap()).unwrap().to_string(), "uid:33");
    }

    const SECRET: &str = "mesh-mesh-mesh-mesh-mesh-mesh-mesh-1";
    const NEXT: &str = "mesh-mesh-mesh-mesh-mesh-mesh-mesh-2";

    #[test]
    fn with_a_secret_the_address_alone_makes_nobody_the_mesh() {
        let secrets = || parse_mesh_secrets(format!("{SECRET}\n{NEXT}\n").as_bytes()).unwrap();
        let certificate = ("client-cert", ":MAA=:");
        let admitted = |peer: &str, lines: &[(&str, &str)]| {
            let mesh = || Some(mesh(ClientAddress::XForwardedFor));
            let (mut head, peer) = (head(&[lines, &[certificate]].concat()), peer.parse().unwrap());
            let only = Edge::new(mesh(), true, secrets()).admit(&mut head.clone(), peer).is_ok();
            Edge::new(mesh(), false, secrets()).admit(&mut head, peer).unwrap();
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
