//! The two flights of a commit. The first locks the end of the ledger and reads what the group's writes are about; the
//! second writes what was decided and commits. The statements of a flight go out together.
//!
//! The lock stands in a statement of its own: a statement that both locks and reads would see rows as they were before
//! it waited.

use std::collections::{BTreeMap, BTreeSet};

use pilot_core::certain::Certain as _;
use pilot_core::time::Time;
use pilot_evidence::merkle::{Edge, Hash};
use tokio_postgres::{Error, Row};

use super::desk::Queued;
use super::failure::{self, Failure};
use super::group::{Changes, Ground, Group, KeyRow, Placed};
use super::pipeline::{Unsent, in_order};
use super::read;
use super::session::Session;
use crate::row::{ItemKey, kind_number, role_bits, to_json, to_key};
use crate::{CountOpen, Standing, Subject};

pub(super) const BEGIN: &str = "BEGIN";
pub(super) const LOCK: &str = "SELECT size, root, last_at, epoch, \
     (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM head WHERE id = 0 FOR UPDATE";
/// What others wrote since. A node that is further behind than this catches up by tiles first.
pub(super) const LEAVES: &str = "SELECT idx, leaf FROM entry WHERE idx >= $1 ORDER BY idx LIMIT 16384";
pub(super) const LEAVES_MAX: u64 = 16_384;
const KEYS: &str = "SELECT scope, body, answer, at FROM idempotency WHERE scope = ANY($1)";
/// Of one workflow, or of all if that is null. Each count stops at its limit.
const OPEN_ITEMS: &str = "SELECT creator, asked, (SELECT count(*) FROM (SELECT 1 FROM item \
         WHERE open AND created_by = creator AND (workflow = asked OR asked IS NULL) LIMIT most) AS found) \
     FROM unnest($1::text[], $2::text[], $3::bigint[]) AS wanted (creator, asked, most)";
const FACTS: &str = "SELECT name, value FROM fact WHERE name = ANY($1)";

const ENTRIES: &str = "INSERT INTO entry (idx, item, nth, leaf, data) \
     SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::bytea[], $5::bytea[])";
const DOCUMENTS: &str = "INSERT INTO document (entry, kind, data) \
     SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::bytea[])";
const TILES: &str = "INSERT INTO tile (level, idx, hashes) \
     SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::bytea[])";
const NEW_ITEMS: &str = "INSERT INTO item (id, version, state, title, open, waits_for, due_at, last_entry, \
     content_entry, entries, data, created_entry, workflow, created_by, wakes_at) \
     SELECT *, due_at FROM unnest($1::bytea[], $2::bigint[], $3::text[], $4::text[], $5::boolean[], $6::integer[], \
     $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], $12::bigint[], $13::text[], $14::text[]) \
     AS u (id, version, state, title, open, waits_for, due_at, last_entry, content_entry, entries, data, created_entry, \
     workflow, created_by)";
/// Compare-and-swap: each row must still be the one that was decided on. If one is not, the division fails, and with
/// it the transaction.
const CHANGED_ITEMS: &str = "WITH changed AS (UPDATE item i SET version = u.version, state = u.state, \
     title = u.title, open = u.open, waits_for = u.waits_for, due_at = u.due_at, last_entry = u.last_entry, \
     content_entry = u.content_entry, entries = u.entries, data = u.data, \
     wakes_at = CASE WHEN u.due_at IS NULL THEN NULL ELSE LEAST(i.wakes_at, u.due_at) END \
     FROM unnest($1::bytea[], $2::bigint[], $3::text[], $4::text[], $5::boolean[], $6::integer[], $7::bigint[], \
     $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], $12::bigint[]) \
     AS u (id, version, state, title, open, waits_for, due_at, last_entry, content_entry, entries, data, before) \
     WHERE i.id = u.id AND i.last_entry = u.before RETURNING 1) \
     SELECT 1 / (count(*) = cardinality($1::bytea[]))::integer FROM changed";
/// Replaces only a key that is older than promised.
const REMEMBER: &str = "INSERT INTO idempotency (scope, body, answer, at) \
     SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[]) \
     ON CONFLICT (scope) DO UPDATE SET body = excluded.body, answer = excluded.answer, at = excluded.at";
const NOTE: &str = "INSERT INTO fact (name, value) SELECT * FROM unnest($1::text[], $2::bytea[]) \
     ON CONFLICT (name) DO UPDATE SET value = excluded.value";
const FORGET: &str = "DELETE FROM fact WHERE name = ANY($1)";
const HEAD: &str = "WITH changed AS (UPDATE head SET size = $1, root = $2, last_at = $3, epoch = $5 \
     WHERE id = 0 AND size = $4 RETURNING 1) SELECT 1 / (count(*) = 1)::integer FROM changed";

/// Proves by its commit that what was read before is durable.
pub(super) const BEAT: &str = "UPDATE node SET beat = beat + 1 WHERE id = $1";

/// Every statement that a writer sends, to prepare when it connects.
pub(super) const STATEMENTS: &[&str] = &[
    LOCK,
    LEAVES,
    KEYS,
    OPEN_ITEMS,
    FACTS,
    ENTRIES,
    DOCUMENTS,
    TILES,
    NEW_ITEMS,
    CHANGED_ITEMS,
    REMEMBER,
    NOTE,
    FORGET,
    HEAD,
    read::PLACED,
    BEAT,
];

/// A group has at most this many writes, any of which may end an item and so make room for another.
const MORE_IN_GROUP: i64 = 512;
const COUNTED_OF_WORKFLOW: i64 = 1 + MORE_IN_GROUP;

fn counted_in_all(max: u32) -> i64 {
    i64::from(max) + MORE_IN_GROUP
}

/// What the writes of a group are about.
#[derive(Default)]
pub(super) struct Wanted {
    items: Vec<ItemKey>,
    scopes: Vec<[u8; 32]>,
    facts: Vec<String>,
    creators: Vec<String>,
    /// For each of them, of which workflow; all if there is none.
    workflows: Vec<Option<String>>,
    /// For each of them, where counting stops.
    most: Vec<i64>,
}

impl Wanted {
    pub(super) fn of(group: &[Queued]) -> Wanted {
        let (mut items, mut scopes, mut facts, mut counts) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        for Queued { write, .. } in group {
            scopes.extend(write.key.map(|key| key.scope));
            facts.extend(write.reads.iter().cloned());
            match &write.subject {
                Subject::Item(id) | Subject::CountedItem(id) => drop(items.insert(to_key(id))),
                Subject::NewItem { count_open: Some(CountOpen { creator, workflow, max }) } => {
                    let creator = creator.as_str();
                    counts.insert((creator.to_owned(), Some(workflow.clone())), COUNTED_OF_WORKFLOW);
                    if let Some(max) = max {
                        counts.insert((creator.to_owned(), None), counted_in_all(*max));
                    }
                }
                Subject::Ledger | Subject::NewItem { count_open: None } => {}
            }
        }
        let most = counts.values().copied().collect();
        let (creators, workflows) = counts.into_keys().unzip();
        let (items, scopes) = (items.into_iter().collect(), scopes.into_iter().collect());
        Wanted { items, scopes, facts: facts.into_iter().collect(), creators, workflows, most }
    }
}

/// The answer to one statement.
type Answered = Result<Vec<Row>, Error>;

/// What is read for a group of writes.
struct Questions<'w> {
    wanted: &'w Wanted,
    items: Vec<&'w [u8]>,
    scopes: Vec<&'w [u8]>,
}

impl<'w> Questions<'w> {
    fn of(wanted: &'w Wanted) -> Questions<'w> {
        let items = wanted.items.iter().map(|key| &key[..]).collect();
        let scopes = wanted.scopes.iter().map(|scope| &scope[..]).collect();
        Questions { wanted, items, scopes }
    }

    /// Only what is needed, but each in its place: items, keys, facts, counts.
    fn unsent<'q>(&'q self, session: &'q Session) -> [Unsent<'q, Answered>; 4] {
        let Questions { wanted, items, scopes } = self;
        let nothing = || -> Unsent<'q, Answered> { Box::pin(async { Ok(Vec::new()) }) };
        [
            if items.is_empty() {
                nothing()
            } else {
                Box::pin(async move { session.query(read::PLACED, &[items]).await })
            },
            if scopes.is_empty() { nothing() } else { Box::pin(async move { session.query(KEYS, &[scopes]).await }) },
            if wanted.facts.is_empty() {
                nothing()
            } else {
                Box::pin(async move { session.query(FACTS, &[&wanted.facts]).await })
            },
            if wanted.creators.is_empty() {
                nothing()
            } else {
                Box::pin(async move {
                    session.query(OPEN_ITEMS, &[&wanted.creators, &wanted.workflows, &wanted.most]).await
                })
            },
        ]
    }
}

/// Locks the end of the ledger, and reads. `known` is the tree as this node knows it.
pub(super) async fn lock_and_read(session: &Session, wanted: &Wanted, known: &Edge) -> Result<Ground, Failure> {
    let (known_size, questions) = (number(known.size()), Questions::of(wanted));
    let mut unsent: Vec<Unsent<'_, Answered>> = vec![
        Box::pin(async { session.run(BEGIN).await.map(|()| Vec::new()) }),
        Box::pin(async { session.query(LOCK, &[]).await }),
        Box::pin(async { session.query(LEAVES, &[&known_size]).await }),
    ];
    unsent.extend(questions.unsent(session));
    let [_, head, leaves, answers @ ..] = answered::<7>(unsent).await?;
    let head = head.first().map(Head::read).transpose().map_err(|error| failure::of_statement(&error))?;
    let head = head.ok_or_else(|| Failure::Damaged("the head of the ledger is missing".into()))?;
    let edge = grown(known.clone(), &leaves, &head)?;
    let mut ground = Ground::new(edge, head.last_at, head.epoch);
    add_to(&mut ground, &answers)?;
    Ok(ground)
}

/// Reads for writes that have come while the lock was waited for.
pub(super) async fn read_more(session: &Session, wanted: &Wanted, ground: &mut Ground) -> Result<(), Failure> {
    let questions = Questions::of(wanted);
    let answers = answered::<4>(questions.unsent(session).into()).await?;
    add_to(ground, &answers)
}

async fn answered<const N: usize>(unsent: Vec<Unsent<'_, Answered>>) -> Result<[Vec<Row>; N], Failure> {
    let answers = in_order(unsent).await.into_iter().collect::<Result<Vec<_>, _>>();
    let answers = answers.map_err(|error| failure::of_statement(&error))?;
    let less = |_| Failure::Damaged("the database answers less than it was asked".into());
    <[Vec<Row>; N]>::try_from(answers).map_err(less)
}

fn add_to(ground: &mut Ground, [items, keys, facts, counts]: &[Vec<Row>; 4]) -> Result<(), Failure> {
    let malformed = |error: Error| failure::of_statement(&error);
    for row in items {
        let (key, placed) = placed(row)?;
        ground.items.insert(key, placed);
    }
    for row in keys {
        let (scope, key) = key_row(row).map_err(malformed)?;
        ground.keys.insert(scope, key);
    }
    for row in facts {
        ground.facts.insert(row.try_get(0).map_err(malformed)?, row.try_get(1).map_err(malformed)?);
    }
    for row in counts {
        let whose = (row.try_get(0).map_err(malformed)?, row.try_get(1).map_err(malformed)?);
        let count: i64 = row.try_get(2).map_err(malformed)?;
        ground.open_items.insert(whose, usize::try_from(count).unwrap_or(usize::MAX));
    }
    Ok(())
}

/// The row that every write locks.
pub(super) struct Head {
    pub(super) size: u64,
    pub(super) root: Hash,
    pub(super) last_at: Time,
    /// The entry that adopted the configuration in force.
    pub(super) epoch: u64,
    /// The database's time.
    pub(super) time: Time,
}

impl Head {
    pub(super) fn read(row: &Row) -> Result<Head, Error> {
        let size: i64 = row.try_get(0)?;
        let root: &[u8] = row.try_get(1)?;
        Ok(Head {
            // A negative size is larger than any tree, and so never the one that is expected.
            size: u64::try_from(size).unwrap_or(u64::MAX),
            root: root.try_into().map_or(Hash([0; 32]), Hash),
            last_at: Time::from_unix_micros(row.try_get(2)?),
            epoch: u64::try_from(row.try_get::<_, i64>(3)?).unwrap_or(u64::MAX),
            time: Time::from_unix_micros(row.try_get(4)?),
        })
    }
}

/// The tree with what was written since, which must be the one that the head stands for.
pub(super) fn grown(mut edge: Edge, leaves: &[Row], head: &Head) -> Result<Edge, Failure> {
    if head.size < edge.size() {
        return Err(Failure::Damaged(format!(
            "the database has {} entries, but {} were acknowledged: it has lost its end, as after a failover to a \
             server that was behind, or a restore",
            head.size,
            edge.size()
        )));
    }
    if head.size - edge.size() > LEAVES_MAX {
        return Err(Failure::Transient("this node is catching up with the ledger".into()));
    }
    let mut full = Vec::new();
    for row in leaves {
        if edge.size() == head.size {
            break;
        }
        let (index, leaf) = leaf(row).map_err(|error| failure::of_statement(&error))?;
        let leaf = leaf.filter(|_| index == number(edge.size()));
        let leaf = leaf.ok_or_else(|| Failure::Damaged(format!("entry {} is missing", edge.size())))?;
        edge.push(leaf, &mut full);
        full.clear();
    }
    if edge.size() != head.size || edge.root() != head.root {
        return Err(Failure::Damaged("the entries do not match the head stored with them".into()));
    }
    Ok(edge)
}

fn leaf(row: &Row) -> Result<(i64, Option<Hash>), Error> {
    let leaf: &[u8] = row.try_get(1)?;
    Ok((row.try_get(0)?, leaf.try_into().map(Hash).ok()))
}

fn placed(row: &Row) -> Result<(ItemKey, Placed), Failure> {
    let placed = read::placed(row).map_err(|error| match error {
        crate::StoreError::Damaged(what) => Failure::Damaged(what),
        other => Failure::Transient(other.to_string()),
    })?;
    Ok((to_key(&placed.standing.item.id), placed))
}

fn key_row(row: &Row) -> Result<([u8; 32], KeyRow), Error> {
    let (scope, body): (&[u8], &[u8]) = (row.try_get(0)?, row.try_get(1)?);
    // A key of another length matches nothing.
    let array = |bytes: &[u8]| bytes.try_into().unwrap_or([0; 32]);
    Ok((array(scope), KeyRow { body: array(body), answer: row.try_get(2)?, at: row.try_get(3)? }))
}

/// Why the second flight failed, and whether the group may be recorded nevertheless.
pub(super) enum Landing {
    Committed,
    Failed(Failure),
}

/// Writes the changes and commits. Whether the commit was clean is for the session's warnings to say.
pub(super) async fn write_and_commit(session: &Session, group: &Group, size_before: u64, node_id: &str) -> Landing {
    let Group { ground, changes } = group;
    let columns = match Columns::of(ground, changes) {
        Ok(columns) => columns,
        Err(failure) => return Landing::Failed(failure),
    };
    let answers = columns.send(session, ground, number(size_before), node_id).await;
    let Some((commit, statements)) = answers.split_last() else { return Landing::Committed };
    if let Some(error) = statements.iter().find_map(|answer| answer.as_ref().err()) {
        return Landing::Failed(in_second_flight(error));
    }
    match commit {
        Ok(()) => Landing::Committed,
        Err(error) => Landing::Failed(Failure::Unknown(failure::describe(error))),
    }
}

/// The commit went out right behind the statement. Only an answer of the server that leaves the connection usable says
/// for certain that it became a rollback.
pub(super) fn in_second_flight(error: &Error) -> Failure {
    let class = error.code().map(|state| state.code().get(..2).unwrap_or_default().to_owned());
    match class.as_deref() {
        None | Some("57" | "08" | "XX") => Failure::Unknown(failure::describe(error)),
        Some(_) => failure::of_statement(error),
    }
}

type Bytes<'c> = Vec<&'c [u8]>;
/// Index, item, number within the item, leaf, entry.
type EntryColumns<'c> = (Vec<i64>, Vec<Option<&'c [u8]>>, Vec<Option<i64>>, Bytes<'c>, Bytes<'c>);
/// Scope, body, answer, time.
type KeyColumns<'c> = (Bytes<'c>, Bytes<'c>, Bytes<'c>, Vec<i64>);

/// The changes by column, as `unnest` takes them.
struct Columns<'c> {
    entries: EntryColumns<'c>,
    documents: (Vec<i64>, Vec<i16>, Vec<&'c [u8]>),
    tiles: (Vec<i16>, Vec<i64>, Vec<Vec<u8>>),
    new_items: Items<'c>,
    changed_items: Items<'c>,
    keys: KeyColumns<'c>,
    facts: (Vec<&'c str>, Vec<&'c [u8]>),
    forgotten: Vec<&'c str>,
}

#[derive(Default)]
struct Items<'c> {
    ids: Vec<&'c [u8]>,
    versions: Vec<i64>,
    states: Vec<&'c str>,
    titles: Vec<&'c str>,
    open: Vec<bool>,
    waits_for: Vec<i32>,
    due_at: Vec<Option<i64>>,
    last_entries: Vec<i64>,
    content_entries: Vec<i64>,
    entries: Vec<i64>,
    data: Vec<String>,
    /// The entry that created the item, for a new one; for the others, the newest entry before the group.
    anchors: Vec<i64>,
    workflows: Vec<&'c str>,
    creators: Vec<&'c str>,
}

impl<'c> Items<'c> {
    fn add(&mut self, key: &'c ItemKey, placed: &'c Placed, anchor: u64) -> Result<(), Failure> {
        let Standing { item, is_open, waits_for, due_at } = &placed.standing;
        let mut json = Vec::new();
        to_json(item, &mut json).map_err(|error| Failure::Damaged(error.to_string()))?;
        let json = String::from_utf8(json).map_err(|error| Failure::Damaged(error.to_string()))?;
        self.ids.push(key);
        self.versions.push(number(item.version));
        self.states.push(&item.state);
        self.titles.push(&item.title);
        self.open.push(*is_open);
        self.waits_for.push(i32::try_from(role_bits(waits_for)).certain("there are five roles"));
        self.due_at.push(due_at.map(Time::unix_micros));
        self.last_entries.push(number(placed.last_entry));
        self.content_entries.push(number(placed.content_entry));
        self.entries.push(number(placed.entries));
        self.data.push(json);
        self.anchors.push(number(anchor));
        self.workflows.push(&item.workflow.name);
        self.creators.push(item.created_by.actor_id.as_str());
        Ok(())
    }
}

type Answer = Result<(), Error>;

impl<'c> Columns<'c> {
    fn of(ground: &'c Ground, changes: &'c Changes) -> Result<Columns<'c>, Failure> {
        let mut columns = Columns {
            entries: Default::default(),
            documents: Default::default(),
            tiles: Default::default(),
            new_items: Items::default(),
            changed_items: Items::default(),
            keys: Default::default(),
            facts: Default::default(),
            forgotten: Vec::new(),
        };
        for entry in &changes.entries {
            columns.entries.0.push(number(entry.index));
            columns.entries.1.push(entry.item.as_ref().map(|(key, _)| &key[..]));
            columns.entries.2.push(entry.item.map(|(_, nth)| number(nth)));
            columns.entries.3.push(&entry.leaf.0);
            columns.entries.4.push(&entry.bytes);
        }
        for (entry, kind, bytes) in &changes.documents {
            columns.documents.0.push(number(*entry));
            columns.documents.1.push(i16::try_from(kind_number(*kind)).certain("there are four kinds"));
            columns.documents.2.push(bytes);
        }
        for tile in &changes.tiles {
            columns.tiles.0.push(i16::from(tile.level));
            columns.tiles.1.push(number(tile.index));
            columns.tiles.2.push(tile.to_bytes());
        }
        for (key, before) in &changes.items {
            let gone = || Failure::Damaged("an item that was changed is gone".into());
            let placed = ground.items.get(key).ok_or_else(gone)?;
            match before {
                None => columns.new_items.add(key, placed, placed.created_entry)?,
                Some(before) => columns.changed_items.add(key, placed, *before)?,
            }
        }
        for (scope, key) in &changes.keys {
            columns.keys.0.push(scope);
            columns.keys.1.push(&key.body);
            columns.keys.2.push(&key.answer);
            columns.keys.3.push(key.at);
        }
        for (name, value) in &changes.facts {
            match value {
                Some(value) => {
                    columns.facts.0.push(name);
                    columns.facts.1.push(value);
                }
                None => columns.forgotten.push(name),
            }
        }
        Ok(columns)
    }

    /// The last answer is that of the commit.
    async fn send(&self, session: &Session, ground: &Ground, size_before: i64, node_id: &str) -> Vec<Answer> {
        let (size, root) = (number(ground.edge.size()), ground.edge.root());
        let (root, last_at, epoch) = (&root.0[..], ground.last_at.unix_micros(), number(ground.epoch));
        let mut unsent: Vec<Unsent<'_, Answer>> = Vec::new();
        let (entries, documents, tiles, keys) = (&self.entries, &self.documents, &self.tiles, &self.keys);
        if !entries.0.is_empty() {
            unsent.push(Box::pin(async move {
                let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
                    [&entries.0, &entries.1, &entries.2, &entries.3, &entries.4];
                session.execute(ENTRIES, &values).await.map(drop)
            }));
        }
        if !documents.0.is_empty() {
            unsent.push(Box::pin(async move {
                session.execute(DOCUMENTS, &[&documents.0, &documents.1, &documents.2]).await.map(drop)
            }));
        }
        if !tiles.0.is_empty() {
            unsent
                .push(Box::pin(async move { session.execute(TILES, &[&tiles.0, &tiles.1, &tiles.2]).await.map(drop) }));
        }
        if !self.new_items.ids.is_empty() {
            unsent.push(Box::pin(self.send_new_items(session)));
        }
        if !self.changed_items.ids.is_empty() {
            unsent.push(Box::pin(self.send_changed_items(session)));
        }
        if !keys.0.is_empty() {
            unsent.push(Box::pin(async move {
                session.execute(REMEMBER, &[&keys.0, &keys.1, &keys.2, &keys.3]).await.map(drop)
            }));
        }
        if !self.facts.0.is_empty() {
            unsent
                .push(Box::pin(async move { session.execute(NOTE, &[&self.facts.0, &self.facts.1]).await.map(drop) }));
        }
        if !self.forgotten.is_empty() {
            unsent.push(Box::pin(async move { session.execute(FORGET, &[&self.forgotten]).await.map(drop) }));
        }
        if entries.0.is_empty() {
            // A commit waits for the standbys only if there is something to write.
            unsent.push(Box::pin(async move { session.execute(BEAT, &[&node_id]).await.map(drop) }));
        } else {
            unsent.push(Box::pin(async move {
                session.query(HEAD, &[&size, &root, &last_at, &size_before, &epoch]).await.map(drop)
            }));
        }
        unsent.push(Box::pin(session.run("COMMIT")));
        in_order(unsent).await
    }

    async fn send_new_items(&self, session: &Session) -> Answer {
        let items = &self.new_items;
        session
            .execute(
                NEW_ITEMS,
                &[
                    &items.ids,
                    &items.versions,
                    &items.states,
                    &items.titles,
                    &items.open,
                    &items.waits_for,
                    &items.due_at,
                    &items.last_entries,
                    &items.content_entries,
                    &items.entries,
                    &items.data,
                    &items.anchors,
                    &items.workflows,
                    &items.creators,
                ],
            )
            .await
            .map(drop)
    }

    async fn send_changed_items(&self, session: &Session) -> Answer {
        let items = &self.changed_items;
        session
            .query(
                CHANGED_ITEMS,
                &[
                    &items.ids,
                    &items.versions,
                    &items.states,
                    &items.titles,
                    &items.open,
                    &items.waits_for,
                    &items.due_at,
                    &items.last_entries,
                    &items.content_entries,
                    &items.entries,
                    &items.data,
                    &items.anchors,
                ],
            )
            .await
            .map(drop)
    }
}

pub(super) fn number(value: u64) -> i64 {
    i64::try_from(value).certain("a ledger has fewer than 2^63 entries")
}
