//! The ledger as it is at one moment, read table by table while nodes may be writing.

use pilot_core::time::Time;

use super::address::{Access, Address};
use super::failure::{self, failed};
use super::native::{natives, read};
use super::opening;
use super::reserved::{self, head_of};
use super::session::{Session, Values};
use crate::archive::Head;
use crate::tables::{ENTRY, Kind, Row, Table};
use crate::{Result, StoreError};

/// The session may rest between two pages for as long as the other side needs to write them.
const BEGIN: &str =
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0";

/// A clean commit proves that everything read before it is durable: what a backup has, no failover takes back.
const BARRIER: &str = "UPDATE head SET epoch = epoch WHERE id = 0";

/// The row at the end of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadRow {
    pub(crate) head: Head,
    pub(crate) last_at: Time,
    pub(crate) epoch: i64,
}

pub(crate) struct Snapshot {
    pub(super) session: Session,
}

/// A connection to a ledger that is all there.
pub(super) async fn connect(access: &Access) -> Result<Session> {
    let session = connect_to_any(access).await?;
    reserved::refuse_unfinished(&session).await?;
    Ok(session)
}

/// Whether the database can be reached and accepts us. Nothing is read or changed.
pub async fn reach(access: &Access) -> Result<()> {
    connect_to_any(access).await.map(drop)
}

/// A connection, whatever is in the database.
pub(super) async fn connect_to_any(access: &Access) -> Result<Session> {
    let address = Address::parse(access)?;
    Session::open(&address).await.map_err(|error| {
        let cause = failure::describe(&error);
        StoreError::Unavailable(format!("{}: cannot be reached: {cause}", address.place()))
    })
}

pub(super) async fn head_row(session: &Session) -> Result<HeadRow> {
    let sql = "SELECT size, root, last_at, epoch FROM head WHERE id = 0";
    let row = session.query_opt(sql, &[]).await.map_err(failed)?;
    let row = row.ok_or_else(|| StoreError::Damaged("the head of the ledger is missing".into()))?;
    let last_at = Time::from_unix_micros(row.try_get(2).map_err(failed)?);
    Ok(HeadRow { head: head_of(&row)?, last_at, epoch: row.try_get(3).map_err(failed)? })
}

/// Returns once everything that was read before is durable.
pub(super) async fn wait_until_durable(session: &Session) -> Result<()> {
    session.take_warning();
    session.execute(BARRIER, &[]).await.map_err(failed)?;
    if session.take_warning() {
        let what = "PostgreSQL warned at a commit, so its standbys may lack what it has";
        return Err(StoreError::Unavailable(format!("{what}; try again")));
    }
    Ok(())
}

impl Snapshot {
    pub(crate) async fn open(access: &Access) -> Result<Snapshot> {
        let session = connect(access).await?;
        if !opening::has_tables(&session).await? {
            return Err(StoreError::Refused("the database has no ledger in it".into()));
        }
        session.run(BEGIN).await.map_err(failed)?;
        // The first query of the transaction takes the snapshot.
        session.query("SELECT 1 FROM pilot_schema", &[]).await.map_err(failed)?;
        Ok(Snapshot { session })
    }

    /// Returns once no failover can take back anything that is in the snapshot.
    pub(crate) async fn wait_until_durable(&self, access: &Access) -> Result<()> {
        wait_until_durable(&connect(access).await?).await
    }

    pub(crate) async fn head_row(&self) -> Result<HeadRow> {
        head_row(&self.session).await
    }

    pub(crate) async fn count(&self, table: &Table) -> Result<u64> {
        let sql = format!("SELECT count(*) FROM {}", table.name);
        let row = self.session.query_opt(&sql, &[]).await.map_err(failed)?;
        let count: i64 = row.map_or(Ok(0), |row| row.try_get(0)).map_err(failed)?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// The rows after a key, in order. An entry has one value more: the entry before it about the same item.
    pub(crate) async fn page(&self, table: &Table, after: Option<&Row>) -> Result<Vec<Row>> {
        let key = table.key_list("t.", "");
        let names: Vec<_> = table.columns.iter().map(|(name, _)| format!("t.{name}")).collect();
        let mut names = names.join(", ");
        let mut kinds: Vec<_> = table.columns.iter().map(|(_, kind)| *kind).collect();
        let mut from = format!("{} t", table.name);
        if table.is(&ENTRY) {
            names.push_str(", p.idx");
            from.push_str(" LEFT JOIN entry p ON p.item = t.item AND p.nth = t.nth - 1");
            kinds.push(Kind::Big);
        }
        let values = after.map(|after| natives(after.clone(), table.key_columns())).transpose()?.unwrap_or_default();
        let marks: Vec<_> = (1..=values.len()).map(|number| format!("${number}")).collect();
        let after_key =
            if values.is_empty() { String::new() } else { format!("WHERE ({key}) > ({})", marks.join(", ")) };
        let sql = format!("SELECT {names} FROM {from} {after_key} ORDER BY {key} LIMIT {}", table.page);
        let values: Vec<_> = values.iter().map(super::native::Native::to_sql).collect();
        let values: &Values<'_> = &values;
        let rows = self.session.query(&sql, values).await.map_err(failed)?;
        rows.iter()
            .map(|row| kinds.iter().enumerate().map(|(column, kind)| read(row, column, *kind)).collect())
            .collect()
    }
}
