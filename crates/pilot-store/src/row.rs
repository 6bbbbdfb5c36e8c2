//! How an item is stored in its row: columns to find it by, and JSON for the rest. The JSON repeats no column, and the
//! payload is in the content document. Also what is stored with an idempotency key.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pilot_core::actor::{Actor, ActorId};
use pilot_core::document::{ContentDigest, DocumentKind};
use pilot_core::item::{Item, ItemId, Lease, Operator, Vote, Window, WorkflowRef};
use pilot_core::payload::Payload;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::Name;
use serde::de::IgnoredAny;
use serde::ser::SerializeSeq as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{Remembered, Result, StoreError};

/// An item's id as it is stored.
pub(crate) type ItemKey = [u8; 16];

/// The columns an item is read from.
pub(crate) struct Columns<'r> {
    pub(crate) version: u64,
    pub(crate) state: &'r str,
    pub(crate) workflow: &'r str,
    pub(crate) created_by: &'r str,
    pub(crate) title: &'r str,
    pub(crate) data: &'r str,
    /// The item's content document. After an erasure there is none, and the payload is empty.
    pub(crate) content: Option<&'r [u8]>,
}

/// Replaces the title of an item whose contents were erased.
pub(crate) const ERASED_TITLE: &str = "(erased)";

/// The form number of the list in an item's row.
const FORM: u32 = 3;
/// The form of items in which machines took part whose operators are known. Other items keep the older form, so that
/// nodes of the previous version can read them.
const FORM_WITH_OPERATORS: u32 = 4;
/// Part of the message about a row from a newer program.
pub(crate) const NEWER: &str = "was written by a newer version of pilot";

/// The rest of an item, written as a list in the order of these fields: every move writes it, and field names would
/// make up most of it. Times are in microseconds.
#[derive(Deserialize)]
struct Rest {
    workflow_version: u32,
    workflow_digest: Name,
    content_digest: ContentDigest,
    creator_role: Role,
    created_at: i64,
    updated_at: i64,
    entered_at: i64,
    held: bool,
    window: Option<Span>,
    lease: Option<Holding>,
    votes: Vec<Cast>,
    attempts: u32,
    participants: BTreeMap<ActorId, Role>,
    executors: BTreeSet<ActorId>,
    /// Only in the form with operators.
    #[serde(default)]
    operated: Option<Operated>,
}

/// Who operates the machines that took part.
#[derive(Deserialize, Default)]
struct Operated {
    creator: Option<ActorId>,
    operators: BTreeSet<Operator>,
    /// By voter.
    votes: BTreeMap<ActorId, ActorId>,
}

#[derive(Deserialize)]
struct Span {
    not_before: i64,
    not_after: i64,
}

#[derive(Deserialize)]
struct Holding {
    holder: ActorId,
    expires_at: i64,
}

#[derive(Deserialize)]
struct Cast {
    actor_id: ActorId,
    action: Name,
    /// Only if it differs from the item's own.
    content_digest: Option<ContentDigest>,
    at: i64,
}

/// Serializes an item in the form of [`Rest`].
struct Written<'i>(&'i Item);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let Written(item) = self;
        let window =
            item.window.as_ref().map(|window| (window.not_before.unix_micros(), window.not_after.unix_micros()));
        let lease = item.lease.as_ref().map(|lease| (&lease.holder, lease.expires_at.unix_micros()));
        let mut list = serializer.serialize_seq(None)?;
        list.serialize_element(&item.workflow.version)?;
        list.serialize_element(&item.workflow.digest)?;
        list.serialize_element(&item.content_digest)?;
        list.serialize_element(&item.created_by.role)?;
        list.serialize_element(&item.created_at.unix_micros())?;
        list.serialize_element(&item.updated_at.unix_micros())?;
        list.serialize_element(&item.entered_at.unix_micros())?;
        list.serialize_element(&item.held)?;
        list.serialize_element(&window)?;
        list.serialize_element(&lease)?;
        list.serialize_element(&Votes(item))?;
        list.serialize_element(&item.attempts)?;
        list.serialize_element(&item.participants)?;
        list.serialize_element(&item.executors)?;
        if has_operators(item) {
            let voters = item.votes.iter().filter_map(|vote| Some((&vote.actor_id, vote.operated_by.as_ref()?)));
            let voters: BTreeMap<_, _> = voters.collect();
            list.serialize_element(&(&item.created_by.operated_by, &item.operators, voters))?;
        }
        list.end()
    }
}

/// Whether machines took part whose operators are known.
fn has_operators(item: &Item) -> bool {
    !item.operators.is_empty()
}

struct Votes<'i>(&'i Item);

impl Serialize for Votes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.votes.iter().map(|vote| {
            let digest = Some(&vote.content_digest).filter(|digest| **digest != self.0.content_digest);
            (&vote.actor_id, &vote.action, digest, vote.at.unix_micros())
        }))
    }
}

/// Writes into `json`, whose buffer is reused for the next item.
pub(crate) fn to_json(item: &Item, json: &mut Vec<u8>) -> Result<()> {
    json.clear();
    let form = if has_operators(item) { FORM_WITH_OPERATORS } else { FORM };
    serde_json::to_writer(json, &(form.to_string(), Written(item)))
        .map_err(|error| StoreError::Damaged(format!("an item cannot be written: {error}")))
}

/// The form number in quotes, then a list. Before forms had numbers, the list stood alone and began with a bare number.
fn read_rest(id: &ItemId, data: &str) -> Result<Rest> {
    #[derive(Deserialize)]
    struct Formed<'a>(IgnoredAny, #[serde(borrow)] &'a RawValue);
    let damaged = |error: serde_json::Error| StoreError::Damaged(format!("item {id} cannot be read: {error}"));
    let Some(formed) = data.strip_prefix("[\"") else { return serde_json::from_str(data).map_err(damaged) };
    let form = formed.split('"').next().and_then(|form| form.parse::<u32>().ok());
    if form.is_some_and(|form| form > FORM_WITH_OPERATORS) {
        return Err(StoreError::Unavailable(format!("item {id} {NEWER}; use that version")));
    }
    let Formed(IgnoredAny, rest) = serde_json::from_str(data).map_err(damaged)?;
    if ![Some(FORM), Some(FORM_WITH_OPERATORS)].contains(&form) {
        return Err(StoreError::Damaged(format!("item {id} cannot be read: it has no known form")));
    }
    let rest: Rest = serde_json::from_str(rest.get()).map_err(damaged)?;
    let is_whole = match form {
        Some(FORM_WITH_OPERATORS) => rest.names_operators(),
        _ => rest.operated.is_none(),
    };
    if !is_whole {
        let what = "what it says about the operators of machines does not fit its form or the rest of it";
        return Err(StoreError::Damaged(format!("item {id} cannot be read: {what}")));
    }
    Ok(rest)
}

impl Rest {
    /// Whether there are operators, each of a machine that took part, and each vote that has one was cast.
    fn names_operators(&self) -> bool {
        self.operated.as_ref().is_some_and(|operated| {
            let took_part = |operator: &Operator| self.participants.contains_key(&operator.machine);
            let was_cast = |voter: &ActorId| self.votes.iter().any(|vote| vote.actor_id == *voter);
            !operated.operators.is_empty()
                && operated.operators.iter().all(took_part)
                && operated.votes.keys().all(was_cast)
        })
    }
}

/// A row of schema version 1, until the item's next move rewrites it: an object that repeats the columns.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct First<'a> {
    workflow: Cow<'a, WorkflowRef>,
    title: Cow<'a, str>,
    state: Cow<'a, Name>,
    version: u64,
    content_digest: Cow<'a, ContentDigest>,
    created_at: Time,
    created_by: Cow<'a, Actor>,
    updated_at: Time,
    entered_at: Time,
    held: bool,
    window: Option<Window>,
    lease: Option<Lease>,
    votes: Vec<Vote>,
    attempts: u32,
    participants: BTreeMap<ActorId, Role>,
    executors: BTreeSet<ActorId>,
}

pub(crate) fn to_item(id: ItemId, columns: &Columns<'_>) -> Result<Item> {
    #[derive(Deserialize)]
    struct Content<'d> {
        #[serde(borrow)]
        payload: &'d RawValue,
    }
    let damaged = |error: serde_json::Error| StoreError::Damaged(format!("item {id} cannot be read: {error}"));
    let payload = match columns.content {
        Some(bytes) => Payload::from_canonical(serde_json::from_slice::<Content<'_>>(bytes).map_err(damaged)?.payload),
        None => Payload::empty(),
    };
    if columns.data.starts_with('{') {
        return serde_json::from_str(columns.data).map_err(damaged).map(|row: First<'_>| row.into_item(id, payload));
    }
    let mut rest = read_rest(&id, columns.data)?;
    let operated = rest.operated.take().unwrap_or_default();
    let malformed = |_| StoreError::Damaged(format!("item {id} cannot be read: its creator's name is not valid"));
    let created_by = Actor {
        actor_id: columns.created_by.parse().map_err(malformed)?,
        role: rest.creator_role,
        operated_by: operated.creator,
    };
    let time = Time::from_unix_micros;
    let content_digest = rest.content_digest;
    let operated_by = operated.votes;
    let vote = |cast: Cast| Vote {
        operated_by: operated_by.get(&cast.actor_id).cloned(),
        actor_id: cast.actor_id,
        action: cast.action,
        content_digest: cast.content_digest.unwrap_or_else(|| content_digest.clone()),
        at: time(cast.at),
    };
    Ok(Item {
        workflow: WorkflowRef {
            name: columns.workflow.into(),
            version: rest.workflow_version,
            digest: rest.workflow_digest,
        },
        title: columns.title.into(),
        payload,
        state: columns.state.into(),
        version: columns.version,
        created_at: time(rest.created_at),
        created_by,
        updated_at: time(rest.updated_at),
        entered_at: time(rest.entered_at),
        held: rest.held,
        window: rest.window.map(|span| Window::new(time(span.not_before), time(span.not_after))),
        lease: rest.lease.map(|lease| Lease { holder: lease.holder, expires_at: time(lease.expires_at) }),
        votes: rest.votes.into_iter().map(vote).collect(),
        attempts: rest.attempts,
        participants: Arc::new(rest.participants),
        operators: operated.operators,
        executors: rest.executors,
        content_digest,
        id,
    })
}

impl First<'_> {
    fn into_item(self, id: ItemId, payload: Payload) -> Item {
        Item {
            id,
            workflow: self.workflow.into_owned(),
            title: self.title.into(),
            payload,
            state: self.state.into_owned(),
            version: self.version,
            content_digest: self.content_digest.into_owned(),
            created_at: self.created_at,
            created_by: self.created_by.into_owned(),
            updated_at: self.updated_at,
            entered_at: self.entered_at,
            held: self.held,
            window: self.window,
            lease: self.lease,
            votes: self.votes,
            attempts: self.attempts,
            participants: Arc::new(self.participants),
            operators: BTreeSet::new(),
            executors: self.executors,
        }
    }
}

/// A UUID as 16 bytes.
pub(crate) fn to_key(id: &ItemId) -> ItemKey {
    let digits = id.as_str().bytes().filter(|digit| *digit != b'-');
    let value = |digit: u8| u128::from(digit & 0xf) + if digit.is_ascii_digit() { 0 } else { 9 };
    digits.fold(0_u128, |key, digit| key << 4 | value(digit)).to_be_bytes()
}

pub(crate) fn from_key(key: &[u8]) -> Result<ItemId> {
    id_text(key).parse().map_err(|_| StoreError::Damaged("an item's id is not a UUID".into()))
}

pub(crate) fn id_text(key: &[u8]) -> String {
    let hex = data_encoding::HEXLOWER.encode(key);
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

pub(crate) fn role_bits(roles: &[Role]) -> i64 {
    roles.iter().fold(0, |bits, role| bits | role_bit(*role))
}

pub(crate) fn role_bit(role: Role) -> i64 {
    match role {
        Role::Initiator => 1,
        Role::Approver => 1 << 1,
        Role::SecurityAdmin => 1 << 2,
        Role::Executor => 1 << 3,
        Role::Auditor => 1 << 4,
    }
}

pub(crate) fn kind_number(kind: DocumentKind) -> i64 {
    match kind {
        DocumentKind::Content => 0,
        DocumentKind::Comment => 1,
        DocumentKind::Inputs => 2,
        DocumentKind::RoleMap => 3,
    }
}

pub(crate) fn kind_of(number: i64) -> Option<DocumentKind> {
    let kinds = [DocumentKind::Content, DocumentKind::Comment, DocumentKind::Inputs, DocumentKind::RoleMap];
    kinds.into_iter().find(|kind| kind_number(*kind) == number)
}

/// What is stored with an idempotency key.
pub(crate) fn remember(entry: u64) -> Vec<u8> {
    format!("{REMEMBERED}{entry}").into_bytes()
}

const REMEMBERED: &str = "entry ";

pub(crate) fn remembered(kept: Vec<u8>) -> Remembered {
    let named = std::str::from_utf8(&kept).ok().and_then(|text| text.strip_prefix(REMEMBERED)?.parse().ok());
    named.map_or(Remembered::Answer(kept), Remembered::Entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: &str) -> Result<Item> {
        let columns = Columns {
            version: 2,
            state: "submitted",
            workflow: "w",
            created_by: "ana",
            title: "t",
            data,
            content: None,
        };
        to_item("01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap(), &columns)
    }

    #[test]
    fn a_row_is_read_in_its_own_form_and_in_the_one_before_and_not_in_a_newer_one() {
        let rest = "[1,\"sha256:d\",\"sha256:0000000000000000000000000000000000000000000000000000000000000000\",\
                    \"initiator\",1,2,3,false,[4,5],[\"eve\",6],[[\"ben\",\"approve\",null,7]],1,\
                    {\"ana\":\"initiator\"},[\"eve\"]]";
        let before = read(rest).unwrap();
        let mut json = Vec::new();
        to_json(&before, &mut json).unwrap();
        let written = String::from_utf8(json).unwrap();
        assert_eq!(written, format!("[\"{FORM}\",{rest}]"));
        assert_eq!(read(&written).unwrap(), before);
        for newer in [written.replacen('3', "5", 1), "[\"17\",1,2,3]".to_owned()] {
            let newer = read(&newer);
            assert!(matches!(newer, Err(StoreError::Unavailable(_))), "{newer:?}");
        }
        for form in ["2", "x", ""] {
            let damaged = read(&written.replacen('3', form, 1));
            assert!(matches!(damaged, Err(StoreError::Damaged(_))), "{form}: {damaged:?}");
        }
        let damaged = read(&written.replacen("initiator", "nobody", 1));
        assert!(matches!(damaged, Err(StoreError::Damaged(_))), "{damaged:?}");
    }

    #[test]
    fn a_row_says_who_operates_the_machines_that_took_part_in_a_form_of_its_own() {
        let id = |name: &str| name.parse::<ActorId>().unwrap();
        let rest = "[1,\"sha256:d\",\"sha256:0000000000000000000000000000000000000000000000000000000000000000\",\
                    \"initiator\",1,2,3,false,null,null,[[\"ben\",\"approve\",null,7]],0,{\"ana\":\"initiator\"},[]]";
        let mut item = read(rest).unwrap();
        item.created_by.operated_by = Some(id("ida"));
        item.votes[0].operated_by = Some(id("bea"));
        item.operators.insert(Operator { person: id("ida"), machine: id("ana") });
        let mut json = Vec::new();
        to_json(&item, &mut json).unwrap();
        let written = String::from_utf8(json).unwrap();
        assert!(written.starts_with("[\"4\",["), "{written}");
        assert_eq!(read(&written).unwrap(), item);
        let more = written.split_once("},[],").unwrap().1;
        for (name, damaged) in [
            ("without operators", written.replacen(&format!(",{more}"), "]]", 1)),
            ("in the older form", written.replacen('4', "3", 1)),
            ("of nobody who took part", written.replacen(r#""machine":"ana""#, r#""machine":"amy""#, 1)),
            ("of a vote that was not cast", written.replacen(r#"{"ben":"bea"}"#, r#"{"bob":"bea"}"#, 1)),
        ] {
            assert_ne!(damaged, written, "{name}");
            let damaged = read(&damaged);
            assert!(matches!(damaged, Err(StoreError::Damaged(_))), "{name}: {damaged:?}");
        }
    }

    #[test]
    fn what_is_kept_with_a_key_is_an_entry_or_an_answer_of_an_older_program() {
        assert_eq!(remembered(remember(7)), Remembered::Entry(7));
        for answer in ["201 7 -\n{}", "entry x", "entry ", ""] {
            assert_eq!(remembered(answer.into()), Remembered::Answer(answer.into()));
        }
    }
}
