//! `pilot inbox`: what waits for the caller, and at a terminal a decision on each.

use pilot_api::items::{ContentView, ItemView, TransitionView};
use pilot_api::workflows::WorkflowView;
use serde_json::Value;

use crate::client::query::encode;
use crate::client::{Ask, Client, ClientArguments, runtime};
use crate::cmd::item::act::{take, told};
use crate::cmd::item::decision::{Said, confirm};
use crate::cmd::item::list::{Listed, Wanted, fetch, item_table, print_list};
use crate::cmd::item::shown::{Shown, effect, write_item};
use crate::difference::differences;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::items::{self, FoundItem};
use crate::output::page::Page;
use crate::output::{Output, OutputArguments, note, print};
use crate::terminal;

/// As many as fit on a screen.
const SHOWN_MAX: usize = 20;

#[derive(clap::Args)]
#[command(after_help = "\
At a terminal you choose an item, see its content, how it differs from the version that was last returned, its votes and \
history, and then an action. Before a decision you type the first eight characters of the content's digest. Elsewhere, and \
with --list, --output or --fields, the list is printed.")]
pub(crate) struct Arguments {
    /// Only print the list
    #[arg(long)]
    list: bool,
    /// Print these members as tab-separated values, without a header: id,state
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "output")]
    fields: Vec<String>,
    #[command(flatten)]
    client: ClientArguments,
    #[command(flatten)]
    output: OutputArguments,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let client = Client::new(&arguments.client, environment)?;
    let is_list = arguments.list || !arguments.fields.is_empty() || arguments.output.output == Output::Json;
    runtime()?.block_on(async {
        if is_list || !terminal::has_person() {
            let listed = waiting(&client, None).await?;
            return print_list(&listed, &arguments.fields, arguments.output.output);
        }
        while visit(&client, environment).await? {}
        Ok(())
    })
}

async fn waiting(client: &Client, limit: Option<usize>) -> Result<Listed, Failure> {
    fetch(client, &Wanted { waiting_for_me: true, limit, ..Wanted::default() }).await
}

/// One item, from the list to the decision; false when the person has had enough.
async fn visit(client: &Client, environment: &Environment) -> Result<bool, Failure> {
    let listed = waiting(client, Some(SHOWN_MAX)).await?;
    if listed.views.is_empty() {
        print("Nothing waits for you.\n")?;
        return Ok(false);
    }
    print(&numbered(&listed))?;
    let Some(answer) = terminal::ask("Number of an item, or q to leave: ")? else { return Ok(false) };
    if matches!(&*answer, "q" | "quit" | "") {
        return Ok(false);
    }
    let number = answer.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let Some(chosen) = number.and_then(|number| listed.views.get(number)) else {
        note("type the number at the beginning of a line")?;
        return Ok(true);
    };
    match decide(client, environment, chosen).await {
        // A refusal concerns this item; the others still wait.
        Err(Failure::Refused(text)) => note(&text).map(|()| true),
        decided => decided.map(|()| true),
    }
}

fn numbered(listed: &Listed) -> String {
    let table = item_table(&listed.views, terminal::columns().saturating_sub(4));
    let lines = table.lines().enumerate().map(|(number, line)| match number {
        0 => format!("    {line}\n"),
        number => format!("{number:>2}  {line}\n"),
    });
    lines.collect()
}

async fn decide(client: &Client, environment: &Environment, chosen: &ItemView<'_>) -> Result<(), Failure> {
    let found = items::item(client, &chosen.id).await?;
    let definition = items::definition(client, &found.view).await?;
    let history = items::history(client, &chosen.id).await?;
    let mut page = Page::new(environment);
    let shown = Shown::new(&found, &definition, &history);
    write_item(&mut page, &shown);
    if let Some(returned) = last_returned(client, &found.view, &history, &definition).await? {
        write_difference(&mut page, &returned, &found.view);
    }
    page.print()?;
    let Some(action) = choose_action(&found, &definition)? else { return Ok(()) };
    let rules = definition.rules_of(&action, &found.view.state);
    let mut said = Said::default();
    if rules.iter().any(|rule| rule.content_digest_required) {
        said.digest = Some(confirm(&found.view)?);
    }
    said.ask_for_the_rest(&rules)?;
    if said.comment.is_none() && matches!(&*action, "hold" | "release") {
        said.comment = terminal::ask("Comment: ")?;
    }
    send(client, &found, &action, &said).await
}

async fn send(client: &Client, found: &FoundItem, action: &str, said: &Said) -> Result<(), Failure> {
    let body = said.body(action, found.now)?;
    let value = take(client, &found.view.id, &body, None).await?;
    print(&format!("{}\n", told(&value)?))
}

/// None if the person leaves the item as it is.
fn choose_action(found: &FoundItem, definition: &WorkflowView) -> Result<Option<String>, Failure> {
    let actions: Vec<_> = found.view.actions.iter().filter(|action| ***action != *"edit").collect();
    for _ in 0..3 {
        let names: Vec<_> = actions.iter().map(|action| &***action).collect();
        let question = format!("Action ({}), or nothing to go back: ", names.join(", "));
        let Some(answer) = terminal::ask(&question)?.filter(|answer| !answer.is_empty()) else { return Ok(None) };
        if let Some(action) = actions.iter().find(|action| ***action == answer.as_str().into()) {
            note(&effect(action, &found.view, found.outlook.as_ref(), definition))?;
            return Ok(Some(action.to_string()));
        }
    }
    Ok(None)
}

/// The content that was last sent back, if this item was.
async fn last_returned(
    client: &Client,
    item: &ItemView<'_>,
    history: &[TransitionView<'_>],
    definition: &WorkflowView,
) -> Result<Option<ContentView>, Failure> {
    // A move from content that is frozen to content that may be edited is a return, whatever it is called.
    let is_editable = |name: &str| definition.state(name).is_some_and(|state| state.editable);
    let is_return = |entry: &&TransitionView<'_>| match (entry.from.as_deref(), entry.to.as_deref()) {
        (Some(from), Some(to)) => !is_editable(from) && is_editable(to),
        _ => false,
    };
    let Some(entry) = history.iter().rev().find(is_return) else { return Ok(None) };
    let Some(digest) = items::content_after(client, entry.entry).await? else { return Ok(None) };
    let path = format!("/v1/items/{}/contents/{}", item.id, encode(&digest));
    match client.insist(Ask::get(&path)).await?.read() {
        Ok(content) => Ok(Some(content)),
        // Erased, or an older service.
        Err(Failure::Refused(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn write_difference(page: &mut Page, before: &ContentView, item: &ItemView<'_>) {
    page.blank();
    let whole = |title: &str, payload: &Value| serde_json::json!({ "title": title, "payload": payload });
    let lines = differences(&whole(&before.title, &before.payload), &whole(&item.title, &item.payload.value()));
    if lines.is_empty() {
        page.heading("Nothing has changed since it was returned");
        return;
    }
    page.heading("What has changed since it was returned");
    for line in &lines {
        page.quote(line);
    }
}
