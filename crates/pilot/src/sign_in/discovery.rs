//! Which provider a service trusts, as the service itself says (RFC 9728), and where that provider's endpoints are.

use std::path::Path;

use serde::Deserialize;

use crate::client::is_same_service;
use crate::exit::Failure;
use crate::sign_in::{Line, Provider};

#[derive(Deserialize)]
struct Resource {
    resource: String,
    authorization_servers: Vec<String>,
}

/// What a token has to be asked for, and where.
pub(crate) struct Found {
    pub resource: String,
    pub provider: Provider,
}

/// None if the service does not trust a provider.
pub(crate) async fn discover(service: &str, ca_file: Option<&Path>) -> Result<Option<Found>, Failure> {
    let url = format!("{}/.well-known/oauth-protected-resource", service.trim_end_matches('/'));
    let Some(Resource { resource, authorization_servers }) = Line::new(service, ca_file)?.get(&url).await? else {
        return Ok(None);
    };
    // A service that names another one would be given a token that is meant for that one.
    if !is_same_service(&resource, service) {
        return Err(Failure::Refused(format!(
            "{service} asks for tokens for {resource}, which is another address; use that one if it is the same service"
        )));
    }
    let Some(issuer) = authorization_servers.first() else { return Ok(None) };
    Ok(Some(Found { provider: provider(issuer, ca_file).await?, resource }))
}

async fn provider(issuer: &str, ca_file: Option<&Path>) -> Result<Provider, Failure> {
    let line = Line::new(issuer, ca_file)?;
    let base = issuer.trim_end_matches('/');
    for document in ["openid-configuration", "oauth-authorization-server"] {
        let found: Option<Provider> = line.get(&format!("{base}/.well-known/{document}")).await?;
        // RFC 8414: one that speaks for another issuer is not believed.
        if let Some(provider) = found.filter(|provider| provider.issuer == issuer) {
            return Ok(provider);
        }
    }
    Err(Failure::Environment(format!("{issuer}: has no discovery document for this issuer")))
}
