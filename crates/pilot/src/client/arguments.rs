//! The options of every command that calls the service.

use std::path::PathBuf;

use crate::environment::Environment;

#[derive(clap::Args, Clone)]
pub(crate) struct ClientArguments {
    /// The service and token to use, by name, from profiles.toml [env: PILOT_CLIENT_PROFILE] [default: its default]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// The service's address [env: PILOT_URL] [default: the profile's, else http://127.0.0.1:7450]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// A file that contains the token, or - for standard input [default: PILOT_TOKEN, the profile's, else you are asked]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Send the token over plain http to another machine; anyone on the network path can read it
    #[arg(long)]
    pub insecure_http: bool,
    /// The issuer of an https service's certificate, in PEM [env: PILOT_CA_FILE] [default: those the system trusts]
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Your own certificate in PEM, if the service asks for one instead of a token [env: PILOT_CLIENT_CERT]
    #[arg(long, value_name = "FILE", requires = "client_key")]
    pub client_cert: Option<PathBuf>,
    /// The key of that certificate, in PEM [env: PILOT_CLIENT_KEY]
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    pub client_key: Option<PathBuf>,
}

impl ClientArguments {
    /// Whether the token comes from somewhere that may have a newer one by now.
    pub(crate) fn token_can_be_read_again(&self, environment: &Environment) -> bool {
        match &self.token_file {
            Some(path) => path.as_os_str() != "-",
            None => environment.token().is_none(),
        }
    }
}
