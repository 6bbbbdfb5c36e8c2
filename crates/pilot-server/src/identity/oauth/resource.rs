//! What this service tells unknown callers: which provider to ask for a token (RFC 9728) and, for the console, where
//! people sign in.

use bytes::Bytes;
use pilot_setup::config::{Oauth, ProviderUrl};
use serde::Serialize;
use serde_json::json;

use super::provider::Provider;

pub struct Resource {
    pub document: Bytes,
    /// Where that document is, for the challenge.
    pub metadata_url: String,
}

/// Everything the console needs to send someone to the provider and to receive them back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SignIn {
    pub issuer: String,
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    /// Where signing out revokes the tokens (RFC 7009).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    pub client_id: String,
    pub scope: String,
    /// The resource that the token is requested for (RFC 8707).
    pub resource: String,
}

impl Resource {
    pub fn new(oauth: &Oauth) -> Resource {
        let resource = oauth.resource().unwrap_or_default();
        let document = json!({
            "resource": resource,
            "authorization_servers": [oauth.issuer.text],
            "bearer_methods_supported": ["header"],
            "resource_name": "Pilot",
            "resource_documentation": format!("{}/docs", resource.trim_end_matches('/')),
        });
        let url = ProviderUrl::parse(resource);
        let origin = url.as_ref().map(ProviderUrl::origin).unwrap_or_default();
        let path = url.as_ref().map_or("", |url| url.uri.path().trim_end_matches('/'));
        let metadata_url = format!("{origin}/.well-known/oauth-protected-resource{path}");
        Resource { document: Bytes::from(document.to_string()), metadata_url }
    }
}

/// `None` until the provider has said where that is; then the console offers only its usual way.
pub fn sign_in(provider: &Provider) -> Option<SignIn> {
    let oauth = provider.config();
    let client_id = oauth.console_client_id.clone()?;
    let (authorization, token) = provider.sign_in()?;
    Some(SignIn {
        issuer: oauth.issuer.text.clone(),
        authorization_endpoint: authorization.text,
        token_endpoint: token.text,
        revocation_endpoint: provider.revocation().map(|url| url.text),
        client_id,
        scope: oauth.console_scopes.join(" "),
        resource: oauth.console_resource.clone().unwrap_or_else(|| oauth.audience.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(audience: &str, url: Option<&str>) -> Resource {
        let url = url.map_or(String::new(), |url| format!("resource_url = '{url}'\n"));
        let text = format!("issuer = 'https://id.example'\naudience = '{audience}'\n{url}");
        Resource::new(&toml::from_str(&text).unwrap())
    }

    #[test]
    fn the_document_is_where_the_standard_puts_it() {
        for (audience, url, expected) in [
            ("https://pilot.example", None, "https://pilot.example/.well-known/oauth-protected-resource"),
            ("https://pilot.example/", None, "https://pilot.example/.well-known/oauth-protected-resource"),
            ("https://x.example:8443/pilot", None, "https://x.example:8443/.well-known/oauth-protected-resource/pilot"),
            ("pilot-api", Some("https://p.example"), "https://p.example/.well-known/oauth-protected-resource"),
        ] {
            assert_eq!(resource(audience, url).metadata_url, expected);
        }
    }
}
