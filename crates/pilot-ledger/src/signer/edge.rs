//! The tree at an earlier size.

use pilot_evidence::merkle::Edge;
use pilot_evidence::tile::TILE_WIDTH;
use pilot_store::{Store, StoreError};

/// The tree's right edge at a size, from stored tiles and the few entries after them.
pub async fn edge_at(store: &dyn Store, size: u64) -> Result<Edge, StoreError> {
    let width = TILE_WIDTH as u64;
    let mut levels = Vec::new();
    let (mut level, mut row_size) = (0_u8, size);
    while row_size > 0 {
        let full = row_size / width;
        levels.push(store.row(level, full * width, row_size % width).await?);
        (level, row_size) = (level + 1, full);
    }
    Ok(Edge::new(size, levels))
}
