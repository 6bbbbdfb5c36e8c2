//! Asks the service, where it can be reached, whether what a permit shows is still true.

use std::path::PathBuf;

use pilot_core::document::ContentDigest;
use pilot_core::item::Lease;
use pilot_core::time::Time;
use pilot_evidence::permit::Permit;
use serde::Deserialize;

use crate::client::{Client, ClientArguments};
use crate::environment::Environment;
use crate::exit::Failure;

#[derive(clap::Args, Clone)]
pub(crate) struct FreshArguments {
    /// Also ask this service whether the item is still in that state, under that lease and attempt, and not held
    #[arg(long = "fresh", value_name = "URL")]
    url: Option<String>,
    /// For --fresh: a file that contains the token [default: PILOT_TOKEN]
    #[arg(long, value_name = "FILE", requires = "url")]
    token_file: Option<PathBuf>,
    /// For --fresh: send the token over plain http to another machine; anyone on the network path can read it
    #[arg(long, requires = "url")]
    insecure_http: bool,
    /// For --fresh: the issuer of the service's certificate, in PEM [env: PILOT_CA_FILE]
    #[arg(long, value_name = "FILE", requires = "url")]
    ca_file: Option<PathBuf>,
    /// For --fresh: your own certificate in PEM, if the service asks for one [env: PILOT_CLIENT_CERT]
    #[arg(long, value_name = "FILE", requires = "client_key", requires = "url")]
    client_cert: Option<PathBuf>,
    /// For --fresh: the key of that certificate, in PEM [env: PILOT_CLIENT_KEY]
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    client_key: Option<PathBuf>,
}

/// What of an item has to be as the permit says.
#[derive(Deserialize)]
struct Standing {
    state: String,
    entered_at: Time,
    held: bool,
    lease: Option<Lease>,
    content_digest: ContentDigest,
}

impl FreshArguments {
    /// Nothing if nobody wants it asked.
    pub(crate) fn ask(&self, permit: &Permit, environment: &Environment) -> Result<(), Failure> {
        let Some(url) = &self.url else { return Ok(()) };
        let arguments = ClientArguments {
            profile: None,
            url: Some(url.clone()),
            token_file: self.token_file.clone(),
            insecure_http: self.insecure_http,
            ca_file: self.ca_file.clone(),
            client_cert: self.client_cert.clone(),
            client_key: self.client_key.clone(),
        };
        let client = Client::new(&arguments, environment)?;
        let standing: Standing = client.get(&format!("/v1/items/{}", permit.item.id))?.read()?;
        compare(&standing, permit).map_err(|what| {
            Failure::Refused(format!(
                "the permit is refused: the service says that {what}; look at the item, and download its permit again \
                 if it may still be executed"
            ))
        })
    }
}

fn compare(standing: &Standing, permit: &Permit) -> Result<(), String> {
    let (item, begun) = (&permit.item, &permit.begun);
    if standing.state != *item.state {
        return Err(format!("the item is now {}, not {}", standing.state, item.state));
    }
    if standing.entered_at != begun.at {
        return Err(format!("another attempt is under way since {}", standing.entered_at));
    }
    if standing.lease.as_ref().map(|lease| &lease.holder) != Some(&begun.actor.actor_id) {
        return Err(format!("{} no longer holds the lease", begun.actor.actor_id));
    }
    if standing.held {
        return Err("the item is held".to_owned());
    }
    if standing.content_digest != item.content_digest {
        return Err("the item has other content".to_owned());
    }
    Ok(())
}
