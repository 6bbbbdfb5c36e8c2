//! The section `[identity.oauth]`: which identity provider is trusted, and for what.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use http::Uri;
use pilot_core::access_token::{
    Algorithm, ClaimPath, ClientClaim, Demands, RoleDemand, Rules, SubjectClaim, TokenIdClaim, TokenType,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::claims::{
    RoleValues, TokenTypes, client_claim, compared, roles_claim, subject_claim, texts, token_id_claim, words,
};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Oauth {
    /// The one issuer of accepted tokens, exactly as in `iss`.
    pub issuer: ProviderUrl,
    /// The audience of tokens for this service, exactly as in `aud`; preferably the service's own address.
    #[serde(deserialize_with = "some_text")]
    pub audience: String,
    /// The service's own address, as clients see it. Needed only if `audience` is not an address.
    pub resource_url: Option<ProviderUrl>,
    /// Where the provider publishes its keys. By default this is read from the issuer's discovery document.
    pub jwks_url: Option<ProviderUrl>,
    /// The accepted signature algorithms.
    #[serde(default)]
    pub algorithms: Algorithms,
    /// Certificate authorities to trust for the provider, in addition to the system's. A PEM file.
    #[schemars(extend("format" = "path"))]
    pub ca_file: Option<PathBuf>,
    /// How far the provider's clock may differ from this machine's.
    #[serde(default = "leeway", deserialize_with = "leeway_seconds")]
    #[schemars(extend("type" = ["integer", "string"], "maximum" = LEEWAY_SECONDS_MAX))]
    pub leeway_seconds: u32,
    /// A token that was issued for longer than this is not accepted.
    #[serde(default = "lifetime", deserialize_with = "lifetime_minutes")]
    #[schemars(extend("type" = ["integer", "string"], "minimum" = 1, "maximum" = LIFETIME_MINUTES_MAX))]
    pub lifetime_minutes_max: u32,
    /// The clients whose tokens are accepted, by their ids at the provider. Without it, every client of the provider that
    /// gets a token for this audience can act for its users; production warns.
    #[serde(default, deserialize_with = "compared")]
    #[schemars(extend("type" = ["array", "string"], "default" = ()))]
    pub clients: Vec<String>,
    /// Scopes that a token must have, all of them, in `scope` or `scp`.
    #[serde(default, deserialize_with = "words")]
    #[schemars(extend("type" = ["array", "string"], "default" = ()))]
    pub scopes_required: Vec<String>,
    /// How people must have signed in: their token's `acr` must be one of these. Does not apply to machines of the role map.
    #[serde(default, deserialize_with = "compared")]
    #[schemars(extend("type" = ["array", "string"], "default" = ()))]
    pub acr_values: Vec<String>,
    /// By which means people must have signed in: their token's `amr` must include all of these. Does not apply to machines
    /// of the role map.
    #[serde(default, deserialize_with = "compared")]
    #[schemars(extend("type" = ["array", "string"], "default" = ()))]
    pub amr_required: Vec<String>,
    /// The accepted values of `typ` in a token's header. `JWT` and `absent` are also what ID tokens have, so they need
    /// `clients`, and what looks like an ID token is refused.
    #[serde(default)]
    #[schemars(extend("default" = [TokenType::AccessToken.as_str()]))]
    pub token_types: TokenTypes,
    /// The claim that names the client a token was issued to.
    #[serde(default = "by_client_id", deserialize_with = "client_claim")]
    #[schemars(with = "String", extend("enum" = ClientClaim::NAMES, "default" = ClientClaim::ClientId.as_str()))]
    pub client_claim: ClientClaim,
    /// The claim that the role map's `subject` is compared with. A client that acts for itself and lacks the claim is known
    /// by its `sub`.
    #[serde(default = "by_sub", deserialize_with = "subject_claim")]
    #[schemars(with = "String", extend("enum" = SubjectClaim::NAMES, "default" = SubjectClaim::Sub.as_str()))]
    pub subject_claim: SubjectClaim,
    /// The claim that identifies a token when it is revoked. With `digest`, a digest of what was signed does.
    #[serde(default = "by_jti", deserialize_with = "token_id_claim")]
    #[schemars(with = "String", extend("enum" = TokenIdClaim::NAMES, "default" = TokenIdClaim::Jti.as_str()))]
    pub token_id_claim: TokenIdClaim,
    /// The claim with a person's or machine's roles or groups, such as `groups` or `realm_access.roles`. Needs
    /// `[identity.oauth.role_values]`.
    #[serde(default, deserialize_with = "roles_claim")]
    #[schemars(with = "Option<String>")]
    pub roles_claim: Option<ClaimPath>,
    /// Which values of `roles_claim` a caller needs for the role that the role map gives them. A role that is not listed
    /// here is not accepted. This can only keep callers out: it never gives anyone a role.
    pub role_values: Option<RoleValues>,
    /// The console's client at the provider. If set, the console offers to sign in there.
    pub console_client_id: Option<String>,
    /// The scopes that the console requests. Needs `console_client_id`.
    #[serde(default, deserialize_with = "texts")]
    #[schemars(extend("type" = ["array", "string"]))]
    pub console_scopes: Vec<String>,
    /// The `resource` that the console requests tokens for (RFC 8707), if the provider knows the service by another name than
    /// `audience`. Needs `console_client_id`.
    #[serde(default, deserialize_with = "optional_text")]
    pub console_resource: Option<String>,
    /// If this section exists, the service asks the provider whether each token is still active (RFC 7662).
    pub introspection: Option<Introspection>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Introspection {
    /// The provider's introspection endpoint.
    pub url: ProviderUrl,
    /// The service's own client at the provider.
    #[serde(deserialize_with = "some_text")]
    pub client_id: String,
    /// A file with the secret of that client: one line, mode 0600.
    #[schemars(extend("format" = "path"))]
    pub client_secret_file: PathBuf,
}

impl Oauth {
    pub fn rules(&self) -> Rules {
        Rules {
            issuer: self.issuer.text.clone(),
            audience: self.audience.clone(),
            algorithms: self.algorithms.0.clone(),
            leeway_seconds: self.leeway_seconds,
            lifetime_seconds_max: self.lifetime_minutes_max.saturating_mul(60),
            token_types: self.token_types.0.clone(),
            client_claim: self.client_claim,
            subject_claim: self.subject_claim,
            token_id_claim: self.token_id_claim,
            demands: self.demands(),
        }
    }

    fn demands(&self) -> Demands {
        let roles = self.roles_claim.as_ref().zip(self.role_values.as_ref());
        Demands {
            clients: self.clients.clone(),
            scopes: self.scopes_required.clone(),
            acr: self.acr_values.clone(),
            amr: self.amr_required.clone(),
            roles: roles.map(|(claim, values)| RoleDemand { claim: claim.clone(), values: values.needed() }),
        }
    }

    /// The address of this service as others see it: the audience, when that is one.
    pub fn resource(&self) -> Option<&str> {
        let audience = ProviderUrl::parse(&self.audience).map(|_| self.audience.as_str());
        self.resource_url.as_ref().map(|url| url.text.as_str()).or(audience)
    }

    pub(super) fn contradiction(&self) -> Option<&'static str> {
        if self.resource().is_none() {
            return Some(
                "identity.oauth.audience: is not an https address, so set resource_url to this service's own address, as clients see it",
            );
        }
        let is_scope = |scope: &String| !scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_graphic());
        if !self.console_scopes.iter().all(is_scope) {
            return Some("identity.oauth.console_scopes: each must be one word, without spaces");
        }
        if self.console_client_id.is_none() && !self.console_scopes.is_empty() {
            return Some("identity.oauth.console_scopes: needs console_client_id");
        }
        if self.console_client_id.is_none() && self.console_resource.is_some() {
            return Some("identity.oauth.console_resource: needs console_client_id");
        }
        self.contradiction_of_clients().or_else(|| self.contradiction_of_roles())
    }

    fn contradiction_of_clients(&self) -> Option<&'static str> {
        let Oauth { clients, console_client_id, audience, .. } = self;
        let could_be_id_tokens = self.token_types.include_id_tokens();
        if could_be_id_tokens && clients.is_empty() {
            return Some(
                "identity.oauth.token_types: ID tokens have this type too, so set clients to those that may call",
            );
        }
        // An ID token's audience is its client.
        if could_be_id_tokens && (clients.contains(audience) || console_client_id.as_ref() == Some(audience)) {
            return Some(
                "identity.oauth.audience: is also a client, so that client's ID tokens could not be told from access tokens; register the service as an API with a name of its own",
            );
        }
        // At Google, an audience that is not an address is a client, and the presenter may be another client of its project.
        if self.issuer.text == GOOGLE && ProviderUrl::parse(audience).is_none() {
            return Some(
                "identity.oauth.audience: Google's tokens for a client are ID tokens of people, which are not accepted; use this service's own address, for service accounts",
            );
        }
        let is_listed = |client: &String| clients.is_empty() || clients.contains(client);
        if !console_client_id.as_ref().is_none_or(is_listed) {
            return Some(
                "identity.oauth.clients: does not list console_client_id, so nobody could sign in to the console",
            );
        }
        None
    }

    fn contradiction_of_roles(&self) -> Option<&'static str> {
        match (&self.roles_claim, &self.role_values) {
            (Some(_), None) => Some("identity.oauth.roles_claim: needs [identity.oauth.role_values]"),
            (None, Some(_)) => Some("identity.oauth.role_values: needs roles_claim"),
            (Some(_), Some(values)) if values.needed().is_empty() => {
                Some("identity.oauth.role_values: lists no role, so nobody could call")
            }
            _ => None,
        }
    }

    pub(super) fn resolve(&mut self, base: &Path) {
        self.ca_file = self.ca_file.as_ref().map(|path| base.join(path));
        if let Some(introspection) = &mut self.introspection {
            introspection.client_secret_file = base.join(&introspection.client_secret_file);
        }
    }

    /// Whether any request to the provider goes over TLS.
    pub fn needs_tls(&self) -> bool {
        let introspection = self.introspection.as_ref().map(|introspection| &introspection.url);
        [Some(&self.issuer), self.jwks_url.as_ref(), introspection].into_iter().flatten().any(ProviderUrl::is_https)
    }
}

/// An address of the provider: over TLS, or on this machine. The text is kept as written, because it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderUrl {
    pub text: String,
    pub uri: Uri,
}

impl ProviderUrl {
    pub fn parse(text: &str) -> Option<ProviderUrl> {
        let uri: Uri = text.parse().ok()?;
        let authority = uri.authority()?.as_str();
        let host = uri.host()?.trim_matches(['[', ']']);
        let is_here = host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback());
        let is_private = match uri.scheme_str()? {
            "https" => true,
            "http" => is_here,
            _ => false,
        };
        let is_plain = !authority.contains('@') && !text.contains('#') && !text.contains(char::is_whitespace);
        (is_private && is_plain).then(|| ProviderUrl { text: text.to_owned(), uri })
    }

    pub fn is_https(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// Scheme, host and port, as a content security policy names them.
    pub fn origin(&self) -> String {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        format!("{}://{authority}", self.uri.scheme_str().unwrap_or("https"))
    }
}

impl JsonSchema for ProviderUrl {
    fn schema_name() -> Cow<'static, str> {
        "ProviderUrl".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "https-uri" })
    }
}

impl<'de> Deserialize<'de> for ProviderUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ProviderUrl, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = "must be an address such as https://host/path, without a user or a fragment; http is allowed only for this machine";
        let url = ProviderUrl::parse(&text).filter(|url| url.uri.query().is_none());
        url.ok_or_else(|| D::Error::custom(wrong))
    }
}

/// Which signatures count. A list, or in the environment a text with commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Algorithms(Vec<Algorithm>);

impl Default for Algorithms {
    fn default() -> Self {
        Algorithms(vec![Algorithm::Rs256, Algorithm::Ps256, Algorithm::Es256, Algorithm::EdDsa])
    }
}

impl Algorithms {
    fn named<'n, E: serde::de::Error>(names: impl Iterator<Item = &'n str>) -> Result<Algorithms, E> {
        let wrong = || E::custom(format!("must be a list of one or more of {}", Algorithm::NAMES.join(", ")));
        let algorithms = names.map(|name| Algorithm::named(name).ok_or_else(wrong)).collect::<Result<Vec<_>, _>>()?;
        if algorithms.is_empty() { Err(wrong()) } else { Ok(Algorithms(algorithms)) }
    }
}

impl JsonSchema for Algorithms {
    fn schema_name() -> Cow<'static, str> {
        "Algorithms".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["array", "string"], "items": { "enum": Algorithm::NAMES }, "minItems": 1 })
    }
}

impl Serialize for Algorithms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|algorithm| algorithm.as_str()))
    }
}

impl<'de> Deserialize<'de> for Algorithms {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Algorithms, D::Error> {
        Algorithms::named(texts(deserializer)?.iter().map(String::as_str))
    }
}

const GOOGLE: &str = "https://accounts.google.com";
const LEEWAY_SECONDS_MAX: u32 = 120;
const LIFETIME_MINUTES_MAX: u32 = 7 * 24 * 60;

fn by_client_id() -> ClientClaim {
    ClientClaim::ClientId
}

fn by_sub() -> SubjectClaim {
    SubjectClaim::Sub
}

fn by_jti() -> TokenIdClaim {
    TokenIdClaim::Jti
}

fn leeway() -> u32 {
    30
}

fn lifetime() -> u32 {
    24 * 60
}

fn leeway_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    deserializer.deserialize_any(Within(0, LEEWAY_SECONDS_MAX))
}

fn lifetime_minutes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    deserializer.deserialize_any(Within(1, LIFETIME_MINUTES_MAX))
}

/// A whole number between two others; in the environment it comes as text.
struct Within(u32, u32);

impl Visitor<'_> for Within {
    type Value = u32;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a whole number from {} to {}", self.0, self.1)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<u32, E> {
        let number = u32::try_from(number).ok().filter(|number| (self.0..=self.1).contains(number));
        number.ok_or_else(|| E::custom(format!("must be a whole number from {} to {}", self.0, self.1)))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<u32, E> {
        self.visit_i64(text.parse().unwrap_or(-1))
    }
}

fn some_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_sound = !text.is_empty() && !text.chars().any(|character| character.is_control() || character == ' ');
    if is_sound { Ok(text) } else { Err(D::Error::custom("must be a non-empty string without spaces")) }
}

fn optional_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    some_text(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;
    use expect_test::{Expect, expect};

    const HEAD: &str = "[identity]\nmechanism = 'oauth'\n[identity.oauth]\n";
    const NEEDED: &str = "issuer = 'https://id.example'\naudience = 'https://pilot.example'\n";

    fn check(text: &str, environment: &[(&str, &str)], expected: &Expect) {
        let environment: Vec<_> =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let verdict = match Config::parse(Path::new("pilot.toml"), text, &environment) {
            Ok(config) => format!("{:?}", config.identity.unwrap().oauth.unwrap().rules()),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&verdict);
    }

    #[test]
    fn issuer_and_audience_are_enough() {
        check(
            &format!("{HEAD}{NEEDED}"),
            &[],
            &expect![[
                r#"Rules { issuer: "https://id.example", audience: "https://pilot.example", algorithms: [Rs256, Ps256, Es256, EdDsa], leeway_seconds: 30, lifetime_seconds_max: 86400, token_types: [AccessToken], client_claim: ClientId, subject_claim: Sub, token_id_claim: Jti, demands: Demands { clients: [], scopes: [], acr: [], amr: [], roles: None } }"#
            ]],
        );
        check(
            &format!("{HEAD}{NEEDED}algorithms = ['ES256']"),
            &[("PILOT_IDENTITY__OAUTH__LEEWAY_SECONDS", "0"), ("PILOT_IDENTITY__OAUTH__ALGORITHMS", "RS512, EdDSA")],
            &expect![[
                r#"Rules { issuer: "https://id.example", audience: "https://pilot.example", algorithms: [Rs512, EdDsa], leeway_seconds: 0, lifetime_seconds_max: 86400, token_types: [AccessToken], client_claim: ClientId, subject_claim: Sub, token_id_claim: Jti, demands: Demands { clients: [], scopes: [], acr: [], amr: [], roles: None } }"#
            ]],
        );
    }

    #[test]
    fn a_section_belongs_to_its_mechanism() {
        check(
            "[identity]\nmechanism = 'oauth'\n",
            &[],
            &expect![[r#"pilot.toml: identity: mechanism = "oauth" needs [identity.oauth] with issuer and audience"#]],
        );
        check(
            &format!("{HEAD}{NEEDED}").replace("'oauth'", "'credential_file'"),
            &[],
            &expect![[
                r#"pilot.toml: identity.oauth: is for mechanism = "oauth"; remove it, or select that mechanism"#
            ]],
        );
    }

    #[test]
    fn faulty_values_are_refused_with_their_line() {
        check(
            &format!("{HEAD}issuer = 'http://id.example'\naudience = 'x'"),
            &[],
            &expect![
                "pilot.toml, line 4, column 10: must be an address such as https://host/path, without a user or a fragment; http is allowed only for this machine"
            ],
        );
        for issuer in
            ["id.example", "https://u@id.example", "https://id.example/#x", "https://id.example/?x", "ftp://x"]
        {
            check(
                &format!("{HEAD}issuer = '{issuer}'\naudience = 'x'"),
                &[],
                &expect![
                    "pilot.toml, line 4, column 10: must be an address such as https://host/path, without a user or a fragment; http is allowed only for this machine"
                ],
            );
        }
        check(
            &format!("{HEAD}{NEEDED}algorithms = ['HS256']"),
            &[],
            &expect![
                "pilot.toml, line 6, column 14: must be a list of one or more of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA"
            ],
        );
        check(
            &format!("{HEAD}{NEEDED}algorithms = []"),
            &[],
            &expect![
                "pilot.toml, line 6, column 14: must be a list of one or more of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA"
            ],
        );
        check(
            &format!("{HEAD}{NEEDED}leeway_seconds = 121"),
            &[],
            &expect!["pilot.toml, line 6, column 18: must be a whole number from 0 to 120"],
        );
        check(
            &format!("{HEAD}{NEEDED}lifetime_minutes_max = 0"),
            &[],
            &expect!["pilot.toml, line 6, column 24: must be a whole number from 1 to 10080"],
        );
        check(
            &format!("{HEAD}{NEEDED}client_secret = 'x'"),
            &[],
            &expect![
                "pilot.toml, line 6, column 1: unknown field `client_secret`, expected one of `issuer`, `audience`, `resource_url`, `jwks_url`, `algorithms`, `ca_file`, `leeway_seconds`, `lifetime_minutes_max`, `clients`, `scopes_required`, `acr_values`, `amr_required`, `token_types`, `client_claim`, `subject_claim`, `token_id_claim`, `roles_claim`, `role_values`, `console_client_id`, `console_scopes`, `console_resource`, `introspection`"
            ],
        );
        check(
            &format!("{HEAD}issuer = 'https://id.example'\naudience = 'api-of-pilot'"),
            &[],
            &expect![
                "pilot.toml: identity.oauth.audience: is not an https address, so set resource_url to this service's own address, as clients see it"
            ],
        );
        check(
            &format!("{HEAD}{NEEDED}console_client_id = 'c'\nconsole_scopes = ['openid profile']"),
            &[],
            &expect!["pilot.toml: identity.oauth.console_scopes: each must be one word, without spaces"],
        );
        check(
            &format!("{HEAD}{NEEDED}console_scopes = ['openid']"),
            &[],
            &expect!["pilot.toml: identity.oauth.console_scopes: needs console_client_id"],
        );
        check(
            &format!("{HEAD}{NEEDED}console_resource = 'api://pilot'"),
            &[],
            &expect!["pilot.toml: identity.oauth.console_resource: needs console_client_id"],
        );
    }

    #[test]
    fn http_is_for_this_machine_alone() {
        for (text, legal) in [
            ("http://127.0.0.1:9/x", true),
            ("http://localhost:9", true),
            ("http://[::1]:9", true),
            ("http://localhost.evil.example", false),
            ("http://10.0.0.1", false),
            ("https://10.0.0.1", true),
        ] {
            assert_eq!(ProviderUrl::parse(text).is_some(), legal, "{text}");
        }
        assert_eq!(
            ProviderUrl::parse("https://id.example:8443/token?x=1").unwrap().origin(),
            "https://id.example:8443"
        );
    }
}
