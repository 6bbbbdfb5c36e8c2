//! What an issuer publishes about itself: where its keys are, and where people sign in (RFC 8414, OpenID Connect
//! Discovery).

use http::Uri;
use pilot_core::json::{self, Bounds};
use pilot_core::limits::ANSWER_VALUES_MAX;
use pilot_setup::config::ProviderUrl;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const BOUNDS: Bounds = Bounds { depth: 16, values: ANSWER_VALUES_MAX };

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryFault {
    #[error("its discovery document is not a strict JSON object")]
    Malformed,
    #[error("its discovery document belongs to another issuer; identity.oauth.issuer must match it exactly")]
    OtherIssuer,
    #[error("its discovery document has no jwks_uri over https; set identity.oauth.jwks_url")]
    NoKeys,
}

/// As written in the document, and stored like that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoints {
    pub jwks: Option<String>,
    pub authorization: Option<String>,
    pub token: Option<String>,
    /// Where a token can be revoked (RFC 7009). Absent in copies stored before this was read.
    #[serde(default)]
    pub revocation: Option<String>,
}

/// Where the document may be: with the well-known part between host and path, or after the path.
pub fn locations(issuer: &ProviderUrl) -> Vec<Uri> {
    let origin = issuer.origin();
    let path = issuer.uri.path().trim_end_matches('/');
    let texts = [
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}{path}/.well-known/openid-configuration"),
    ];
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

impl Endpoints {
    pub fn parse(bytes: &[u8], issuer: &ProviderUrl) -> Result<Endpoints, DiscoveryFault> {
        let document = json::parse(bytes, BOUNDS).map_err(|_| DiscoveryFault::Malformed)?;
        if !document.is_object() {
            return Err(DiscoveryFault::Malformed);
        }
        // The document must name the trusted issuer itself; otherwise a mixed-up address would decide whom to trust.
        if document.get("issuer").and_then(Value::as_str) != Some(issuer.text.as_str()) {
            return Err(DiscoveryFault::OtherIssuer);
        }
        let endpoint = |name: &str| {
            let url = document.get(name).and_then(Value::as_str).and_then(ProviderUrl::parse);
            url.filter(|url| is_as_private(url, issuer)).map(|url| url.text)
        };
        let (jwks, authorization, token) =
            (endpoint("jwks_uri"), endpoint("authorization_endpoint"), endpoint("token_endpoint"));
        Ok(Endpoints { jwks, authorization, token, revocation: endpoint("revocation_endpoint") })
    }

    pub fn jwks(&self) -> Result<ProviderUrl, DiscoveryFault> {
        self.jwks.as_deref().and_then(ProviderUrl::parse).ok_or(DiscoveryFault::NoKeys)
    }
}

/// An issuer reached over TLS must not redirect us to an address without TLS.
fn is_as_private(url: &ProviderUrl, issuer: &ProviderUrl) -> bool {
    url.is_https() || !issuer.is_https()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn url(text: &str) -> ProviderUrl {
        ProviderUrl::parse(text).unwrap()
    }

    #[test]
    fn the_document_is_looked_for_where_both_standards_put_it() {
        let found = |issuer: &str| locations(&url(issuer)).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            found("https://id.example/realms/a"),
            [
                "https://id.example/.well-known/oauth-authorization-server/realms/a",
                "https://id.example/realms/a/.well-known/openid-configuration"
            ]
        );
        assert_eq!(
            found("http://127.0.0.1:9/"),
            [
                "http://127.0.0.1:9/.well-known/oauth-authorization-server",
                "http://127.0.0.1:9/.well-known/openid-configuration"
            ]
        );
    }

    #[test]
    fn the_document_must_be_the_pinned_issuers_own() {
        let issuer = url("https://id.example");
        let read = |value: Value| Endpoints::parse(value.to_string().as_bytes(), &issuer);
        let good = json!({"issuer": "https://id.example", "jwks_uri": "https://keys.example/k", "token_endpoint": "https://id.example/t"});
        let endpoints = read(good).unwrap();
        assert_eq!(endpoints.jwks().unwrap().text, "https://keys.example/k");
        assert_eq!((endpoints.authorization, endpoints.token.as_deref()), (None, Some("https://id.example/t")));
        for other in ["https://id.example/", "https://evil.example", "HTTPS://id.example", ""] {
            let lie = json!({"issuer": other, "jwks_uri": "https://keys.example/k"});
            assert_eq!(read(lie), Err(DiscoveryFault::OtherIssuer), "{other}");
        }
        assert_eq!(read(json!([])), Err(DiscoveryFault::Malformed));
        let twice = br#"{"issuer":"https://evil.example","issuer":"https://id.example"}"#;
        assert_eq!(Endpoints::parse(twice, &issuer), Err(DiscoveryFault::Malformed));
    }

    #[test]
    fn keys_are_never_fetched_without_tls_for_an_issuer_that_has_it() {
        for jwks in ["http://127.0.0.1/k", "http://keys.example/k", "file:///etc/passwd", "", "keys"] {
            let document = json!({"issuer": "https://id.example", "jwks_uri": jwks}).to_string();
            let endpoints = Endpoints::parse(document.as_bytes(), &url("https://id.example")).unwrap();
            assert_eq!(endpoints.jwks(), Err(DiscoveryFault::NoKeys), "{jwks}");
        }
    }
}
