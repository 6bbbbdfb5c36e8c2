//! How an item is laid out in its row: columns to find it by, and JSON for the rest. What a column has, the JSON does not
//! repeat, and the payload is in the content document.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pilot_core::actor::{Actor, ActorId};
use pilot_core::document::ContentDigest;
use pilot_core::item::{Item, ItemId, Lease, Vote, Window, WorkflowRef};
use pilot_core::payload::Payload;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::Name;
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{Result, StoreError};

/// An item's id as it is stored.
pub(super) type ItemKey = [u8; 16];

/// The columns an item is read from.
pub(super) struct Columns<'r> {
    pub(super) version: u64,
    pub(super) state: &'r str,
    pub(super) workflow: &'r str,
    pub(super) created_by: &'r str,
    pub(super) title: &'r str,
    pub(super) data: &'r str,
    /// The item's content document; without it, after an erasure, the payload is empty.
    pub(super) content: Option<&'r [u8]>,
}

/// The rest, as a list: written with every move, and names would be the larger part of it. Times are microseconds. A vote
/// names its content only when that is not the item's own.
type Rest = (
    u32,
    Name,
    ContentDigest,
    Role,
    i64,
    i64,
    i64,
    bool,
    Option<(i64, i64)>,
    Option<(ActorId, i64)>,
    Vec<(ActorId, Name, Option<ContentDigest>, i64)>,
    u32,
    BTreeMap<ActorId, Role>,
    BTreeSet<ActorId>,
);

/// Into `json`, whose room is used again for the next item.
pub(super) fn to_json(item: &Item, json: &mut Vec<u8>) -> Result<()> {
    struct Votes<'i>(&'i Item);
    impl Serialize for Votes<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
            serializer.collect_seq(self.0.votes.iter().map(|vote| {
                let digest = Some(&vote.content_digest).filter(|digest| **digest != self.0.content_digest);
                (&vote.actor_id, &vote.action, digest, vote.at.unix_micros())
            }))
        }
    }
    let rest = (
        item.workflow.version,
        &item.workflow.digest,
        &item.content_digest,
        item.created_by.role,
        item.created_at.unix_micros(),
        item.updated_at.unix_micros(),
        item.entered_at.unix_micros(),
        item.held,
        item.window.as_ref().map(|window| (window.not_before.unix_micros(), window.not_after.unix_micros())),
        item.lease.as_ref().map(|lease| (&lease.holder, lease.expires_at.unix_micros())),
        Votes(item),
        item.attempts,
        &item.participants,
        &item.executors,
    );
    json.clear();
    serde_json::to_writer(json, &rest)
        .map_err(|error| StoreError::Damaged(format!("an item cannot be written: {error}")))
}

/// As in the first version of the schema, before an item's next move rewrites it: an object that repeats the columns.
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

pub(super) fn to_item(id: ItemId, columns: &Columns<'_>) -> Result<Item> {
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
    let rest: Rest = serde_json::from_str(columns.data).map_err(damaged)?;
    let (workflow_version, workflow_digest, content_digest, role, created_at, updated_at, entered_at, ..) = rest;
    let (.., held, window, lease, votes, attempts, participants, executors) = rest;
    let malformed = |_| StoreError::Damaged(format!("item {id} cannot be read: its creator's name is not valid"));
    let created_by = Actor { actor_id: columns.created_by.parse().map_err(malformed)?, role };
    let time = Time::from_unix_micros;
    let vote = |(actor_id, action, digest, at): (ActorId, Name, Option<ContentDigest>, i64)| {
        let content_digest = digest.unwrap_or_else(|| content_digest.clone());
        Vote { actor_id, action, content_digest, at: time(at) }
    };
    Ok(Item {
        workflow: WorkflowRef { name: columns.workflow.into(), version: workflow_version, digest: workflow_digest },
        title: columns.title.into(),
        payload,
        state: columns.state.into(),
        version: columns.version,
        created_at: time(created_at),
        created_by,
        updated_at: time(updated_at),
        entered_at: time(entered_at),
        held,
        window: window.map(|(from, to)| Window::new(time(from), time(to))),
        lease: lease.map(|(holder, at)| Lease { holder, expires_at: time(at) }),
        votes: votes.into_iter().map(vote).collect(),
        attempts,
        participants: Arc::new(participants),
        executors,
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
            executors: self.executors,
        }
    }
}

/// JSON as it was just written: text, though it is kept as bytes.
pub(super) struct TextBytes<'a>(pub(super) &'a [u8]);

impl ToSql for TextBytes<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

/// A UUID as 16 bytes, whose order is the order of creation.
pub(super) fn to_key(id: &ItemId) -> ItemKey {
    let digits = id.as_str().bytes().filter(|digit| *digit != b'-');
    let value = |digit: u8| u128::from(digit & 0xf) + if digit.is_ascii_digit() { 0 } else { 9 };
    digits.fold(0_u128, |key, digit| key << 4 | value(digit)).to_be_bytes()
}

pub(super) fn from_key(key: &[u8]) -> Result<ItemId> {
    let hex = data_encoding::HEXLOWER.encode(key);
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    let text = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-");
    text.parse().map_err(|_| StoreError::Damaged("an item's id is not a UUID".into()))
}

pub(super) fn role_bits(roles: &[Role]) -> i64 {
    roles.iter().fold(0, |bits, role| bits | role_bit(*role))
}

pub(super) fn role_bit(role: Role) -> i64 {
    match role {
        Role::Initiator => 1,
        Role::Approver => 1 << 1,
        Role::SecurityAdmin => 1 << 2,
        Role::Executor => 1 << 3,
        Role::Auditor => 1 << 4,
    }
}
