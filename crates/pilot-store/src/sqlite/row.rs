//! How an item is laid out in its row: small columns to find it by, and JSON for the rest, without the payload.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pilot_core::actor::{Actor, ActorId};
use pilot_core::document::ContentDigest;
use pilot_core::item::{Item, ItemId, Lease, Vote, Window, WorkflowRef};
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::Name;
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Result, StoreError};

#[derive(Serialize, Deserialize)]
struct Row<'a> {
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
    window: Cow<'a, Option<Window>>,
    lease: Cow<'a, Option<Lease>>,
    votes: Cow<'a, [Vote]>,
    attempts: u32,
    participants: Cow<'a, BTreeMap<ActorId, Role>>,
    executors: Cow<'a, BTreeSet<ActorId>>,
}

/// Into `json`, whose room is used again for the next item.
pub(super) fn to_json(item: &Item, json: &mut Vec<u8>) -> Result<()> {
    let row = Row {
        workflow: Cow::Borrowed(&item.workflow),
        title: Cow::Borrowed(&item.title),
        state: Cow::Borrowed(&item.state),
        version: item.version,
        content_digest: Cow::Borrowed(&item.content_digest),
        created_at: item.created_at,
        created_by: Cow::Borrowed(&item.created_by),
        updated_at: item.updated_at,
        entered_at: item.entered_at,
        held: item.held,
        window: Cow::Borrowed(&item.window),
        lease: Cow::Borrowed(&item.lease),
        votes: Cow::Borrowed(&item.votes),
        attempts: item.attempts,
        participants: Cow::Borrowed(&item.participants),
        executors: Cow::Borrowed(&item.executors),
    };
    json.clear();
    serde_json::to_writer(json, &row)
        .map_err(|error| StoreError::Damaged(format!("an item cannot be written: {error}")))
}

/// JSON as it was just written: text, though it is kept as bytes.
pub(super) struct TextBytes<'a>(pub(super) &'a [u8]);

impl ToSql for TextBytes<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

/// `content` is the item's content document; without it, after an erasure, the payload is empty.
pub(super) fn from_json(id: ItemId, row: &str, content: Option<&[u8]>) -> Result<Item> {
    #[derive(Deserialize)]
    struct Content {
        payload: Value,
    }
    let damaged = |error: serde_json::Error| StoreError::Damaged(format!("item {id} cannot be read: {error}"));
    let row: Row<'_> = serde_json::from_str(row).map_err(damaged)?;
    let payload = match content {
        Some(bytes) => serde_json::from_slice::<Content>(bytes).map_err(damaged)?.payload,
        None => Value::Object(serde_json::Map::new()),
    };
    Ok(Item {
        workflow: row.workflow.into_owned(),
        title: row.title.into_owned(),
        payload: Arc::new(payload),
        state: row.state.into_owned(),
        version: row.version,
        content_digest: row.content_digest.into_owned(),
        created_at: row.created_at,
        created_by: row.created_by.into_owned(),
        updated_at: row.updated_at,
        entered_at: row.entered_at,
        held: row.held,
        window: row.window.into_owned(),
        lease: row.lease.into_owned(),
        votes: row.votes.into_owned(),
        attempts: row.attempts,
        participants: row.participants.into_owned(),
        executors: row.executors.into_owned(),
        id,
    })
}

/// A UUID as 16 bytes, whose order is the order of creation.
pub(super) fn to_key(id: &ItemId) -> [u8; 16] {
    let mut key = [0; 16];
    for (place, digit) in id.as_str().bytes().filter(u8::is_ascii_hexdigit).enumerate() {
        let value = if digit.is_ascii_digit() { digit - b'0' } else { digit.to_ascii_lowercase() - b'a' + 10 };
        if let Some(byte) = key.get_mut(place / 2) {
            *byte = *byte << 4 | value;
        }
    }
    key
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
    1 << Role::ALL.iter().position(|known| *known == role).unwrap_or(0)
}
