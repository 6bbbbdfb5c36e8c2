//! The thread that makes the search index. It reads a little at a time, each in a snapshot of its own, so that the
//! write-ahead log can be copied in between.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use pilot_core::limits::{INDEXED_BYTES_MAX, INDEXED_ENTRIES_MAX, SEARCH_EDITED_MAX};
use pilot_evidence::merkle::{Edge, Hash};
use rusqlite::Connection;
use tokio::sync::watch;

use super::candidates::Sealed;
use super::file::{Header, SlabFile, destroy};
use super::shared::{Known, SearchIndex};
use super::slab::Slab;
use crate::sought::searched_texts;
use crate::sqlite::connection::open_reader;
use crate::sqlite::failure::failed;
use crate::sqlite::read::{self, bound, index};
use crate::tree::Tree;
use crate::{Result, StoreError};

/// How many steps SQLite's virtual machine runs between two checks whether the store is being closed.
const STEPS: i32 = 10_000;
/// An item's texts.
const ITEM: &str = "SELECT i.created_entry, i.title, i.created_by, d.data FROM item i \
     LEFT JOIN document d ON d.entry = i.content_entry AND d.kind = 0";

/// Runs the thread until closed or dropped.
pub(in crate::sqlite) struct Indexer {
    index: Arc<SearchIndex>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Indexer {
    fn drop(&mut self) {
        self.close();
    }
}

impl Indexer {
    /// Only who holds the lock of the database may start this, because it writes the file next to it.
    pub(in crate::sqlite) fn start(
        path: &Path,
        index: Arc<SearchIndex>,
        head: watch::Receiver<Arc<Edge>>,
    ) -> Result<Indexer> {
        let (of_thread, path) = (Arc::clone(&index), path.to_owned());
        let run = move || {
            if let Err(error) = make(&path, &of_thread, &head)
                && !of_thread.signal().is_ending()
            {
                of_thread.signal().fail(&error);
            }
            of_thread.signal().rest();
        };
        let spawned = std::thread::Builder::new().name("store-indexer".into()).spawn(run);
        let thread =
            spawned.map_err(|error| StoreError::Unavailable(format!("cannot start the indexing thread: {error}")))?;
        Ok(Indexer { index, thread: Mutex::new(Some(thread)) })
    }

    /// The connection is closed when this returns: the writer's must be the last.
    pub(in crate::sqlite) fn close(&self) {
        self.index.signal().end();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
        // With this the file is closed.
        self.index.set(None);
    }

    pub(in crate::sqlite) fn index(&self) -> &Arc<SearchIndex> {
        &self.index
    }
}

fn make(path: &Path, index: &Arc<SearchIndex>, head: &watch::Receiver<Arc<Edge>>) -> Result<()> {
    let mut connection = open_reader(path)?;
    let watched = Arc::clone(index);
    connection.progress_handler(STEPS, Some(move || watched.signal().is_ending())).map_err(|error| failed(&error))?;
    let mut maker = Maker { connection, path: path.to_owned(), index, head, slabs: 0 };
    maker.load()?;
    loop {
        while !index.signal().is_ending() && maker.index_some()? {
            std::thread::yield_now();
        }
        if !index.signal().wait() {
            return Ok(());
        }
    }
}

struct Maker<'i> {
    connection: Connection,
    path: PathBuf,
    index: &'i SearchIndex,
    head: &'i watch::Receiver<Arc<Edge>>,
    /// How many are in the file.
    slabs: u64,
}

/// An item as it is indexed.
struct Read {
    created_entry: u64,
    texts: Vec<String>,
    /// How much was read for it.
    bytes: usize,
}

impl Maker<'_> {
    /// Begins with what is in the file, if that is whole and of this ledger.
    fn load(&mut self) -> Result<()> {
        let loaded = self.loaded()?;
        if loaded.is_none() && !self.index.signal().is_ending() {
            destroy(&self.path).map_err(|error| self.unwritten(&error))?;
        }
        self.slabs = loaded.as_ref().map_or(0, |known| known.sealed.len() as u64);
        self.index.set(Some(loaded.unwrap_or_else(|| Known::nothing(self.index.geometry))));
        Ok(())
    }

    fn loaded(&self) -> Result<Option<Known>> {
        let opened = SlabFile::open(&self.path, self.index.geometry).map_err(|error| self.unwritten(&error))?;
        let Some((file, Header { slabs, size, root })) = opened else { return Ok(None) };
        let edge = Arc::clone(&self.head.borrow());
        if size > edge.size() || self.root_at(&edge, size)? != root {
            return Ok(None);
        }
        let mut sealed: Vec<Sealed> = Vec::new();
        for number in 0..slabs {
            let slab = file.read_slab(number).map_err(|error| self.unwritten(&error))?;
            let Some(slab) = slab.filter(|_| !self.index.signal().is_ending()) else { return Ok(None) };
            sealed.push(slab.blocks.into());
        }
        let (sealed, file) = (Arc::new(sealed), Some(Arc::new(file)));
        Ok(Some(Known { size, sealed, file, ..Known::nothing(self.index.geometry) }))
    }

    fn root_at(&self, edge: &Edge, size: u64) -> Result<Hash> {
        Ok(Tree::new(read::Stored(&self.connection), edge).edge_at(size)?.root())
    }

    /// Indexes the next entries. False if there are none.
    fn index_some(&mut self) -> Result<bool> {
        let Some(size) = self.index.see(|known| known.size) else { return Ok(false) };
        // Taken before the snapshot, so that the snapshot has all of it.
        let edge = Arc::clone(&self.head.borrow());
        if size >= edge.size() {
            return Ok(false);
        }
        let until = edge.size().min(size + INDEXED_ENTRIES_MAX);
        let snapshot = self.connection.unchecked_transaction().map_err(|error| failed(&error))?;
        let (until, is_full) = self.add_new(size, until)?;
        let edited = self.add_edited(size, until)?;
        drop(snapshot);
        if is_full {
            self.seal(&edge, until)?;
        } else if edited > SEARCH_EDITED_MAX {
            self.take_in_edited()?;
            self.index.change(|known| known.edited.clear());
        }
        self.index.change(|known| known.size = until);
        Ok(true)
    }

    /// Adds the items that these entries created. Returns how far it got, and whether the open slab is full.
    fn add_new(&self, size: u64, until: u64) -> Result<(u64, bool)> {
        let sql = format!("{ITEM} WHERE i.created_entry >= ?1 AND i.created_entry < ?2 ORDER BY i.created_entry");
        let mut statement = self.connection.prepare_cached(&sql).map_err(|error| failed(&error))?;
        let mut rows = statement.query([bound(size), bound(until)]).map_err(|error| failed(&error))?;
        let (mut bytes, mut is_full) = (0, false);
        while let Some(row) = rows.next().map_err(|error| failed(&error))? {
            let item = read_item(row)?;
            self.index.change(|known| {
                known.open.add(item.created_entry, &item.texts);
                is_full = known.open.is_full();
            });
            bytes += item.bytes;
            if is_full || bytes >= INDEXED_BYTES_MAX {
                return Ok((item.created_entry + 1, is_full));
            }
        }
        Ok((until, false))
    }

    /// Adds the texts of items that these entries edited. Returns how many such items are in sealed slabs.
    fn add_edited(&self, size: u64, until: u64) -> Result<usize> {
        let mut edited = 0;
        for created_entry in read::edited(&self.connection, size, until)? {
            // Whatever these entries created was added as it is now.
            let item = if created_entry < size { self.item(created_entry)? } else { None };
            self.index.change(|known| {
                if let Some(item) = item
                    && !known.open.add_again(created_entry, &item.texts)
                {
                    known.edited.insert(created_entry);
                }
                edited = known.edited.len();
            });
        }
        Ok(edited)
    }

    fn item(&self, created_entry: u64) -> Result<Option<Read>> {
        let sql = format!("{ITEM} WHERE i.created_entry = ?1");
        let mut statement = self.connection.prepare_cached(&sql).map_err(|error| failed(&error))?;
        let mut rows = statement.query([bound(created_entry)]).map_err(|error| failed(&error))?;
        rows.next().map_err(|error| failed(&error))?.map(read_item).transpose()
    }

    /// Writes the open slab into the file. Searches use the one in memory until it is there.
    fn seal(&mut self, edge: &Edge, until: u64) -> Result<()> {
        let file = self.file()?;
        if !file.has_room(&self.path) {
            return Err(StoreError::Full("the disk of the data directory is nearly full".into()));
        }
        self.take_in_edited()?;
        let header = Header { slabs: self.slabs + 1, size: until, root: self.root_at(edge, until)? };
        let write =
            |known: &Known| file.write_slab(self.slabs, &known.open).map(|()| known.open.blocks.as_slice().into());
        let Some(written) = self.index.see(write) else { return Ok(()) };
        let blocks: Sealed = written.map_err(|error| self.unwritten(&error))?;
        file.write_header(&header).map_err(|error| self.unwritten(&error))?;
        self.slabs = header.slabs;
        self.index.change(|known| {
            Arc::make_mut(&mut known.sealed).push(blocks);
            known.file = Some(file);
            known.open = Slab::new(self.index.geometry);
            known.edited.clear();
            known.size = until;
        });
        Ok(())
    }

    /// The file for the first slab, or the one that has slabs already.
    fn file(&self) -> Result<Arc<SlabFile>> {
        let file = self.index.see(|known| known.file.clone()).flatten();
        let create = || SlabFile::create(&self.path, self.index.geometry).map(Arc::new);
        file.map_or_else(create, Ok).map_err(|error| self.unwritten(&error))
    }

    /// Adds the texts of edited items to their slabs. They stay candidates of every search until all is written.
    fn take_in_edited(&self) -> Result<()> {
        let by_slab = self.index.see(|known| {
            let mut by_slab = BTreeMap::<usize, Vec<u64>>::new();
            for created_entry in &known.edited {
                let is_before = |slab: &Sealed| slab.last().is_some_and(|block| block.last < *created_entry);
                by_slab.entry(known.sealed.partition_point(is_before)).or_default().push(*created_entry);
            }
            known.file.clone().map(|file| (file, by_slab))
        });
        let Some((file, by_slab)) = by_slab.flatten() else { return Ok(()) };
        for (number, created_entries) in by_slab {
            let slab = file.read_slab(number as u64).map_err(|error| self.unwritten(&error))?;
            let mut slab = slab.ok_or_else(|| StoreError::Unavailable("a slab is not what was written".into()))?;
            for created_entry in created_entries {
                if let Some(item) = self.item(created_entry)? {
                    slab.add_again(created_entry, &item.texts);
                }
            }
            file.write_slab(number as u64, &slab).map_err(|error| self.unwritten(&error))?;
        }
        Ok(())
    }

    fn unwritten(&self, error: &io::Error) -> StoreError {
        StoreError::Unavailable(format!("{}: {error}", super::file::beside(&self.path).display()))
    }
}

fn read_item(row: &rusqlite::Row<'_>) -> Result<Read> {
    let text = |column| row.get_ref(column).and_then(|value| value.as_str().map_err(Into::into));
    let columns = || Ok((index(row, 0)?, text(1)?, text(2)?, row.get_ref(3)?.as_blob_or_null()?));
    let (created_entry, title, created_by, content) = columns().map_err(|error: rusqlite::Error| failed(&error))?;
    let damaged = |error| StoreError::Damaged(format!("the item of entry {created_entry} cannot be read: {error}"));
    let texts = searched_texts(title, created_by, content).map_err(damaged)?;
    let bytes = texts.iter().map(String::len).sum();
    Ok(Read { created_entry, texts, bytes })
}
