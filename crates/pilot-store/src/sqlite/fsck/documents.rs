//! Reads documents in the order of their entries, one page at a time.

use std::collections::VecDeque;

use rusqlite::Connection;

use crate::Result;
use crate::sqlite::failure;

pub(super) type StoredDocument = (u64, i64, Option<Vec<u8>>);

/// Never holds more than one page.
pub(super) struct Documents<'c> {
    connection: &'c Connection,
    page: VecDeque<StoredDocument>,
    /// The key of the last document read.
    after: (i64, i64),
    is_last: bool,
}

impl<'c> Documents<'c> {
    pub(super) fn new(connection: &'c Connection) -> Result<Documents<'c>> {
        let (page, after) = (VecDeque::new(), (i64::MIN, i64::MIN));
        let mut documents = Documents { connection, page, after, is_last: false };
        documents.fill()?;
        Ok(documents)
    }

    fn fill(&mut self) -> Result<()> {
        const PAGE: usize = 256;
        let sql = "SELECT entry, kind, data FROM document WHERE (entry, kind) > (?1, ?2) ORDER BY entry, kind LIMIT ?3";
        let failed = |error: rusqlite::Error| failure::failed(&error);
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
        let mut rows = statement.query((self.after.0, self.after.1, limit)).map_err(failed)?;
        let mut count = 0;
        while let Some(row) = rows.next().map_err(failed)? {
            self.after = (row.get(0).map_err(failed)?, row.get(1).map_err(failed)?);
            let entry = u64::try_from(self.after.0).unwrap_or(u64::MAX);
            self.page.push_back((entry, self.after.1, row.get(2).map_err(failed)?));
            count += 1;
        }
        self.is_last = count < PAGE;
        Ok(())
    }

    /// The documents of this entry, preceded by any that were skipped: those belong to no entry.
    pub(super) fn of(&mut self, entry: u64) -> Result<Vec<(i64, Option<Vec<u8>>)>> {
        let mut found = Vec::new();
        loop {
            match self.page.front() {
                Some((of, _, _)) if *of <= entry => {
                    if let Some((_, kind, data)) = self.page.pop_front() {
                        found.push((kind, data));
                    }
                }
                None if !self.is_last => self.fill()?,
                _ => return Ok(found),
            }
        }
    }

    pub(super) fn rest(mut self) -> Result<Vec<StoredDocument>> {
        while !self.is_last {
            self.fill()?;
        }
        Ok(self.page.into())
    }
}
