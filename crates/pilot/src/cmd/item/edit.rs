//! `pilot item edit`: changes the content of one's own item, and only the version that was read.

use std::path::PathBuf;

use http::header::IF_MATCH;
use pilot_core::document::patch_between;
use pilot_core::item::ItemId;
use serde_json::{Map, Value};

use crate::client::repeat::{Tries, is_lost};
use crate::client::{Ask, Client, ClientArguments, Reply, runtime};
use crate::cmd::item::written::{attempt, cannot_be_written};
use crate::content::{Given, mistakes, read_given};
use crate::draft::template::template;
use crate::draft::{Attempt, Draft};
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
    /// A new payload in place of the old one, as JSON: a file, or - for standard input; or a draft that was kept
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
    /// Change it in $VISUAL or $EDITOR, on a page made from the payload's schema
    #[arg(long)]
    edit: bool,
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
        let given = arguments.payload.as_deref().map(read_given).transpose()?;
        let changed = match (arguments.edit, arguments.title.is_some() || given.is_some()) {
            (true, _) => write(&client, &found, arguments.title.clone(), given, environment).await?,
            (false, true) => {
                let (title, payload) = given.map_or((None, None), |given| (given.title, Some(given.payload)));
                read(&change(&client, &found, arguments.title.clone().or(title), payload).await?)?
            }
            (false, false) => {
                return Err(Failure::Usage("say what to change: --title, --payload or --edit".into()));
            }
        };
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

/// In an editor, until the service takes it.
async fn write(
    client: &Client,
    found: &FoundItem,
    title: Option<String>,
    given: Option<Given>,
    environment: &Environment,
) -> Result<FoundItem, Failure> {
    let item = &found.view;
    let definition = items::definition(client, item).await?;
    let given = given.unwrap_or_else(|| Given { title: None, payload: item.payload.value(), draft: None });
    let title = title.or(given.title).unwrap_or_else(|| item.title.to_string());
    let heading = format!("{} {}", item.workflow.name, item.id);
    let page = || template(&heading, &title, given.payload.as_object()?, &definition.payload_schema);
    let text = given.draft.clone().or_else(page).ok_or_else(cannot_be_written)?;
    let draft = Draft::begin(&text, format!("pilot item edit {}", item.id), environment)?;
    let changed: Value = draft
        .finish(async |written| {
            let mistakes = mistakes(&definition.payload_schema, &written.payload, false);
            if !mistakes.is_empty() {
                return Ok(Attempt::Mistakes(mistakes));
            }
            let (title, payload) = (written.title.clone(), written.payload.clone());
            attempt(&change(client, found, Some(title), Some(payload)).await?)
        })
        .await?;
    items::found(changed, None)
}

/// Makes the item that was read into one with this title and payload.
async fn change(
    client: &Client,
    found: &FoundItem,
    title: Option<String>,
    payload: Option<Value>,
) -> Result<Reply, Failure> {
    let mut body = Map::new();
    if let Some(title) = &title {
        body.insert("title".into(), title.clone().into());
    }
    if let Some(payload) = &payload {
        let no_null = || Failure::Usage("a payload with null as a member cannot be edited in; leave it out".into());
        body.insert("payload".into(), patch_between(&found.view.payload.value(), payload).ok_or_else(no_null)?);
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
) -> Result<Reply, Failure> {
    let (id, version) = (&*found.view.id, found.view.version);
    let path = format!("/v1/items/{id}");
    let mut tries = Tries::default();
    loop {
        let outcome = client.ask(Ask::patch(&path, body).header(IF_MATCH, format!("\"{version}\""))).await;
        if !is_lost(&outcome) || !tries.again().await? {
            return outcome;
        }
        // The answer was lost, but not the edit.
        let now = client.ask(Ask::get(&path)).await;
        if let Ok(reply) = now {
            let item = read(&reply)?;
            if item.view.version == version + 1 && is_wanted(&item) {
                return Ok(reply);
            }
        }
    }
}

fn read(reply: &Reply) -> Result<FoundItem, Failure> {
    items::found(reply.read()?, None)
}
