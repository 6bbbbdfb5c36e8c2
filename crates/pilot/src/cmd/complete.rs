//! `pilot complete`: what a shell offers for the word at the cursor, if only the service knows it.
//!
//! The shells' own scripts know commands and options. They ask here for items, actions, workflows and profiles. The
//! answer takes at most 300 ms and is empty if anything goes wrong: nobody reads a message in the middle of a line.

use std::time::Duration;

use clap::Command;
use pilot_api::items::ItemsPage;
use pilot_api::workflows::WorkflowsView;
use pilot_core::item::ItemId;

use crate::client::{Ask, Client, Effort, runtime};
use crate::cmd::complete::line::{Line, Wanted};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::items;
use crate::output::offer_words;
use crate::profile::Profiles;

mod line;

const DEADLINE: Duration = Duration::from_millis(300);
/// As many as anyone looks through.
const ITEMS_MAX: usize = 50;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The line as far as the cursor
    #[arg(allow_hyphen_values = true)]
    line: String,
}

/// A word, and what it stands for.
type Offer = (String, String);

pub(crate) fn run(arguments: &Arguments, program: &Command, environment: &Environment) -> Result<(), Failure> {
    let line = Line::read(&arguments.line, program);
    let offers = offers(&line, environment).unwrap_or_default();
    let fitting = offers.into_iter().filter(|(word, _)| word.starts_with(&line.current));
    offer_words(fitting)
}

fn offers(line: &Line, environment: &Environment) -> Result<Vec<Offer>, Failure> {
    match &line.wanted {
        Wanted::Nothing => Ok(Vec::new()),
        Wanted::Profile => {
            let profiles = Profiles::read(environment)?.all.into_iter();
            Ok(profiles.map(|profile| (profile.name, profile.url)).collect())
        }
        wanted => {
            let client = Client::with_effort(&line.client, environment, Effort::Look)?;
            let asked = runtime()?.block_on(async { tokio::time::timeout(DEADLINE, ask(&client, wanted)).await });
            asked.unwrap_or(Ok(Vec::new()))
        }
    }
}

async fn ask(client: &Client, wanted: &Wanted) -> Result<Vec<Offer>, Failure> {
    match wanted {
        Wanted::Nothing | Wanted::Profile => Ok(Vec::new()),
        Wanted::Workflow => {
            let reply = client.ask(Ask::get("/v1/workflows").within(DEADLINE)).await?;
            let WorkflowsView { workflows, .. } = reply.read()?;
            Ok(workflows.into_iter().map(|known| (known.name.into_owned(), known.title.into_owned())).collect())
        }
        Wanted::Item => {
            let path = format!("/v1/items?limit={ITEMS_MAX}");
            let ItemsPage { items, .. } = client.ask(Ask::get(&path).within(DEADLINE)).await?.read()?;
            Ok(items.into_iter().map(|item| (item.id.to_string(), format!("{}: {}", item.state, item.title))).collect())
        }
        Wanted::Action(id) => actions(client, id).await,
    }
}

/// Those that the caller could take now.
async fn actions(client: &Client, id: &ItemId) -> Result<Vec<Offer>, Failure> {
    let item = items::item(client, id).await?.view;
    let actions = item.actions.iter().filter(|action| ***action != *"edit");
    Ok(actions.map(|action| (action.to_string(), String::new())).collect())
}
