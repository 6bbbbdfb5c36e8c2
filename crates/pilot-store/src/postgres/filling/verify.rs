//! Reads back what was copied: the tree over the entries as PostgreSQL has them must be the source's.

use pilot_evidence::merkle::{Edge, Hash};
use pilot_evidence::tile::Tile;

use super::{Filling, source_damaged};
use crate::archive::{Head, Progress};
use crate::postgres::failure::failed;
use crate::postgres::read::bound;
use crate::tables::Table;
use crate::{Result, StoreError};

/// How many entries are in memory at a time.
const PAGE: u64 = 2_048;

impl Filling {
    /// Hashes every entry again, and compares hashes, tiles and root.
    pub(crate) async fn verify(&self, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        let (mut edge, size, mut tiles) = (Edge::default(), self.source.size, 0);
        while edge.size() < size {
            let full = self.hash_page(&mut edge).await?;
            self.compare_tiles(&full).await?;
            tiles += full.len() as u64;
            progress(Progress { step: "verification", done: edge.size(), of: size });
        }
        if self.count_rows("tile").await? != tiles {
            return Err(source_damaged("the tree has tiles without entries below them"));
        }
        let found = Head { size: self.count_rows("entry").await?, root: edge.root() };
        if found == self.source {
            return Ok(());
        }
        Err(StoreError::Damaged(format!(
            "the copy is not the ledger: it has {} entries with the root {}, and the ledger has {} with {}",
            found.size,
            found.root.to_base64(),
            size,
            self.source.root.to_base64()
        )))
    }

    /// Every row of the table must have arrived.
    pub(crate) async fn expect_rows(&self, table: &Table, expected: u64) -> Result<()> {
        let found = self.count_rows(table.name).await?;
        if found == expected {
            return Ok(());
        }
        let what = format!("the copy has {found} {}, and the ledger has {expected}", table.step);
        Err(StoreError::Damaged(format!("{what}; create an empty database and begin again")))
    }

    async fn count_rows(&self, table: &str) -> Result<u64> {
        let sql = format!("SELECT count(*) FROM {table}");
        let row = self.session.query_opt(&sql, &[]).await.map_err(failed)?;
        let count: i64 = row.map_or(Ok(0), |row| row.try_get(0)).map_err(failed)?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Pushes the next entries; returns the tiles that became full.
    async fn hash_page(&self, edge: &mut Edge) -> Result<Vec<Tile>> {
        let sql = "SELECT idx, leaf, data FROM entry WHERE idx >= $1 ORDER BY idx LIMIT $2";
        let from = edge.size();
        let rows = self.session.query(sql, &[&bound(from), &bound(PAGE)]).await.map_err(failed)?;
        let mut full = Vec::new();
        for (row, expected) in rows.iter().zip(from..) {
            let (index, leaf): (i64, &[u8]) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
            let hash = Hash::of_leaf(row.try_get(2).map_err(failed)?);
            if index != bound(expected) || leaf != hash.0 {
                return Err(StoreError::Damaged(format!("entry {expected} did not arrive as it was")));
            }
            edge.push(hash, &mut full);
        }
        if rows.is_empty() {
            return Err(StoreError::Damaged(format!("entry {from} did not arrive")));
        }
        Ok(full)
    }

    async fn compare_tiles(&self, full: &[Tile]) -> Result<()> {
        let sql = "SELECT t.hashes FROM unnest($1::smallint[], $2::bigint[]) WITH ORDINALITY AS w (level, idx, place) \
                   LEFT JOIN tile t ON t.level = w.level AND t.idx = w.idx ORDER BY w.place";
        let (levels, indices): (Vec<_>, Vec<_>) =
            full.iter().map(|tile| (i16::from(tile.level), bound(tile.index))).unzip();
        let rows = self.session.query(sql, &[&levels, &indices]).await.map_err(failed)?;
        for (row, tile) in rows.iter().zip(full) {
            let found: Option<&[u8]> = row.try_get(0).map_err(failed)?;
            if found != Some(&tile.to_bytes()) {
                let what = format!("tile {}/{} does not follow from the entries", tile.level, tile.index);
                return Err(source_damaged(&what));
            }
        }
        Ok(())
    }
}
