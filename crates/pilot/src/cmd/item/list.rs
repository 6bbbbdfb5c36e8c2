//! `pilot item list`: items by state, workflow, creator or words, one line each.

use pilot_api::items::ItemView;
use serde_json::{Value, json};

use crate::client::query::path_with;
use crate::client::{Client, ClientArguments, runtime};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::items;
use crate::output::fields::tsv;
use crate::output::page::{cut, width};
use crate::output::{Output, OutputArguments, note, print, print_json, table};
use crate::terminal;

const PAGE_ITEMS_MAX: usize = 200;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only items in this state
    #[arg(long)]
    state: Option<String>,
    /// Only items of this workflow
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// Only items that this actor created
    #[arg(long, value_name = "ACTOR")]
    created_by: Option<String>,
    /// Only items that wait for you
    #[arg(long)]
    waiting_for_me: bool,
    /// Only items with these words in their title
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// How many at most
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// All of them
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Print these members as tab-separated values, without a header: id,state,created_by.actor_id
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "output")]
    fields: Vec<String>,
    #[command(flatten)]
    client: ClientArguments,
    #[command(flatten)]
    output: OutputArguments,
}

/// Which items, and how many of them.
#[derive(Default)]
pub(crate) struct Wanted<'a> {
    pub state: Option<&'a str>,
    pub workflow: Option<&'a str>,
    pub created_by: Option<&'a str>,
    pub waiting_for_me: bool,
    pub search: Option<&'a str>,
    /// None for all of them.
    pub limit: Option<usize>,
}

pub(crate) struct Listed {
    pub views: Vec<ItemView<'static>>,
    pub values: Vec<Value>,
    /// There are more than were asked for.
    pub has_more: bool,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let wanted = Wanted {
        state: arguments.state.as_deref(),
        workflow: arguments.workflow.as_deref(),
        created_by: arguments.created_by.as_deref(),
        waiting_for_me: arguments.waiting_for_me,
        search: arguments.search.as_deref(),
        limit: (!arguments.all).then(|| usize::try_from(arguments.limit).unwrap_or(PAGE_ITEMS_MAX)),
    };
    let client = Client::new(&arguments.client, environment)?;
    let listed = runtime()?.block_on(fetch(&client, &wanted))?;
    print_list(&listed, &arguments.fields, arguments.output.output)?;
    if listed.has_more && arguments.output.output == Output::Table {
        note(&format!("there are more than {}; --all lists them all", arguments.limit))?;
    }
    Ok(())
}

pub(crate) fn print_list(listed: &Listed, fields: &[String], output: Output) -> Result<(), Failure> {
    match output {
        _ if !fields.is_empty() => print(&tsv(&listed.values, fields)?),
        Output::Json => print_json(&json!({ "items": listed.values, "has_more": listed.has_more })),
        Output::Table => print(&item_table(&listed.views, terminal::columns())),
    }
}

/// Page by page, until there are enough or no more.
pub(crate) async fn fetch(client: &Client, wanted: &Wanted<'_>) -> Result<Listed, Failure> {
    let mut listed = Listed { views: Vec::new(), values: Vec::new(), has_more: false };
    let mut cursor: Option<String> = None;
    loop {
        let left = wanted.limit.map_or(PAGE_ITEMS_MAX, |limit| limit.saturating_sub(listed.views.len()));
        let limit = left.min(PAGE_ITEMS_MAX).to_string();
        let parameters = [
            ("state", wanted.state),
            ("workflow", wanted.workflow),
            ("created_by", wanted.created_by),
            ("waiting_for", wanted.waiting_for_me.then_some("me")),
            ("q", wanted.search),
            ("limit", Some(&*limit)),
            ("cursor", cursor.as_deref()),
        ];
        let (values, page) = items::page(client, &path_with("/v1/items", &parameters)).await?;
        listed.values.extend(values);
        listed.views.extend(page.items);
        let is_enough = wanted.limit.is_some_and(|limit| listed.views.len() >= limit);
        listed.has_more = page.next.is_some();
        if is_enough || page.next.is_none() {
            return Ok(listed);
        }
        cursor = page.next;
    }
}

/// One line each; the title gets what the other columns leave.
pub(crate) fn item_table(items: &[ItemView<'_>], columns: usize) -> String {
    let state = |item: &ItemView<'_>| if item.held { format!("{}, held", item.state) } else { item.state.to_string() };
    let by = |item: &ItemView<'_>| cut(item.created_by.actor_id.as_str(), 12);
    let widest =
        |cells: Vec<String>, header: &str| cells.iter().map(|cell| width(cell)).max().unwrap_or(0).max(header.len());
    let taken = 36 + widest(items.iter().map(state).collect(), "state") + widest(items.iter().map(by).collect(), "by");
    let left = columns.saturating_sub(taken + 6).max(12);
    let row = |item: &ItemView<'_>| vec![item.id.to_string(), state(item), by(item), cut(&item.title, left)];
    table(&["id", "state", "by", "title"], items.iter().map(row))
}
