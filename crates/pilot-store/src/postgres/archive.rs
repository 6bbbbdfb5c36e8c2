//! The shared store as operators have it: a database on a server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilot_core::item::ItemId;
use pilot_evidence::merkle::Hash;

use super::address::{Access, Address};
use super::hold::Held;
use super::session::Session;
use super::snapshot::{connect, connect_to_any, head_row, wait_until_durable};
use super::staged::StagedDatabase;
use super::{Identity, Postgres, erase, examine, failure, opening, read, reserved, runtime, tiles};
use crate::archive::{Archive, Head, Now, Progress, Report, Staged};
use crate::{Result, Store, StoreError, transfer};

/// A ledger in a PostgreSQL database.
pub struct LedgerDatabase {
    access: Access,
    /// Where copies are made that are needed only for a while. They are as private as the ledger, and as large.
    scratch: PathBuf,
}

/// What to do when a database is to be replaced, which this program does not do.
const NOT_EMPTY: &str = "the database is not empty, and a restore does not replace what is there; restore it with the \
     database's own tools (Barman, pgBackRest, a snapshot), or create an empty database, point store.url at it, and \
     restore into that";

impl LedgerDatabase {
    pub fn at(access: Access, scratch: impl Into<PathBuf>) -> LedgerDatabase {
        LedgerDatabase { access, scratch: scratch.into() }
    }

    /// Runs one piece of work on a connection of its own.
    fn ask<T>(&self, work: impl AsyncFnOnce(&Session) -> Result<T>) -> Result<T> {
        runtime()?.block_on(async { work(&connect(&self.access).await?).await })
    }

    /// Whether nothing is in the database that a service or an operator put there.
    fn is_empty(&self) -> Result<bool> {
        runtime()?.block_on(async {
            let session = connect_to_any(&self.access).await?;
            if reserved::unfinished(&session).await?.is_some() {
                return Ok(false);
            }
            Ok(!opening::has_tables(&session).await? || head_row(&session).await?.head.size == 0)
        })
    }
}

impl Archive for LedgerDatabase {
    fn place(&self) -> String {
        // An address that cannot be read is not repeated: it may have a password in it.
        Address::parse(&self.access).map_or_else(|_| "store.url".into(), |address| address.place())
    }

    /// A database that cannot be asked counts as one that is there: the next question says why.
    fn exists(&self) -> bool {
        !self.is_empty().unwrap_or(false)
    }

    fn examine(&self, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
        examine::examine(&self.access, &self.scratch, progress)
    }

    fn copy(&self, to: &Path) -> Result<()> {
        transfer::to_file(&self.access, to, &mut |_| ()).map(drop)
    }

    fn acknowledged(&self) -> Result<Option<Head>> {
        self.ask(async |session| {
            let head = head_row(session).await?.head;
            wait_until_durable(session).await?;
            Ok(Some(head))
        })
    }

    fn root_at(&self, size: u64) -> Result<Option<Hash>> {
        self.ask(async |session| {
            let entries = head_row(session).await?.head.size;
            if entries < size {
                return Ok(None);
            }
            let edge = opening::load_edge(session, entries).await?;
            tiles::with_tree(session, &edge, |mut tree| tree.edge_at(size)).await.map(|then| Some(then.root()))
        })
    }

    fn fact(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.ask(async |session| read::fact(session, name).await)
    }

    fn facts(&self, beginning: &str) -> Result<Vec<(String, Vec<u8>)>> {
        self.ask(async |session| read::facts(session, beginning).await)
    }

    fn erasable(&self, id: &ItemId) -> Result<u64> {
        self.ask(async |session| erase::erasable(session, id).await)
    }

    fn erase(&self, id: &ItemId) -> Result<u64> {
        self.ask(async |session| erase::erase(session, id).await)
    }

    fn open(&self, now: Now) -> Result<Arc<dyn Store>> {
        let identity = Identity { name: "operator".into(), build: env!("CARGO_PKG_VERSION").into() };
        Ok(Arc::new(Postgres::open(&self.access, identity, now, Arc::new(|_| {}))?))
    }

    fn hold(&self) -> Result<Box<dyn Send>> {
        Ok(Box::new(Held::take(self.access.clone())?))
    }

    fn check_replaceable(&self) -> Result<()> {
        if self.is_empty()? { Ok(()) } else { Err(StoreError::Refused(format!("{}: {NOT_EMPTY}", self.place()))) }
    }

    fn stage(&self, from: &dyn Archive) -> Result<Box<dyn Staged>> {
        self.check_replaceable()?;
        Ok(Box::new(StagedDatabase::copy_of(from, self.access.clone(), &self.scratch)?))
    }

    fn engine(&self) -> String {
        let version = runtime().and_then(|runtime| {
            runtime.block_on(async {
                let session = connect_to_any(&self.access).await?;
                let row = session.query_opt("SELECT current_setting('server_version')", &[]).await;
                let version: Option<String> =
                    row.and_then(|row| row.map(|row| row.try_get(0)).transpose()).map_err(failure::failed)?;
                Ok(version.unwrap_or_default())
            })
        });
        match version {
            // Packagers add their own version after the server's.
            Ok(version) => format!("PostgreSQL {}", version.split(' ').next().unwrap_or_default()),
            Err(error) => format!("PostgreSQL ({error})"),
        }
    }
}
