//! What a SQLite error means: damage, a failed disk, or something temporary.

use pilot_core::limits::QUESTION_DEADLINE;
use rusqlite::ErrorCode;

use crate::StoreError;

pub(super) fn failed(error: &rusqlite::Error) -> StoreError {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    match error.sqlite_error_code() {
        // What was read is not what was written.
        None if matches!(
            error,
            FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..)
        ) =>
        {
            StoreError::Damaged(error.to_string())
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged(error.to_string()),
        Some(ErrorCode::OperationInterrupted) => too_long(),
        Some(ErrorCode::DiskFull) => {
            StoreError::Full("the disk is full; free some space on the disk of the data directory".into())
        }
        Some(ErrorCode::SystemIoFailure) if is_of_the_disk(error) => StoreError::DiskFailed(error.to_string()),
        _ => StoreError::Unavailable(error.to_string()),
    }
}

/// Whether the file itself failed. The index of the write-ahead log does not count: it is shared memory in a file,
/// recreated at every start, and if the disk has no space for it nothing of value is lost.
pub(super) fn is_of_the_disk(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_IOERR_NOMEM, SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE};
    let harmless = [SQLITE_IOERR_NOMEM, SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE];
    !error.sqlite_error().is_some_and(|error| harmless.contains(&error.extended_code))
}

pub(super) fn too_long() -> StoreError {
    let allowed = QUESTION_DEADLINE.as_secs();
    StoreError::Unavailable(format!("this took longer than {allowed} s; ask for less at a time, or try later"))
}
