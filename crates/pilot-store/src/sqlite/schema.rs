//! The tables: as this program creates them, and as older versions did.

/// The schema version this program writes. A file with a higher one belongs to a newer program.
pub(super) const SCHEMA_VERSION: i64 = 7;
/// Up to version 4 the tables are the same. Version 1 has more in an item's JSON; the item's next move rewrites its row.
/// Version 2 has the register of credentials in one fact, which the next start splits. Version 3 has no form number in
/// an item's list, and stores whole answers with idempotency keys. Version 4 does not say which entry created an item.
/// Version 5 lacks an index. Version 6 has items in the order of their ids, and large rows in tables WITHOUT ROWID.
pub(super) const OLDEST_SCHEMA_VERSION: i64 = 1;
/// From this version on, an item's row has the entry that created it.
pub(super) const CREATED_ENTRY_SINCE: i64 = 5;
/// From this version on, there is an index of each creator's open items.
const CREATOR_OPEN_SINCE: i64 = 6;
/// From this version on, rows are in the order in which they were written.
const WRITTEN_ORDER_SINCE: i64 = 7;

/// The tables that are the same in all versions.
macro_rules! common {
    () => {
        include_str!("../schema/sqlite.sql")
    };
}

pub(super) const SCHEMA: &str =
    concat!(common!(), include_str!("../schema/document.sql"), include_str!("../schema/item.sql"));
const SCHEMA_6: &str = concat!(
    common!(),
    include_str!("../schema/document_6.sql"),
    include_str!("../schema/item_5.sql"),
    include_str!("../schema/item_6.sql")
);
const SCHEMA_5: &str =
    concat!(common!(), include_str!("../schema/document_6.sql"), include_str!("../schema/item_5.sql"));
const SCHEMA_4: &str =
    concat!(common!(), include_str!("../schema/document_6.sql"), include_str!("../schema/item_4.sql"));
/// Marks the file as ours ("PILT").
pub(super) const APPLICATION_ID: i64 = 0x5049_4c54;

/// The tables of a file with this version.
pub(super) fn of_version(version: i64) -> &'static str {
    match version {
        ..CREATED_ENTRY_SINCE => SCHEMA_4,
        CREATED_ENTRY_SINCE..CREATOR_OPEN_SINCE => SCHEMA_5,
        CREATOR_OPEN_SINCE..WRITTEN_ORDER_SINCE => SCHEMA_6,
        WRITTEN_ORDER_SINCE.. => SCHEMA,
    }
}
