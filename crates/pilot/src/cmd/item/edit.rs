//! `pilot item edit`: changes the content of one's own item, and only the version that was read.

use std::path::PathBuf;

use http::header::IF_MATCH;
use pilot_core::item::ItemId;
use serde_json::{Map, Value};

use crate::client::repeat::{Tries, is_lost};
use crate::client::{Ask, Client, ClientArguments, Reply, runtime};
use crate::content::{patch, read_payload};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::items::{self, FoundItem};
use crate::output::fields::tsv;
use crate::output::{Output, OutputArguments, print, print_json};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The item's id
    id: ItemId,
    /// A new title
    #[arg(long)]
    title: Option<String>,
    /// A new payload in place of the old one, as JSON: a file, or - for standard input
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
    /// Print these members as tab-separated values: version,content_digest
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "output")]
    fields: Vec<String>,
    #[command(flatten)]
    client: ClientArguments,
    #[command(flatten)]
    output: OutputArguments,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let client = Client::new(&arguments.client, environment)?;
    runtime()?.block_on(async {
        let found = items::item(&client, &arguments.id).await?;
        let title = arguments.title.clone();
        let payload = arguments.payload.as_deref().map(read_payload).transpose()?;
        if title.is_none() && payload.is_none() {
            return Err(Failure::Usage("say what to change: --title or --payload".into()));
        }
        let changed = change(&client, &found, title, payload).await?;
        match arguments.output.output {
            _ if !arguments.fields.is_empty() => print(&tsv(&[changed.value], &arguments.fields)?),
            Output::Json => print_json(&changed.value),
            Output::Table => {
                let view = &changed.view;
                print(&format!("{}  version {}, {}\n", view.id, view.version, view.content_digest))
            }
        }
    })
}

/// Makes the item that was read into one with this title and payload.
pub(crate) async fn change(
    client: &Client,
    found: &FoundItem,
    title: Option<String>,
    payload: Option<Value>,
) -> Result<FoundItem, Failure> {
    let mut body = Map::new();
    if let Some(title) = &title {
        body.insert("title".into(), title.clone().into());
    }
    if let Some(payload) = &payload {
        let no_null = || Failure::Usage("a payload with null as a member cannot be edited in; leave it out".into());
        body.insert("payload".into(), patch(&found.view.payload.value(), payload).ok_or_else(no_null)?);
    }
    let is_wanted = |item: &FoundItem| {
        title.as_ref().is_none_or(|title| item.view.title == **title)
            && payload.as_ref().is_none_or(|payload| item.view.payload.value() == *payload)
    };
    send(client, found, &body.into(), is_wanted).await
}

/// An edit has no idempotency key. If its answer is lost, the item itself tells whether it was made.
async fn send(
    client: &Client,
    found: &FoundItem,
    body: &Value,
    is_wanted: impl Fn(&FoundItem) -> bool,
) -> Result<FoundItem, Failure> {
    let (id, version) = (&*found.view.id, found.view.version);
    let path = format!("/v1/items/{id}");
    let mut tries = Tries::default();
    loop {
        let outcome = client.ask(Ask::patch(&path, body).header(IF_MATCH, format!("\"{version}\""))).await;
        if !is_lost(&outcome) || !tries.again().await? {
            return outcome.and_then(|reply| read(&reply));
        }
        match items::item(client, id).await {
            Ok(now) if now.view.version == version + 1 && is_wanted(&now) => return Ok(now),
            Ok(_) | Err(Failure::Environment(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
}

fn read(reply: &Reply) -> Result<FoundItem, Failure> {
    items::found(reply.read()?, None)
}
