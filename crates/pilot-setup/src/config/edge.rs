//! The sections about who can reach the service and how often: `[tls]`, `[rate_limits]`, `[identity]`.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use pilot_core::limits::RATE_PER_MINUTE_MAX;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::account::{Account, Accounts};
use super::network::{Network, Networks};
use super::oauth::Oauth;

/// Where TLS ends: here, or at a mesh that is trusted to say who is calling.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "TlsSection")]
#[schemars(with = "TlsSection")]
pub enum Tls {
    Here(TlsFiles),
    Mesh(Mesh),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and those that lead to its root, in PEM.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Without it, no client certificate is asked for.
    pub clients: Option<ClientTrust>,
}

/// Whose client certificates count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTrust {
    pub client_ca: PathBuf,
    /// Which of them no longer count.
    pub crl: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mesh {
    pub trusted: Vec<Network>,
    /// The users that count as the mesh on a Unix socket.
    pub trusted_users: Vec<Account>,
    pub client_address: ClientAddress,
    pub client_certificate: ClientCertificate,
    /// The mesh hands certificates on; they are judged here once more.
    pub clients: Option<ClientTrust>,
    /// What the mesh says with each request, so that it is known by more than its address: one secret a line.
    pub secret_file: Option<PathBuf>,
}

impl Mesh {
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(address))
    }
}

/// Which header the mesh writes the caller's address to. Only that one is believed: a mesh passes on those it does not
/// know, as the caller wrote them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub enum ClientAddress {
    #[default]
    #[serde(rename = "x-forwarded-for")]
    XForwardedFor,
    #[serde(rename = "forwarded")]
    Forwarded,
}

/// In which header, and how, the mesh writes the caller's certificate. Only that one is believed, for the same reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
pub enum ClientCertificate {
    // `Client-Cert`, and `Client-Cert-Chain`: HAProxy, Caddy.
    #[default]
    Rfc9440,
    // `X-SSL-Client-Cert` with nginx's `$ssl_client_escaped_cert`.
    Nginx,
    // Envoy's `X-Forwarded-Client-Cert`.
    Xfcc,
}

impl ClientCertificate {
    pub const ALL: [ClientCertificate; 3] =
        [ClientCertificate::Rfc9440, ClientCertificate::Nginx, ClientCertificate::Xfcc];

    pub const fn as_str(self) -> &'static str {
        match self {
            ClientCertificate::Rfc9440 => "rfc9440",
            ClientCertificate::Nginx => "nginx",
            ClientCertificate::Xfcc => "xfcc",
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Termination {
    Mesh,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TlsSection {
    /// The service's certificate, followed by the chain to its root. A PEM file; when it is replaced, the new one is used
    /// without a restart.
    #[schemars(extend("format" = "path"))]
    certificate: Option<PathBuf>,
    /// The private key of the certificate. An unencrypted PEM file with mode 0600.
    #[schemars(extend("format" = "path"))]
    key: Option<PathBuf>,
    /// Issuers of accepted client certificates. A PEM file; without it, client certificates are not requested.
    #[schemars(extend("format" = "path"))]
    client_ca: Option<PathBuf>,
    /// Revocation lists for client certificates. A PEM file; needs `client_ca`.
    #[schemars(extend("format" = "path"))]
    crl: Option<PathBuf>,
    /// Set to `mesh` if TLS ends before the service. Needs `trusted` or `trusted_users`, and excludes `certificate` and `key`.
    termination: Option<Termination>,
    /// Addresses and networks of the mesh, such as `10.0.0.0/8`. Only with `termination`.
    trusted: Option<Networks>,
    /// Users of the mesh on a Unix socket, by name or number. Only they may speak for callers. Only with `termination`, and
    /// required with it if `listen` is a socket; `trusted` then only lists further proxies in front.
    trusted_users: Option<Accounts>,
    /// The header in which the mesh names the caller's address; no other header is read for it. Only with `termination`.
    #[schemars(extend("default" = ClientAddress::default()))]
    client_address: Option<ClientAddress>,
    /// How the mesh passes on the caller's certificate: `rfc9440` in `Client-Cert` (HAProxy, Caddy), `nginx` in
    /// `X-SSL-Client-Cert`, `xfcc` in Envoy's `X-Forwarded-Client-Cert`. No other header is read for it. Only with
    /// `termination`.
    #[schemars(extend("default" = ClientCertificate::default()))]
    client_certificate: Option<ClientCertificate>,
    /// A file with the secret that the mesh sends in `Pilot-Mesh-Secret`, one per line. Only with `termination`; required
    /// in production with `mechanism = "mutual_tls"`, except on a Unix socket.
    #[schemars(extend("format" = "path"))]
    mesh_secret_file: Option<PathBuf>,
}

impl TryFrom<TlsSection> for Tls {
    type Error = &'static str;

    fn try_from(section: TlsSection) -> Result<Tls, &'static str> {
        let TlsSection {
            certificate,
            key,
            client_ca,
            crl,
            termination,
            trusted,
            trusted_users,
            client_address,
            client_certificate,
            mesh_secret_file: secret_file,
        } = section;
        let is_about_mesh = trusted.is_some()
            || trusted_users.is_some()
            || client_address.is_some()
            || client_certificate.is_some()
            || secret_file.is_some();
        let clients = match (client_ca, crl) {
            (Some(client_ca), crl) => Some(ClientTrust { client_ca, crl }),
            (None, None) => None,
            (None, Some(_)) => return Err("[tls] crl needs client_ca: it revokes client certificates"),
        };
        match (termination, certificate, key) {
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
                Err("[tls] has both files and termination = \"mesh\"; choose one")
            }
            (Some(Termination::Mesh), ..) => {
                let trusted = trusted.map_or_else(Vec::new, |Networks(networks)| networks);
                let trusted_users = trusted_users.map_or_else(Vec::new, |Accounts(accounts)| accounts);
                if trusted.is_empty() && trusted_users.is_empty() {
                    return Err(
                        "[tls] termination = \"mesh\" needs trusted: the addresses of the mesh, or trusted_users: its \
                                users on a Unix socket",
                    );
                }
                let client_address = client_address.unwrap_or_default();
                let client_certificate = client_certificate.unwrap_or_default();
                Ok(Tls::Mesh(Mesh { trusted, trusted_users, client_address, client_certificate, clients, secret_file }))
            }
            (None, ..) if is_about_mesh => Err(
                "[tls] trusted, trusted_users, client_address, client_certificate and mesh_secret_file are for termination = \"mesh\"",
            ),
            (None, Some(certificate), Some(key)) => Ok(Tls::Here(TlsFiles { certificate, key, clients })),
            (None, ..) => Err("[tls] needs certificate and key, or termination = \"mesh\" with trusted"),
        }
    }
}

impl Tls {
    /// Whose client certificates count, wherever TLS ends.
    pub fn clients(&self) -> Option<&ClientTrust> {
        match self {
            Tls::Here(files) => files.clients.as_ref(),
            Tls::Mesh(mesh) => mesh.clients.as_ref(),
        }
    }

    pub fn mesh(&self) -> Option<&Mesh> {
        match self {
            Tls::Here(_) => None,
            Tls::Mesh(mesh) => Some(mesh),
        }
    }

    pub(super) fn resolve(&mut self, base: &Path) {
        let clients = match self {
            Tls::Here(files) => {
                files.certificate = base.join(&files.certificate);
                files.key = base.join(&files.key);
                &mut files.clients
            }
            Tls::Mesh(mesh) => {
                mesh.secret_file = mesh.secret_file.as_ref().map(|path| base.join(path));
                &mut mesh.clients
            }
        };
        if let Some(clients) = clients {
            clients.client_ca = base.join(&clients.client_ca);
            clients.crl = clients.crl.as_ref().map(|path| base.join(path));
        }
    }
}

impl ClientTrust {
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        [Some(&self.client_ca), self.crl.as_ref()].into_iter().flatten()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RateLimits {
    /// Reads per actor. Opening a live feed counts as one.
    pub reads_per_minute: Count,
    /// Writes per actor.
    pub writes_per_minute: Count,
    /// Requests under `/v1` without a credential, per address (IPv6: per /64).
    pub anonymous_per_minute: Count,
    /// Requests under `/v1` with an invalid credential, per address (IPv6: per /64).
    pub failed_per_minute: Count,
    /// How many seconds' worth of a budget may be used at once.
    pub burst_seconds: Count,
}

impl Default for RateLimits {
    fn default() -> Self {
        RateLimits {
            reads_per_minute: Count(1_200),
            writes_per_minute: Count(240),
            anonymous_per_minute: Count(120),
            failed_per_minute: Count(20),
            burst_seconds: Count(60),
        }
    }
}

/// A whole number above zero; in the environment it comes as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Count(u32);

impl JsonSchema for Count {
    fn schema_name() -> Cow<'static, str> {
        "Count".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"], "minimum": 1, "maximum": RATE_PER_MINUTE_MAX })
    }
}

impl Count {
    pub fn get(self) -> u32 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Count, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Count;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "a whole number from 1 to {RATE_PER_MINUTE_MAX}")
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Count, E> {
                let count = u32::try_from(number).ok().filter(|count| (1..=RATE_PER_MINUTE_MAX).contains(count));
                count
                    .map(Count)
                    .ok_or_else(|| E::custom(format!("must be a whole number from 1 to {RATE_PER_MINUTE_MAX}")))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Count, E> {
                self.visit_i64(text.parse().unwrap_or(0))
            }
        }
        deserializer.deserialize_any(Number)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdentitySection {
    /// What a caller presents: an access token of your identity provider, a client certificate, or a token whose digest is
    /// in the credential file. Exactly one mechanism is active.
    #[schemars(extend("default" = Mechanism::default()))]
    pub mechanism: Mechanism,
    /// The identity provider. Required with `mechanism = "oauth"`, and refused with any other.
    pub oauth: Option<Oauth>,
    /// What a client certificate must have besides an issuer in `tls.client_ca`. Only with `mechanism = "mutual_tls"`.
    pub mutual_tls: Option<MutualTls>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MutualTls {
    /// If set, only certificates with a SPIFFE ID of this domain are accepted. The domain without `spiffe://`: lower-case
    /// letters, digits, dots, hyphens and underscores.
    #[serde(default, deserialize_with = "trust_domain")]
    pub trust_domain: Option<String>,
}

fn trust_domain<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let domain = String::deserialize(deserializer)?;
    let is_sign = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
    if (1..=255).contains(&domain.len()) && domain.bytes().all(is_sign) {
        return Ok(Some(domain));
    }
    let detail = "is not a SPIFFE trust domain: write it without spiffe://, with lower-case letters, digits, dots, hyphens and underscores";
    Err(D::Error::custom(detail))
}

impl IdentitySection {
    pub(super) fn contradiction(&self) -> Option<&'static str> {
        match (self.mechanism, &self.oauth, &self.mutual_tls) {
            (Mechanism::Oauth, None, _) => {
                Some("identity: mechanism = \"oauth\" needs [identity.oauth] with issuer and audience")
            }
            (Mechanism::CredentialFile | Mechanism::MutualTls, Some(_), _) => {
                Some("identity.oauth: is for mechanism = \"oauth\"; remove it, or select that mechanism")
            }
            (Mechanism::CredentialFile | Mechanism::Oauth, _, Some(_)) => {
                Some("identity.mutual_tls: is for mechanism = \"mutual_tls\"; remove it, or select that mechanism")
            }
            (Mechanism::Oauth, Some(oauth), None) => oauth.contradiction(),
            (_, None, _) => None,
        }
    }
}

/// How a caller proves who it is. Exactly one is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    Oauth,
    MutualTls,
    #[default]
    CredentialFile,
}

impl Mechanism {
    pub const fn as_str(self) -> &'static str {
        match self {
            Mechanism::Oauth => "oauth",
            Mechanism::MutualTls => "mutual_tls",
            Mechanism::CredentialFile => "credential_file",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, environment: &[(&str, &str)], expected: &Expect) {
        let environment: Vec<_> =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let verdict = match Config::parse(Path::new("pilot.toml"), text, &environment) {
            Ok(Config { tls, rate_limits, identity, .. }) => format!("{tls:?} {rate_limits:?} {identity:?}"),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&verdict);
    }

    #[test]
    fn tls_ends_here_with_certificate_and_key_or_at_a_mesh_with_trusted_addresses() {
        check(
            "[tls]\ncertificate = 'c.pem'\nkey = 'k.pem'",
            &[],
            &expect![[r#"Some(Here(TlsFiles { certificate: "c.pem", key: "k.pem", clients: None })) None None"#]],
        );
        check(
            "[tls]\ntermination = 'mesh'\ntrusted = ['127.0.0.1']",
            &[],
            &expect![
                "Some(Mesh(Mesh { trusted: [127.0.0.1/32], trusted_users: [], client_address: XForwardedFor, client_certificate: Rfc9440, clients: None, secret_file: None })) None None"
            ],
        );
        check(
            "",
            &[("PILOT_TLS__TERMINATION", "mesh"), ("PILOT_TLS__TRUSTED", "127.0.0.1, fd00::/8")],
            &expect![
                "Some(Mesh(Mesh { trusted: [127.0.0.1/32, fd00::/8], trusted_users: [], client_address: XForwardedFor, client_certificate: Rfc9440, clients: None, secret_file: None })) None None"
            ],
        );
        for (text, expected) in [
            (
                "[tls]",
                expect![[
                    r#"pilot.toml, line 1, column 1: [tls] needs certificate and key, or termination = "mesh" with trusted"#
                ]],
            ),
            (
                "[tls]\ncertificate = 'c.pem'",
                expect![[
                    r#"pilot.toml, line 1, column 1: [tls] needs certificate and key, or termination = "mesh" with trusted"#
                ]],
            ),
            (
                "[tls]\ncertificate = 'c.pem'\nkey = 'k.pem'\ntermination = 'mesh'",
                expect![[r#"pilot.toml, line 1, column 1: [tls] has both files and termination = "mesh"; choose one"#]],
            ),
            (
                "[tls]\ntermination = 'mesh'",
                expect![[
                    r#"pilot.toml, line 1, column 1: [tls] termination = "mesh" needs trusted: the addresses of the mesh, or trusted_users: its users on a Unix socket"#
                ]],
            ),
            (
                "[tls]\ntermination = 'mesh'\ntrusted = []",
                expect![[
                    r#"pilot.toml, line 1, column 1: [tls] termination = "mesh" needs trusted: the addresses of the mesh, or trusted_users: its users on a Unix socket"#
                ]],
            ),
            (
                "[tls]\ntermination = 'mesh'\ntrusted = ['0.0.0.0/0']",
                expect![
                    "pilot.toml, line 3, column 11: must be an address or a network, such as 10.0.0.0/8, with no bit set beyond its prefix; /0 would trust everyone"
                ],
            ),
            ("[tls]\ntermination = 'nowhere'", expect!["pilot.toml, line 2, column 15: is not known, expected `mesh`"]),
            (
                "[tls]\ncertificate = 'c.pem'\nkey = 'k.pem'\ntrusted = ['127.0.0.1']",
                expect![[
                    r#"pilot.toml, line 1, column 1: [tls] trusted, trusted_users, client_address, client_certificate and mesh_secret_file are for termination = "mesh""#
                ]],
            ),
            (
                "[tls]\ncertificate = 'c.pem'\nkey = 'k.pem'\nclient_certificate = 'nginx'",
                expect![[
                    r#"pilot.toml, line 1, column 1: [tls] trusted, trusted_users, client_address, client_certificate and mesh_secret_file are for termination = "mesh""#
                ]],
            ),
            (
                "[tls]\ntermination = 'mesh'\ntrusted = ['127.0.0.1']\nclient_certificate = 'xfcc'",
                expect![
                    "Some(Mesh(Mesh { trusted: [127.0.0.1/32], trusted_users: [], client_address: XForwardedFor, client_certificate: Xfcc, clients: None, secret_file: None })) None None"
                ],
            ),
            (
                "[tls]\ntermination = 'mesh'\ntrusted = ['127.0.0.1']\nclient_certificate = 'any'",
                expect!["pilot.toml, line 4, column 22: is not known, expected one of `rfc9440`, `nginx`, `xfcc`"],
            ),
            (
                "[tls]\ncertificate = 'c.pem'\nkey = 'k.pem'\ncrl = 'r.pem'",
                expect!["pilot.toml, line 1, column 1: [tls] crl needs client_ca: it revokes client certificates"],
            ),
            (
                "[tls]\ncert = 'c.pem'",
                expect![[r#"
                    pilot.toml, line 1, column 1: [tls] needs certificate and key, or termination = "mesh" with trusted
                    pilot.toml, line 2, column 1: unknown field `cert`, expected one of `certificate`, `key`, `client_ca`, `crl`, `termination`, `trusted`, `trusted_users`, `client_address`, `client_certificate`, `mesh_secret_file`"#]],
            ),
        ] {
            check(text, &[], &expected);
        }
    }

    #[test]
    fn rate_limits_have_defaults_and_bounds() {
        check(
            "[rate_limits]",
            &[],
            &expect![
                "None Some(RateLimits { reads_per_minute: Count(1200), writes_per_minute: Count(240), anonymous_per_minute: Count(120), failed_per_minute: Count(20), burst_seconds: Count(60) }) None"
            ],
        );
        check(
            "[rate_limits]\nreads_per_minute = 10",
            &[("PILOT_RATE_LIMITS__BURST_SECONDS", "5")],
            &expect![
                "None Some(RateLimits { reads_per_minute: Count(10), writes_per_minute: Count(240), anonymous_per_minute: Count(120), failed_per_minute: Count(20), burst_seconds: Count(5) }) None"
            ],
        );
        check(
            "[rate_limits]\nreads_per_minute = 0",
            &[],
            &expect!["pilot.toml, line 2, column 20: must be a whole number from 1 to 1000000"],
        );
        check(
            "[rate_limits]\nreads_per_minute = 1.5",
            &[],
            &expect!["pilot.toml, line 2, column 20: has the wrong type, expected a whole number from 1 to 1000000"],
        );
        check(
            "[rate_limits]\nreads = 1",
            &[],
            &expect![
                "pilot.toml, line 2, column 1: unknown field `reads`, expected one of `reads_per_minute`, `writes_per_minute`, `anonymous_per_minute`, `failed_per_minute`, `burst_seconds`"
            ],
        );
        check(
            "",
            &[("PILOT_RATE_LIMITS__BURST_SECONDS", "many")],
            &expect![
                "the environment overrides the configuration with an invalid value: must be a whole number from 1 to 1000000 (set by PILOT_RATE_LIMITS__BURST_SECONDS)"
            ],
        );
    }

    #[test]
    fn an_unknown_mechanism_is_refused_with_the_known_ones() {
        check(
            "[identity]\nmechanism = 'credential_file'",
            &[],
            &expect!["None None Some(IdentitySection { mechanism: CredentialFile, oauth: None, mutual_tls: None })"],
        );
        check(
            "[identity]\nmechanism = 'password'",
            &[],
            &expect![
                "pilot.toml, line 2, column 13: is not known, expected one of `oauth`, `mutual_tls`, `credential_file`"
            ],
        );
        check("[identity]", &[], &expect!["pilot.toml, line 1, column 1: missing field `mechanism`"]);
    }
}
