//! Fills a new store for benchmarks, through the store's own verbs. With many entries per item, each was created,
//! submitted and then approved and taken back over and over; with up to three, most were rejected, and some are open.
//!
//! `fill_store FILE ENTRIES SAMPLE [ENTRIES_PER_ITEM]` prints the id and content digest of SAMPLE items, spread over the
//! whole store; each of them is submitted. An item has ten entries unless told otherwise, which must be an even number
//! if it is above three.
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

use crate::words::Words;

mod words;

type Anything = Box<dyn Error + Send + Sync>;

/// Created, submitted, then approved and taken back four times.
const ENTRIES_PER_ITEM: u64 = 10;
/// With more, items only go back and forth.
const SHORT_LIFE: u64 = 3;
/// How many items live at the same time. A divisor of every round number of items: the end of a large ledger is then like
/// that of a small one, and reading it can be compared.
const TOGETHER: u64 = 1_000;

fn main() -> Result<(), Anything> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (file, entries, sample, per_item) = match arguments.as_slice() {
        [file, entries, sample] => (file, entries, sample, ENTRIES_PER_ITEM),
        [file, entries, sample, per_item] => (file, entries, sample, per_item.parse()?),
        _ => return Err("usage: fill_store FILE ENTRIES SAMPLE [ENTRIES_PER_ITEM]".into()),
    };
    let items = entries.parse::<u64>()? / per_item.max(1);
    let plan = Plan { items, every: (items / sample.parse::<u64>()?.max(1)).max(1), per_item };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(fill(Path::new(file), plan))
}

#[derive(Clone, Copy)]
struct Plan {
    items: u64,
    /// Each so many-th item is printed.
    every: u64,
    per_item: u64,
}

impl Plan {
    fn is_sample(self, number: u64) -> bool {
        number.is_multiple_of(self.every)
    }

    /// Who does what to an item after it was created.
    fn turns(self, number: u64) -> Vec<(Role, &'static str)> {
        let (submit, approve) = ((Role::Initiator, "submit"), (Role::Approver, "approve"));
        if self.per_item > SHORT_LIFE {
            let back_and_forth = [approve, (Role::Approver, "revoke_approval")].into_iter().cycle();
            let count = usize::try_from(self.per_item - 1).unwrap_or(usize::MAX);
            return std::iter::once(submit).chain(back_and_forth).take(count).collect();
        }
        match number % 20 {
            _ if self.is_sample(number) => vec![submit],
            1 => Vec::new(),
            2 => vec![submit],
            3 => vec![submit, approve],
            _ => vec![submit, (Role::Approver, "reject")],
        }
    }
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time::from_unix_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

async fn fill(file: &Path, plan: Plan) -> Result<(), Anything> {
    let store = Arc::new(Sqlite::open_to_fill(file, Arc::new(now))?);
    let [definition, _] = builtin::builtin();
    let text = builtin::CONTROLLED_OPERATION.to_owned();
    store.keep_definitions(vec![StoredDefinition { digest: definition.digest().to_string(), text }]).await?;
    let mut begun = 0;
    while begun < plan.items {
        let end = plan.items.min(begun + TOGETHER);
        let lives: Vec<_> = (begun..end)
            .map(|number| tokio::spawn(live(Arc::clone(&store), Arc::clone(&definition), number, plan.turns(number))))
            .collect();
        for (number, life) in (begun..end).zip(lives) {
            let (id, content_digest) = life.await??;
            if plan.is_sample(number) {
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
    turns: Vec<(Role, &'static str)>,
) -> Result<(ItemId, ContentDigest), Anything> {
    let initiator = Actor::new("ana".parse()?, Role::Initiator);
    let id: ItemId = format!("{:08x}-{:04x}-7000-8000-{number:012x}", number >> 16, number & 0xffff).parse()?;
    let mut words = Words::of(number);
    let title = words.title();
    let payload =
        json!({"purpose": words.purpose(), "operation": words.some(8), "risk": "low", "rollback_plan": words.some(6)});
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
    for (turn, (role, action)) in (1..).zip(turns) {
        let actor = Actor::new(if role == Role::Initiator { "ana" } else { "ben" }.parse()?, role);
        let is_explained = matches!(action, "revoke_approval" | "reject");
        let comment = is_explained.then(|| "One more look at the numbers".to_owned());
        let document = comment.as_ref().map(|text| Document::comment(text, &nonce(number, turn)));
        let request = Request::Act(ActionRequest {
            action: action.into(),
            content_digest: (action == "approve").then(|| content_digest.to_string()),
            comment,
            inputs: None,
            if_match: None,
        });
        let (rules, caller) = (Arc::clone(&definition), Caller::Actor(actor));
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
