//! Checkpoints that are kept with the ledger because someone else has dated them: in evidence they date the entries before
//! and after them.

use data_encoding::BASE64;
use pilot_store::{Fact, NoRecord, RangeEnd, Result, Situation, Store, StoreError, Subject, Write};
use serde::{Deserialize, Serialize};

use crate::persisted;

/// Who has dated them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shelf {
    /// Witnesses, by their cosignatures.
    Cosigned,
    /// A timestamping authority.
    Stamped,
}

/// A checkpoint, and the reply of the timestamping authority if it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dated {
    pub note: String,
    pub reply: Option<Vec<u8>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    note: String,
    /// In base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<String>,
}

impl Shelf {
    const fn prefix(self) -> &'static str {
        match self {
            Shelf::Cosigned => "kept-checkpoint/",
            Shelf::Stamped => "timestamp/",
        }
    }

    /// Names sort as sizes do.
    fn name(self, size: u64) -> String {
        format!("{}{size:020}", self.prefix())
    }

    /// Above every name.
    fn end(self) -> String {
        format!("{}:", self.prefix())
    }

    /// Keeps a checkpoint, in place of another of the same size.
    pub async fn keep(self, store: &dyn Store, size: u64, dated: Dated) -> Result<()> {
        let kept = Kept { note: dated.note, reply: dated.reply.map(|reply| BASE64.encode(&reply)) };
        let decide = move |_: &Situation<'_>| {
            Err(NoRecord::Note(vec![Fact { name: self.name(size), value: Some(persisted::to_bytes(&kept)) }]))
        };
        store.settle(Write::new(Subject::Ledger, None, decide)).await.map(|_| ())
    }

    /// The oldest that has this entry.
    pub async fn oldest_with(self, store: &dyn Store, index: u64) -> Result<Option<(u64, Dated)>> {
        let names = self.name(index.saturating_add(1))..self.end();
        Ok(self.read(store.facts_in(names, RangeEnd::Lowest, 1).await?)?.pop())
    }

    /// The newest that does not have this entry.
    pub async fn newest_without(self, store: &dyn Store, index: u64) -> Result<Option<(u64, Dated)>> {
        let names = self.name(1)..self.name(index.saturating_add(1));
        Ok(self.read(store.facts_in(names, RangeEnd::Highest, 1).await?)?.pop())
    }

    /// At most `limit` of those that have more than `size` entries, the smallest first.
    pub async fn after(self, store: &dyn Store, size: u64, limit: usize) -> Result<Vec<(u64, Dated)>> {
        let names = self.name(size.saturating_add(1))..self.end();
        self.read(store.facts_in(names, RangeEnd::Lowest, limit).await?)
    }

    fn read(self, facts: Vec<(String, Vec<u8>)>) -> Result<Vec<(u64, Dated)>> {
        let one = |(name, value): (String, Vec<u8>)| {
            let what = format!("the fact `{name}`");
            let size = name.strip_prefix(self.prefix()).and_then(|size| size.parse().ok());
            let size = size.ok_or_else(|| StoreError::Damaged(format!("{what} is not named by a size")))?;
            let Kept { note, reply } = persisted::from_bytes(&what, &value)?;
            let reply = reply.map(|reply| BASE64.decode(reply.as_bytes())).transpose();
            let reply = reply.map_err(|_| StoreError::Damaged(format!("{what} is not base64")))?;
            Ok((size, Dated { note, reply }))
        };
        facts.into_iter().map(one).collect()
    }
}
