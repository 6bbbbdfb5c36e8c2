//! `pilot item show`: everything a decider needs.

use pilot_core::item::ItemId;

use crate::client::{Client, ClientArguments, runtime};
use crate::cmd::item::shown::{Shown, write_item};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::items;
use crate::output::fields::tsv;
use crate::output::page::Page;
use crate::output::{Output, OutputArguments, print, print_json};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The item's id
    id: ItemId,
    /// Show the whole history, not only its end
    #[arg(long)]
    history: bool,
    /// Print these members as tab-separated values: state,content_digest,payload.risk
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with_all = ["output", "history"])]
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
        if !arguments.fields.is_empty() {
            return print(&tsv(&[found.value], &arguments.fields)?);
        }
        let history = items::history(&client, &arguments.id).await?;
        if arguments.output.output == Output::Json {
            let mut value = found.value;
            if let (Some(members), Ok(history)) = (value.as_object_mut(), serde_json::to_value(&history)) {
                members.insert("history".into(), history);
            }
            return print_json(&value);
        }
        let definition = items::definition(&client, &found.view).await?;
        let mut page = Page::new(environment);
        let shown = Shown { whole: arguments.history, ..Shown::new(&found, &definition, &history) };
        write_item(&mut page, &shown);
        page.print()
    })
}
