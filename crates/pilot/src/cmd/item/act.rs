//! `pilot item act`: takes an action on an item.

use pilot_api::items::TransitionView;
use pilot_core::item::ItemId;
use serde_json::Value;

use crate::client::repeat::new_key;
use crate::client::{Ask, Client, ClientArguments, runtime};
use crate::cmd::item::decision::{Said, confirm};
use crate::cmd::item::shown::{Shown, write_item};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::items;
use crate::output::fields::tsv;
use crate::output::page::Page;
use crate::output::{Output, OutputArguments, print, print_json};
use crate::terminal;

#[derive(clap::Args)]
#[command(after_help = "\
A decision names the digest of the content it was made on, so that nobody can decide on a content they have not seen. At \
a terminal the content is shown and you type the beginning of its digest; elsewhere --digest is required.")]
pub(crate) struct Arguments {
    /// The item's id
    id: ItemId,
    /// The action: `pilot item show ID` lists those that you can take
    action: String,
    #[command(flatten)]
    said: Said,
    /// Repeat an action whose answer was lost: the key that was printed then
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Print these members of the transition as tab-separated values: to,entry
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
        let (id, action) = (&arguments.id, &*arguments.action);
        let found = items::item(&client, id).await?;
        let definition = items::definition(&client, &found.view).await?;
        let rules = definition.rules_of(action, &found.view.state);
        let mut said = arguments.said.clone();
        if said.digest.is_none() && rules.iter().any(|rule| rule.content_digest_required) {
            if !terminal::has_person() {
                let remedy = format!("read the content with `pilot item show {id}`, and give its digest");
                return Err(Failure::Usage(format!("{action} is a decision, so it needs --digest: {remedy}")));
            }
            let history = items::history(&client, id).await?;
            let mut page = Page::new(environment);
            let shown = Shown::new(&found, &definition, &history);
            write_item(&mut page, &shown);
            page.print()?;
            said.digest = Some(confirm(&found.view)?);
        }
        if terminal::has_person() {
            said.ask_for_the_rest(&rules)?;
        }
        let body = said.body(action, found.now)?;
        let value = take(&client, id, &body, arguments.idempotency_key.as_deref()).await?;
        report(value, &arguments.fields, arguments.output.output)
    })
}

/// Takes the action, and says what the service answered.
pub(crate) async fn take(client: &Client, id: &ItemId, body: &Value, key: Option<&str>) -> Result<Value, Failure> {
    let path = format!("/v1/items/{id}/transitions");
    let key = key.map_or_else(new_key, |key| Ok(key.to_owned()))?;
    client.write(Ask::post(&path, body), &key).await?.read()
}

fn report(value: Value, fields: &[String], output: Output) -> Result<(), Failure> {
    match output {
        _ if !fields.is_empty() => print(&tsv(&[value], fields)?),
        Output::Json => print_json(&value),
        Output::Table => print(&format!("{}\n", told(&value)?)),
    }
}

/// `approve: submitted to approved (entry 17)`
pub(crate) fn told(value: &Value) -> Result<String, Failure> {
    let view: TransitionView<'static> = serde_json::from_value(value.clone())
        .map_err(|error| Failure::environment("the answer is not what a pilot service sends", error))?;
    let (from, to) = (view.from.as_deref().unwrap_or("-"), view.to.as_deref().unwrap_or("-"));
    let moved = if from == to { format!("stays {to}") } else { format!("{from} to {to}") };
    Ok(format!("{}: {moved} (entry {})", view.action, view.entry))
}
