//! A ledger that no service may open: one that is still being copied into the database, or one that an operator's
//! command has for itself.

use pilot_evidence::merkle::Hash;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::failure::failed;
use super::session::Session;
use crate::archive::Head;
use crate::{Result, StoreError};

/// Exists only while a ledger is being copied into the database, and says which.
pub(super) const CREATE_MARK: &str = "CREATE TABLE pilot_transfer (id smallint PRIMARY KEY CHECK (id = 0), \
     size bigint NOT NULL, root bytea NOT NULL)";
pub(super) const DROP_MARK: &str = "DROP TABLE pilot_transfer";

/// How long a node counts as running after it was last heard of, in microseconds.
const HEARD_WITHIN: i64 = 10_000_000;

/// A size and a root, from the first columns of a row.
pub(super) fn head_of(row: &Row) -> Result<Head> {
    let (size, root): (i64, &[u8]) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
    let size = u64::try_from(size).map_err(|_| StoreError::Damaged(format!("a stored size is {size}")))?;
    let root = root.try_into().map_err(|_| StoreError::Damaged("a stored root is cut".into()))?;
    Ok(Head { size, root: Hash(root) })
}

/// The ledger that is being copied into this database, if one is.
pub(super) async fn unfinished(session: &Session) -> Result<Option<Head>> {
    let row = session.query_opt("SELECT to_regclass('pilot_transfer') IS NOT NULL", &[]).await.map_err(failed)?;
    if row.map(|row| row.try_get(0)).transpose().map_err(failed)? != Some(true) {
        return Ok(None);
    }
    let row = session.query_opt("SELECT size, root FROM pilot_transfer WHERE id = 0", &[]).await.map_err(failed)?;
    let row = row.ok_or_else(|| StoreError::Damaged("the mark of an unfinished copy is empty".into()))?;
    head_of(&row).map(Some)
}

pub(super) async fn refuse_unfinished(session: &Session) -> Result<()> {
    match unfinished(session).await? {
        None => Ok(()),
        Some(head) => Err(StoreError::Refused(format!(
            "a ledger of {} entries is being copied into this database, and the copy is not finished; run the same \
             `pilot store migrate` again to finish it",
            head.size
        ))),
    }
}

/// Locked for as long as an operator's command has the ledger for itself.
pub(super) const HOLD: &str = "SELECT 1 FROM pilot_schema WHERE id = 0 FOR UPDATE";

pub(super) async fn refuse_held(session: &Session) -> Result<()> {
    match session.query("SELECT 1 FROM pilot_schema WHERE id = 0 FOR SHARE NOWAIT", &[]).await {
        Ok(_) => Ok(()),
        Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => Err(StoreError::Refused(
            "an operator's command has this database for itself; wait until it has ended".into(),
        )),
        Err(error) => Err(failed(error)),
    }
}

/// Refused while a service uses the database. One that was killed counts for ten seconds more.
pub(super) async fn refuse_running(session: &Session) -> Result<()> {
    let sql = "SELECT name FROM node WHERE seen > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - $1 \
               ORDER BY name LIMIT 1";
    let Some(row) = session.query_opt(sql, &[&HEARD_WITHIN]).await.map_err(failed)? else { return Ok(()) };
    let name: String = row.try_get(0).map_err(failed)?;
    Err(StoreError::Refused(format!(
        "the node {name} uses this database, or did so less than 10 seconds ago; stop every service first, and try \
         again in 10 seconds"
    )))
}
