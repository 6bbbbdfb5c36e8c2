//! What is decided and recorded for each kind of write. Handlers, timers and simulations pass these to the store.

use std::sync::Arc;
use std::time::Duration;

use pilot_core::actor::{Actor, ActorId};
use pilot_core::decide::{self, Caller, Content, EditRequest, IfMatch, NewItem, OpenItems, Request, due_at};
use pilot_core::document::{ContentDigest, Document};
use pilot_core::entry::details::IssuedPermit;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::{Item, ItemId};
use pilot_core::limits::COMMENTED_ENTRIES_MAX;
use pilot_core::refusal::Refusal;
use pilot_core::time::Time;
use pilot_core::workflow::Definition;
use pilot_store::look::Look;
use pilot_store::{Decided, NoRecord, Record, Situation, Standing, Subject, Write};
use serde_json::Value;

use crate::witnesses::EffectGate;
use crate::workflows::Workflows;

/// What the store has to record about an item.
pub fn record(definition: &Definition, entry: Entry, documents: Vec<Document>, item: Item) -> Record {
    let standing = Standing {
        is_open: !item.is_terminal(definition),
        waits_for: item.waits_for(definition),
        due_at: due_at(definition, &item).map(|deadline| deadline.at),
        item,
    };
    Record { documents, standing: Some(standing), ..Record::of(entry) }
}

/// The item a write is about, and the definition it was created under.
pub fn subject<'s>(workflows: &Workflows, situation: &Situation<'s>) -> Result<(&'s Item, Arc<Definition>), Refusal> {
    let item = situation.item.ok_or(Refusal::OtherDefinition)?;
    let definition = workflows.of(&item.workflow).ok_or(Refusal::OtherDefinition)?;
    Ok((item, Arc::clone(definition)))
}

pub fn create(
    definition: Arc<Definition>,
    actor: Actor,
    new: NewItem,
    content: Document,
) -> impl Fn(&Situation<'_>) -> Decided + Send + 'static {
    move |situation| {
        let (transition, item) =
            decide::decide_creation(&definition, &new, &actor, situation.now, situation.open_items)?;
        let entry = Entry::of_transition(EntryType::ItemCreated, situation.index, &transition, &item);
        let shown = Some(Box::new(item.clone()));
        Ok(Record { shown, ..record(&definition, entry, vec![content.clone()], item) })
    }
}

/// The item that an entry created, rebuilt from the entry and the request. For a caller who repeats the request; the
/// item itself may have changed long since.
pub fn created(workflows: &Workflows, entry: &Entry, workflow: &str, title: &str, payload: &Value) -> Option<Item> {
    if entry.r#type != EntryType::ItemCreated {
        return None;
    }
    let definition = workflows.with_digest(workflow, entry.definition.as_deref()?)?;
    let actor = entry.actor()?;
    let content = Content::accepted(definition, title, payload, entry.content.clone()?);
    let new = NewItem { id: entry.item.clone()?, content };
    decide::decide_creation(definition, &new, &actor, entry.at, OpenItems::default()).ok().map(|(_, item)| item)
}

/// What an edit asks for: a new title, a merge patch for the payload, or both.
pub struct Edit {
    pub title: Option<String>,
    pub payload: Option<Value>,
    pub if_match: Option<IfMatch>,
    pub nonce: String,
}

/// An edit of one exact content, prepared and checked before the writing thread sees it.
pub struct PreparedEdit {
    request: Request,
    document: Option<Document>,
}

impl Edit {
    pub fn prepare(&self, definition: &Definition, item: &Item) -> PreparedEdit {
        let Edit { title, payload, if_match, nonce } = self;
        let names_something = title.is_some() || payload.is_some();
        let (content, document) = names_something
            .then(|| {
                let (title, payload) = EditRequest::edited(item, title.as_deref(), payload.as_ref());
                let document = Document::content(&title, &payload, nonce);
                (Content::judge(definition, &title, &payload, document.digest.clone()), document)
            })
            .unzip();
        let request = EditRequest { content, made_from: item.content_digest.clone(), if_match: if_match.clone() };
        PreparedEdit { request: Request::Edit(request), document }
    }
}

/// Refused with `content_changed` if the item's content is no longer the one the edit was prepared from.
pub fn edit(
    workflows: Arc<Workflows>,
    actor: Actor,
    edit: PreparedEdit,
) -> impl Fn(&Situation<'_>) -> Decided + Send + 'static {
    let PreparedEdit { request, document } = edit;
    move |situation| {
        let (item, definition) = subject(&workflows, situation)?;
        let transition = decide::decide(&definition, item, &request, &Caller::Actor(actor.clone()), situation.now)?;
        let item = item.after(&transition);
        let entry = Entry::of_transition(EntryType::ItemEdited, situation.index, &transition, &item);
        let shown = Some(Box::new(item.clone()));
        Ok(Record { shown, ..record(&definition, entry, document.iter().cloned().collect(), item) })
    }
}

pub fn act(
    workflows: Arc<Workflows>,
    actor: Actor,
    request: decide::ActionRequest,
    comment: Option<Document>,
    inputs: Option<Document>,
    gate: EffectGate,
) -> impl Fn(&Situation<'_>) -> Decided + Send + 'static {
    let request = Request::Act(request);
    move |situation| {
        let (item, definition) = subject(&workflows, situation)?;
        let transition = decide::decide(&definition, item, &request, &Caller::Actor(actor.clone()), situation.now)?;
        gate.check(&definition, &transition, item, situation.last_entry)?;
        let item = item.after(&transition);
        let entry = Entry {
            comment: comment.as_ref().map(|document| document.digest.clone()),
            inputs: inputs.as_ref().map(|document| document.digest.clone()),
            ..Entry::of_transition(EntryType::ItemTransition, situation.index, &transition, &item)
        };
        let documents = comment.iter().chain(&inputs).cloned().collect();
        Ok(record(&definition, entry, documents, item))
    }
}

pub fn comment(
    workflows: Arc<Workflows>,
    actor: Actor,
    document: Document,
    if_match: Option<IfMatch>,
) -> impl Fn(&Situation<'_>) -> Decided + Send + 'static {
    move |situation| {
        let (item, definition) = subject(&workflows, situation)?;
        if_match.as_ref().map_or(Ok(()), |if_match| if_match.check(item))?;
        if situation.entries.is_some_and(|entries| entries >= COMMENTED_ENTRIES_MAX) {
            return Err(Refusal::TooManyComments { entries_max: COMMENTED_ENTRIES_MAX }.into());
        }
        let entry = Entry::of_comment(situation.index, situation.now, &actor, item, document.digest.clone());
        Ok(record(&definition, entry, vec![document.clone()], item.clone()))
    }
}

/// Remembers which content an actor looked at last. It is not an entry: a look proves nothing.
pub fn look(id: &ItemId, actor_id: ActorId, content_digest: ContentDigest) -> Write {
    let name = Look::name(id, &actor_id);
    let decide = move |situation: &Situation<'_>| {
        let item = situation.item.ok_or(Refusal::OtherDefinition)?;
        if item.content_digest != content_digest {
            return Err(Refusal::ContentChanged { actual: item.content_digest.clone() }.into());
        }
        let last = situation.facts.first().and_then(Option::as_deref).and_then(|bytes| Look::read(bytes).ok());
        let is_known = last.is_some_and(|last| last.content_digest == content_digest);
        if is_known {
            return Err(NoRecord::Nothing);
        }
        Err(NoRecord::Note(vec![Look::new(content_digest.clone(), situation.now).to_fact(&item.id, &actor_id)]))
    };
    Write::new(Subject::Item(id.clone()), None, decide).reading([name])
}

/// A permit token that someone asks for.
#[derive(Debug, Clone)]
pub struct AskedPermit {
    pub audience: String,
    pub jti: String,
    pub key_id: String,
    pub lifetime: Duration,
}

/// Records that a permit token is issued, and until when it is valid: no longer than lease and window last.
pub fn issue_permit(
    workflows: Arc<Workflows>,
    actor: Actor,
    asked: AskedPermit,
) -> impl Fn(&Situation<'_>) -> Decided + Send + 'static {
    move |situation| {
        let (item, definition) = subject(&workflows, situation)?;
        let until = decide::may_have_permit(&definition, item, &actor, situation.now)?;
        // In whole seconds, as tokens have it.
        let micros = until.min(situation.now.plus(asked.lifetime)).unix_micros();
        let expires_at = Time::from_unix_micros(micros - micros.rem_euclid(1_000_000));
        if expires_at <= situation.now {
            return Err(Refusal::DeadlinePassed { state: item.state.clone(), due_at: until }.into());
        }
        let AskedPermit { audience, jti, key_id, .. } = asked.clone();
        let issued = IssuedPermit { audience, expires_at, jti, key_id };
        let entry = Entry::of_permit(situation.index, situation.now, &actor, item, issued);
        let shown = Some(Box::new(item.clone()));
        Ok(Record { shown, ..record(&definition, entry, Vec::new(), item.clone()) })
    }
}

/// What the passing of time does to an item, if something is due.
pub fn expire(workflows: Arc<Workflows>) -> impl Fn(&Situation<'_>) -> Decided + Send + 'static {
    move |situation| {
        let (item, definition) = subject(&workflows, situation)?;
        let transition = decide::decide(&definition, item, &Request::Timer, &Caller::Timer, situation.now)?;
        let item = item.after(&transition);
        let entry = Entry::of_transition(EntryType::ItemTransition, situation.index, &transition, &item);
        Ok(record(&definition, entry, Vec::new(), item))
    }
}

#[cfg(test)]
mod tests {
    use pilot_core::decide::decide_creation;
    use pilot_core::role::Role;
    use pilot_store::sqlite::Sqlite;
    use pilot_store::{Outcome, Store};
    use pilot_testing::Scratch;
    use serde_json::json;

    use super::*;

    fn looked(outcome: pilot_store::Result<Outcome>) -> &'static str {
        match outcome.unwrap() {
            Outcome::Noted => "noted",
            Outcome::Nothing => "nothing",
            Outcome::NoSuchItem => "no such item",
            Outcome::Refused(refusal) => refusal.code().as_str(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_look_is_kept_once_for_each_actor_and_only_at_what_the_item_has() {
        let scratch = Scratch::new();
        let store = Sqlite::open(&scratch.file("pilot.db"), Arc::new(|| Time::EPOCH)).unwrap();
        let workflows = Arc::new(Workflows::load(None, &store as &dyn Store).await.unwrap());
        let definition = Arc::clone(workflows.named("controlled-operation").unwrap());
        let ana = Actor::new("ana".parse().unwrap(), Role::Initiator);
        let content = Document::content("t", &json!({}), "n");
        let id: ItemId = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        let new =
            NewItem { id: id.clone(), content: Content::judge(&definition, "t", &json!({}), content.digest.clone()) };
        let first = content.digest.clone();
        let creation = create(Arc::clone(&definition), ana.clone(), new, content);
        store.settle(Write::new(Subject::NewItem { count_open: None }, None, creation)).await.unwrap();
        let ben: ActorId = "ben".parse().unwrap();
        let fact = |actor_id: &ActorId| store.shown_item(id.clone(), Look::name(&id, actor_id));
        let at = |digest: &ContentDigest| look(&id, ben.clone(), digest.clone());

        let other = "01890a5d-ac96-774b-bcce-b302099a8058".parse().unwrap();
        assert_eq!(looked(store.settle(look(&other, ben.clone(), first.clone())).await), "no such item");
        // Two at once: the second finds what the first left.
        let (one, two) = (store.settle(at(&first)), store.settle(at(&first)));
        assert_eq!((looked(one.await), looked(two.await)), ("noted", "nothing"));
        assert_eq!(looked(store.settle(at(&first)).await), "nothing");
        let shown = fact(&ben).await.unwrap().unwrap();
        assert_eq!(Look::read(&shown.fact.unwrap()).unwrap(), Look::new(first.clone(), Time::EPOCH));
        assert_eq!(ContentDigest::of_bytes(&shown.content.unwrap()), first);
        assert_eq!(fact(&ana.actor_id).await.unwrap().unwrap().fact, None, "someone else's look");

        let edit_to = Edit { title: Some("u".into()), payload: None, if_match: None, nonce: "m".into() };
        let prepared = edit_to.prepare(&definition, &shown.item);
        let decide = edit(Arc::clone(&workflows), ana.clone(), prepared);
        store.settle(Write::new(Subject::Item(id.clone()), None, decide)).await.unwrap();
        assert_eq!(looked(store.settle(at(&first)).await), "content_changed");
        let second = store.item(id.clone()).await.unwrap().unwrap().content_digest.clone();
        assert_eq!(looked(store.settle(at(&second)).await), "noted");
        let kept = fact(&ben).await.unwrap().unwrap().fact.unwrap();
        assert_eq!(Look::read(&kept).unwrap().content_digest, second);
        assert_eq!(store.head().borrow().size(), 2, "a look is not an entry");
        drop(store);
    }

    #[tokio::test]
    async fn an_item_with_very_many_entries_takes_no_more_comments() {
        let scratch = Scratch::new();
        let store = Sqlite::open(&scratch.file("pilot.db"), Arc::new(|| Time::EPOCH)).unwrap();
        let workflows = Arc::new(Workflows::load(None, &store as &dyn Store).await.unwrap());
        let definition = Arc::clone(workflows.named("controlled-operation").unwrap());
        let ana = Actor::new("ana".parse().unwrap(), Role::Initiator);
        let content = Document::content("t", &json!({}), "n");
        let id = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        let new = NewItem { id, content: Content::judge(&definition, "t", &json!({}), content.digest) };
        let (_, item) = decide_creation(&definition, &new, &ana, Time::EPOCH, OpenItems::default()).unwrap();
        for (entries, is_taken) in [(1, true), (COMMENTED_ENTRIES_MAX - 1, true), (COMMENTED_ENTRIES_MAX, false)] {
            let document = Document::comment("seen", "nonce");
            let decide = comment(Arc::clone(&workflows), ana.clone(), document, None);
            let entries = Some(entries);
            let (item, last_entry, now) = (Some(&item), Some(0), Time::EPOCH);
            let decided = decide(&Situation {
                item,
                last_entry,
                entries,
                open_items: OpenItems::default(),
                facts: &[],
                now,
                index: 1,
            });
            let refusal = decided.err().map(|no_record| match no_record {
                NoRecord::Refused(refusal) => refusal.code().as_str(),
                NoRecord::Nothing | NoRecord::Note(_) => "nothing",
            });
            assert_eq!(refusal, (!is_taken).then_some("state_conflict"));
        }
        drop(store);
    }
}
