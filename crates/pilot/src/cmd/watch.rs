//! `pilot watch`: the ledger as it grows, one line for each entry.

use clap::ValueEnum;
use pilot_api::events::EventView;
use pilot_core::item::ItemId;

use crate::client::follow::{Follower, Heard};
use crate::client::{Client, ClientArguments, runtime};
use crate::cmd::item::shown::short;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::items;
use crate::output::page::cut;
use crate::output::{offer_json_line, offer_line};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
enum Form {
    /// A line that people can read
    #[default]
    Table,
    /// The entry itself, as JSON
    Jsonl,
}

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Begin with the entry after this one [default: with what happens from now on]
    #[arg(long, value_name = "INDEX")]
    after: Option<u64>,
    /// Begin with the first entry of the ledger
    #[arg(long, conflicts_with = "after")]
    from_the_beginning: bool,
    /// Only entries about this item
    #[arg(long, value_name = "ID")]
    item: Option<ItemId>,
    #[command(flatten)]
    client: ClientArguments,
    /// How to print each entry
    #[arg(long, value_enum, default_value_t)]
    output: Form,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let client = Client::new(&arguments.client, environment)?;
    runtime()?.block_on(async {
        let after = match arguments.after {
            None if arguments.from_the_beginning => None,
            None => items::ledger_size(&client).await?.checked_sub(1),
            after => after,
        };
        let mut follower = Follower::opened(&client, after).await?;
        loop {
            match follower.next().await.map_err(|no_feed| no_feed.failure)? {
                Heard::Opened => {}
                Heard::Event(event) => {
                    if !show(&event.data, arguments)? {
                        return Ok(());
                    }
                }
            }
        }
    })
}

/// False if nobody reads any more.
fn show(data: &str, arguments: &Arguments) -> Result<bool, Failure> {
    let event: EventView = serde_json::from_str(data)
        .map_err(|error| Failure::environment("the entry is not what a pilot service sends", error))?;
    if arguments.item.as_ref().is_some_and(|id| event.item.as_deref() != Some(id.as_str())) {
        return Ok(true);
    }
    match arguments.output {
        Form::Jsonl => offer_json_line(data),
        Form::Table => offer_line(&line(&event, arguments.item.is_none())),
    }
}

/// `17  09:30:00  ben: approve, submitted to approved  01890a5d-…`
fn line(event: &EventView, names_item: bool) -> String {
    let what = match (&event.action, &*event.r#type) {
        (_, "item.comment") => "comment".to_owned(),
        (Some(action), _) => action.clone(),
        (None, r#type) => r#type.to_owned(),
    };
    let moved = match (&event.from, &event.to) {
        (Some(from), Some(to)) if from != to => format!(", {from} to {to}"),
        _ => String::new(),
    };
    let who = event.actor_id.as_deref().map_or(String::new(), |who| format!("{}: ", cut(who, 20)));
    let time = short(event.at);
    let time = if names_item { time.get(11..).unwrap_or(&time) } else { &time };
    let item = event.item.as_deref().filter(|_| names_item).map_or(String::new(), |item| format!("{item}  "));
    format!("{:<6}  {time}  {item}{who}{what}{moved}", event.index)
}
