//! `pilot item wait`: until an item has come as far as somebody needs it.

use std::time::Duration;

use pilot_api::events::EventView;
use pilot_api::items::ItemView;
use pilot_api::workflows::{StateKind, WorkflowView};
use pilot_core::item::ItemId;
use serde_json::json;

use crate::client::follow::{Follower, Heard};
use crate::client::{Client, ClientArguments, runtime};
use crate::cmd::item::target::{Progress, Standing, Target};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::items;
use crate::moment::span;
use crate::output::{Output, OutputArguments, print, print_json};

const PAUSE: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
#[command(after_help = "\
Only a state that lasts counts: an item that was cleared and is already revoked was not cleared, and one that is held is \
not cleared until it is released. That an execution has begun cannot be undone, so it counts whatever happened since. \
What decided and cleared mean follows from the item's definition: a decision is a move that names the content's digest, \
such as approve and clear.\n\n\
Interruptions and restarts of the service are waited out.\n\n\
Exit codes: 0 reached, 1 can no longer be reached (rejected, withdrawn, revoked, expired), 8 not yet within --timeout.")]
pub(crate) struct Arguments {
    /// The item's id
    id: ItemId,
    /// What to wait for
    #[arg(long = "for", value_name = "WHAT")]
    target: Target,
    /// For how long at most: 90s, 30m, 2h [default: as long as it takes]
    #[arg(long, value_name = "TIME", value_parser = span)]
    timeout: Option<Duration>,
    #[command(flatten)]
    client: ClientArguments,
    #[command(flatten)]
    output: OutputArguments,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let client = Client::new(&arguments.client, environment)?;
    let waiting = wait(&client, &arguments.id, arguments.target, arguments.timeout, arguments.output.output);
    runtime()?.block_on(waiting)
}

/// Prints where the item stands, and ends as the exit codes say.
pub(super) async fn wait(
    client: &Client,
    id: &ItemId,
    target: Target,
    timeout: Option<Duration>,
    output: Output,
) -> Result<(), Failure> {
    let mut watch = Watch { client, id, target, definition: None, last: None };
    // Once at any rate: no time at all is enough for a look.
    let standing = match watch.look().await {
        Ok(Standing::NotYet) | Err(Failure::Environment(_)) => {
            let followed = tokio::time::timeout(timeout.unwrap_or(Duration::MAX), watch.follow()).await;
            followed.unwrap_or(Ok(Standing::NotYet))?
        }
        looked => looked?,
    };
    let Some(item) = watch.last else {
        return Err(Failure::Environment(format!("{id}: the service did not answer in time")));
    };
    let (id, state) = (&item.id, &item.state);
    match output {
        Output::Json => print_json(&json!({ "id": id, "state": state, "standing": name(standing) }))?,
        Output::Table => print(&format!("{id}  {state}\n"))?,
    }
    match standing {
        Standing::Reached => Ok(()),
        Standing::Never => Err(Failure::Refused(format!("the item is {state}, so this can no longer be reached"))),
        Standing::NotYet => {
            let roles: Vec<_> = item.waits_for.iter().map(ToString::to_string).collect();
            let roles = if roles.is_empty() { String::new() } else { format!(" and waits for {}", roles.join(" or ")) };
            let held = if item.held { ", held" } else { "" };
            Err(Failure::NotYet(format!("not yet: the item is {state}{held}{roles}")))
        }
    }
}

const fn name(standing: Standing) -> &'static str {
    match standing {
        Standing::Reached => "reached",
        Standing::NotYet => "not_yet",
        Standing::Never => "never",
    }
}

/// What is waited for, and what was last seen of it.
struct Watch<'a> {
    client: &'a Client,
    id: &'a ItemId,
    target: Target,
    definition: Option<WorkflowView>,
    last: Option<ItemView<'static>>,
}

impl Watch<'_> {
    /// Looks whenever the feed is opened and whenever it says something about the item.
    async fn follow(&mut self) -> Result<Standing, Failure> {
        // The place in the ledger first: what happens after it comes with the feed, and what happened before is seen.
        let mut follower = Follower::new(self.client, newest(self.client).await?);
        loop {
            match follower.next().await {
                Ok(Heard::Event(event)) if !is_about(&event.data, self.id) => continue,
                Ok(Heard::Opened | Heard::Event(_)) => {}
                Err(no_feed) if no_feed.is_past_the_end() => {
                    follower.move_to(newest(self.client).await?);
                    continue;
                }
                Err(no_feed) => return Err(no_feed.failure),
            }
            let standing = patiently(async || self.look().await).await?;
            if standing != Standing::NotYet {
                return Ok(standing);
            }
        }
    }

    async fn look(&mut self) -> Result<Standing, Failure> {
        let item = items::item(self.client, self.id).await?.view;
        let definition = match self.definition.take() {
            Some(known) => known,
            None => items::definition(self.client, &item).await?,
        };
        let is_effect = |state: &str| definition.kind(state) == Some(StateKind::Effect);
        let has_started = is_effect(&item.state) || item.attempts > 0 || {
            let moves = items::moves(self.client, self.id).await?;
            moves.iter().any(|entry| entry.to.as_deref().is_some_and(is_effect))
        };
        let progress = Progress { state: &item.state, is_held: item.held, has_started };
        let standing = self.target.judge(&definition, progress);
        (self.definition, self.last) = (Some(definition), Some(item));
        Ok(standing)
    }
}

async fn newest(client: &Client) -> Result<Option<u64>, Failure> {
    patiently(async || items::ledger_size(client).await).await.map(|size| size.checked_sub(1))
}

fn is_about(data: &str, id: &ItemId) -> bool {
    serde_json::from_str::<EventView>(data).is_ok_and(|event| event.item.as_deref() == Some(id.as_str()))
}

/// Again and again while the service cannot be reached: the time for waiting is bounded elsewhere.
async fn patiently<T>(mut ask: impl AsyncFnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    loop {
        match ask().await {
            Err(Failure::Environment(_)) => tokio::time::sleep(PAUSE).await,
            answered => return answered,
        }
    }
}
