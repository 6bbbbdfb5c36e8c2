//! `pilot item new`: creates an item, and if asked submits it and waits.

use std::path::PathBuf;
use std::time::Duration;

use pilot_core::item::ItemId;
use serde_json::{Value, json};

use crate::client::repeat::new_key;
use crate::client::{Ask, Client, ClientArguments, runtime};
use crate::cmd::item::act::take;
use crate::cmd::item::target::Target;
use crate::cmd::item::wait::wait;
use crate::content::read_payload;
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
    /// The payload, as JSON: a file, or - for standard input
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
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
        let title = arguments.title.clone().ok_or_else(|| Failure::Usage("give it a title with --title".into()))?;
        let payload = arguments.payload.as_deref().map(read_payload).transpose()?.unwrap_or_else(|| json!({}));
        let body = json!({ "workflow": arguments.workflow, "title": title, "payload": payload });
        let key = arguments.idempotency_key.clone().map_or_else(new_key, Ok)?;
        let created: Value = client.write(Ask::post("/v1/items", &body), &key).await?.read()?;
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

fn report(client: &Client, created: Value, id: &ItemId, arguments: &Arguments) -> Result<(), Failure> {
    match arguments.output.output {
        _ if !arguments.fields.is_empty() => print(&tsv(&[created], &arguments.fields)?),
        Output::Json => print_json(&created),
        Output::Table => print(&format!("{id}\n{}\n", client.console_link(id.as_str()))),
    }
}
