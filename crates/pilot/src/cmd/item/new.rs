//! `pilot item new`: creates an item, and if asked submits it and waits.

use std::path::PathBuf;
use std::time::Duration;

use pilot_core::item::ItemId;
use serde_json::{Value, json};

use crate::client::repeat::new_key;
use crate::client::{Ask, Client, ClientArguments, Reply, runtime};
use crate::cmd::item::act::take;
use crate::cmd::item::target::Target;
use crate::cmd::item::wait::wait;
use crate::cmd::item::written::{attempt, cannot_be_written};
use crate::content::{Given, mistakes, read_given};
use crate::draft::template::template;
use crate::draft::{Attempt, Draft};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::items;
use crate::moment::span;
use crate::output::fields::tsv;
use crate::output::{Output, OutputArguments, print, print_json};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The workflow it moves by
    #[arg(long, value_name = "NAME", default_value = "controlled-operation")]
    workflow: String,
    /// What it is, in one line
    #[arg(long)]
    title: Option<String>,
    /// The payload, as JSON: a file, or - for standard input; or a draft that was kept, which ends with .toml
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
    /// Write it in $VISUAL or $EDITOR, on a page made from the payload's schema
    #[arg(long)]
    edit: bool,
    /// Submit it at once
    #[arg(long)]
    submit: bool,
    /// Then wait until it has come this far, as `pilot item wait` does
    #[arg(long, value_name = "WHAT")]
    wait: Option<Target>,
    /// For how long to wait at most: 90s, 30m, 2h
    #[arg(long, value_name = "TIME", value_parser = span, requires = "wait")]
    timeout: Option<Duration>,
    /// Repeat a creation whose answer was lost: the key that was printed then
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Print these members as tab-separated values: id,version
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
        let key = arguments.idempotency_key.clone().map_or_else(new_key, Ok)?;
        let given = arguments.payload.as_deref().map(read_given).transpose()?;
        let given = given.unwrap_or_else(|| Given { title: None, payload: json!({}), draft: None });
        let created = if arguments.edit {
            write(&client, arguments, given, environment).await?
        } else {
            let title = arguments.title.clone().or(given.title);
            let title = title.ok_or_else(|| Failure::Usage("give it a title with --title".into()))?;
            create(&client, arguments, &title, &given.payload, &key).await?.read()?
        };
        let id = items::found(created.clone(), None)?.view.id.into_owned();
        // Printed first: whatever goes wrong from here on, the item exists.
        report(&client, created, &id, arguments)?;
        if arguments.submit {
            take(&client, &id, &json!({ "action": "submit" }), Some(&key)).await?;
        }
        match arguments.wait {
            Some(target) => wait(&client, &id, target, arguments.timeout, arguments.output.output).await,
            None => Ok(()),
        }
    })
}

async fn create(
    client: &Client,
    arguments: &Arguments,
    title: &str,
    payload: &Value,
    key: &str,
) -> Result<Reply, Failure> {
    let body = json!({ "workflow": arguments.workflow, "title": title, "payload": payload });
    client.write(Ask::post("/v1/items", &body), key).await
}

/// In an editor, until the service takes it.
async fn write(
    client: &Client,
    arguments: &Arguments,
    given: Given,
    environment: &Environment,
) -> Result<Value, Failure> {
    let workflow = &*arguments.workflow;
    let definition = items::definition_named(client, workflow).await?;
    let heading = format!("A new {workflow}: {}", definition.description);
    let title = arguments.title.clone().or(given.title).unwrap_or_default();
    let page = || template(&heading, &title, given.payload.as_object()?, &definition.payload_schema);
    let text = given.draft.clone().or_else(page).ok_or_else(cannot_be_written)?;
    let draft = Draft::begin(&text, format!("pilot item new --workflow {workflow}"), environment)?;
    draft
        .finish(async |written| {
            let mistakes = mistakes(&definition.payload_schema, &written.payload, arguments.submit);
            if !mistakes.is_empty() {
                return Ok(Attempt::Mistakes(mistakes));
            }
            // Another text is another request.
            attempt(&create(client, arguments, &written.title, &written.payload, &new_key()?).await?)
        })
        .await
}

fn report(client: &Client, created: Value, id: &ItemId, arguments: &Arguments) -> Result<(), Failure> {
    match arguments.output.output {
        _ if !arguments.fields.is_empty() => print(&tsv(&[created], &arguments.fields)?),
        Output::Json => print_json(&created),
        Output::Table => print(&format!("{id}\n{}\n", client.console_link(id.as_str()))),
    }
}
