//! Fills a new store for `bench growth`: items that were created, submitted and then approved and taken back over and
//! over, through the store's own verbs.
//!
//! `fill_store FILE ENTRIES SAMPLE` prints the id and content digest of SAMPLE items, spread over the whole store; each
//! of them is submitted.
#![allow(clippy::print_stdout, reason = "the benchmark reads the items from standard output")]
#![allow(clippy::disallowed_methods, reason = "a benchmark runs on real time")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use pilot_core::actor::Actor;
use pilot_core::decide::{
    ActionRequest, Caller, Content, NewItem, OpenItems, Request, decide, decide_creation, due_at,
};
use pilot_core::document::{ContentDigest, Document};
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::{Item, ItemId};
use pilot_core::refusal::Refusal;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::{Definition, builtin};
use pilot_store::sqlite::Sqlite;
use pilot_store::{Decide, Outcome, Record, Standing, Store, StoredDefinition, Subject, Write};
use serde_json::json;

type Anything = Box<dyn Error + Send + Sync>;

/// Created, submitted, then approved and taken back four times.
const ENTRIES_PER_ITEM: u64 = 10;
const TOGETHER: u64 = 1_024;

fn main() -> Result<(), Anything> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, entries, sample] = arguments.as_slice() else {
        return Err("usage: fill_store FILE ENTRIES SAMPLE".into());
    };
    let items = entries.parse::<u64>()? / ENTRIES_PER_ITEM;
    let every = (items / sample.parse::<u64>()?.max(1)).max(1);
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(fill(Path::new(file), items, every))
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time::from_unix_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

async fn fill(file: &Path, items: u64, every: u64) -> Result<(), Anything> {
    let store = Arc::new(Sqlite::open_to_fill(file, Arc::new(now))?);
    let [definition, _] = builtin::builtin();
    let text = builtin::CONTROLLED_OPERATION.to_owned();
    store.keep_definitions(vec![StoredDefinition { digest: definition.digest().to_string(), text }]).await?;
    let mut begun = 0;
    while begun < items {
        let end = items.min(begun + TOGETHER);
        let lives: Vec<_> = (begun..end)
            .map(|number| tokio::spawn(live(Arc::clone(&store), Arc::clone(&definition), number)))
            .collect();
        for (number, life) in (begun..end).zip(lives) {
            let (id, content_digest) = life.await??;
            if number % every == 0 {
                println!("{id} {content_digest}");
            }
        }
        begun = end;
    }
    Ok(())
}

/// All that happens to one item.
async fn live(
    store: Arc<Sqlite>,
    definition: Arc<Definition>,
    number: u64,
) -> Result<(ItemId, ContentDigest), Anything> {
    let initiator = Actor::new("ana".parse()?, Role::Initiator);
    let approver = Actor::new("ben".parse()?, Role::Approver);
    let id: ItemId = format!("{:08x}-{:04x}-7000-8000-{number:012x}", number >> 16, number & 0xffff).parse()?;
    let title = format!("An operation to measure, {number}");
    let payload = json!({"purpose": "Room for the new region", "operation": "psql -f grow.sql", "risk": "low", "rollback_plan": "psql -f shrink.sql"});
    let content = Document::content(&title, &payload, &nonce(number, 0));
    let content_digest = content.digest.clone();
    let judged = Content::judge(&definition, &title, &payload, content_digest.clone());
    let new = NewItem { id: id.clone(), content: judged };
    let rules = Arc::clone(&definition);
    let create: Decide = Box::new(move |situation| {
        let (transition, item) = decide_creation(&rules, &new, &initiator, situation.now, OpenItems::default())?;
        let entry = Entry::of_transition(EntryType::ItemCreated, situation.index, &transition, &item);
        Ok(record(&rules, entry, vec![content.clone()], item))
    });
    settle(&store, Subject::NewItem { count_open: None }, create).await?;
    let initiator = Actor::new("ana".parse()?, Role::Initiator);
    for turn in 1..ENTRIES_PER_ITEM {
        let (actor, action) = match turn {
            1 => (&initiator, "submit"),
            turn if turn % 2 == 0 => (&approver, "approve"),
            _ => (&approver, "revoke_approval"),
        };
        let comment = (action == "revoke_approval").then(|| "One more look at the numbers".to_owned());
        let document = comment.as_ref().map(|text| Document::comment(text, &nonce(number, turn)));
        let request = Request::Act(ActionRequest {
            action: action.into(),
            content_digest: (action == "approve").then(|| content_digest.to_string()),
            comment,
            inputs: None,
            if_match: None,
        });
        let (rules, caller) = (Arc::clone(&definition), Caller::Actor(actor.clone()));
        let act: Decide = Box::new(move |situation| {
            let item = situation.item.ok_or(Refusal::NothingDue)?;
            let transition = decide(&rules, item, &request, &caller, situation.now)?;
            let item = item.after(&transition);
            let entry = Entry::of_transition(EntryType::ItemTransition, situation.index, &transition, &item);
            let entry = Entry { comment: document.as_ref().map(|document| document.digest.clone()), ..entry };
            Ok(record(&rules, entry, document.iter().cloned().collect(), item))
        });
        settle(&store, Subject::Item(id.clone()), act).await?;
    }
    Ok((id, content_digest))
}

fn record(definition: &Definition, entry: Entry, documents: Vec<Document>, item: Item) -> Record {
    let standing = Standing {
        is_open: !item.is_terminal(definition),
        waits_for: item.waits_for(definition),
        due_at: due_at(definition, &item).map(|deadline| deadline.at),
        item,
    };
    Record { documents, standing: Some(standing), ..Record::of(entry) }
}

/// Random ones are for secrets; here they only have to be as long.
fn nonce(number: u64, turn: u64) -> String {
    format!("{number:016x}{turn:016x}")
}

async fn settle(store: &Sqlite, subject: Subject, decide: Decide) -> Result<(), Anything> {
    match store.settle(Write { subject, key: None, reads: Vec::new(), decide }).await? {
        Outcome::Recorded { .. } => Ok(()),
        other => Err(format!("a write was not recorded: {other:?}").into()),
    }
}
