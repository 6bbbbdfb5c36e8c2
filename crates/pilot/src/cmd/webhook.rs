//! `pilot webhook`: makes keys, shows endpoints and moves them back in the ledger.

use std::path::PathBuf;

use pilot_setup::config::Signing;
use pilot_setup::private_file;
use pilot_setup::webhook_key::WebhookKey;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::query::encode;
use crate::client::{Client, ClientArguments};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::{Output, OutputArguments, note, print, print_json, table};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Show the endpoints, how far each has got and what it last answered (security_admin, auditor)
    List(ListArguments),
    /// Deliver to an endpoint again, from an entry on that it has passed or is at; a paused one is resumed
    /// (security_admin)
    Replay(ReplayArguments),
    /// Make a key that signs deliveries, and print what receivers verify with
    Key(KeyArguments),
}

#[derive(clap::Args)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    client: ClientArguments,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(clap::Args)]
pub(crate) struct ReplayArguments {
    /// The endpoint's name, as `pilot webhook list` shows it
    name: String,
    /// The index of the entry to deliver next: at most the one that `pilot webhook list` shows, because nothing can be
    /// left out
    #[arg(long, value_name = "INDEX")]
    from: u64,
    #[command(flatten)]
    client: ClientArguments,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(clap::Args)]
pub(crate) struct KeyArguments {
    /// Write the key to this new file (mode 0600); name it in `secret_files`
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// ed25519, or hmac for receivers that verify with a shared secret
    #[arg(long, value_name = "KIND", default_value = "ed25519", value_parser = signing)]
    signing: Signing,
    #[command(flatten)]
    output: OutputArguments,
}

fn signing(text: &str) -> Result<Signing, &'static str> {
    [Signing::Ed25519, Signing::Hmac].into_iter().find(|one| one.as_str() == text).ok_or("use ed25519 or hmac")
}

/// What is shown of an endpoint.
#[derive(Deserialize)]
struct Endpoint {
    name: String,
    host: String,
    state: String,
    next: Option<u64>,
    lag: u64,
    last_answer: Option<String>,
    failing_since: Option<String>,
}

impl Endpoint {
    fn row(self) -> Vec<String> {
        let next = self.next.map_or_else(String::new, |next| next.to_string());
        let (said, since) = (self.last_answer.unwrap_or_default(), self.failing_since.unwrap_or_default());
        vec![self.name, self.host, self.state, next, self.lag.to_string(), said, since]
    }
}

const HEADER: [&str; 7] = ["name", "host", "state", "next", "lag", "last answer", "failing since"];

pub(crate) fn run(command: &Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::List(arguments) => list(arguments, environment),
        Command::Replay(arguments) => replay(arguments, environment),
        Command::Key(arguments) => key(arguments),
    }
}

fn list(arguments: &ListArguments, environment: &Environment) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct Page {
        webhooks: Vec<Endpoint>,
    }
    let reply = Client::new(&arguments.client, environment)?.get("/v1/webhooks")?;
    if arguments.output.output == Output::Json {
        return print_json(&reply.read::<Value>()?);
    }
    let Page { webhooks } = reply.read()?;
    if webhooks.is_empty() {
        return note("No webhooks are configured.");
    }
    print(&table(&HEADER, webhooks.into_iter().map(Endpoint::row)))
}

fn replay(arguments: &ReplayArguments, environment: &Environment) -> Result<(), Failure> {
    let path = format!("/v1/webhooks/{}/replay", encode(&arguments.name));
    let reply = Client::new(&arguments.client, environment)?.post(&path, &json!({ "from": arguments.from }))?;
    if arguments.output.output == Output::Json {
        return print_json(&reply.read::<Value>()?);
    }
    print(&table(&HEADER, [reply.read::<Endpoint>()?.row()]))
}

fn key(arguments: &KeyArguments) -> Result<(), Failure> {
    let text = WebhookKey::generate(arguments.signing)?;
    let public = WebhookKey::parse(arguments.signing, &text).ok().and_then(|key| key.public());
    private_file::write_new(&arguments.out, format!("{}\n", *text).as_bytes()).map_err(|error| {
        Failure::Environment(format!("{}: the key cannot be written ({error})", arguments.out.display()))
    })?;
    if arguments.output.output == Output::Json {
        return print_json(&json!({ "file": arguments.out, "public_key": public }));
    }
    match public {
        Some(public) => print(&format!("{public}\n")),
        None => note("The receiver verifies with the content of the file: pass it on as a secret."),
    }
}
