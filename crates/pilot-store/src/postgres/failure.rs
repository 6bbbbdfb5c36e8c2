//! What an error of PostgreSQL means for the write or the query it ended.

use std::borrow::Borrow;

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::StoreError;

/// Why a group of writes was not acknowledged.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nothing was recorded; the same again may succeed.
    Transient(String),
    /// Nothing was recorded, and the same group would fail again: one of its writes does not fit the database.
    Faulty {
        cause: String,
        /// It would contradict what is stored.
        contradicts: bool,
    },
    /// The commit was sent, and its answer never came.
    Unknown(String),
    /// Another configuration is in force than this node's.
    Superseded(String),
    /// What is stored contradicts itself.
    Damaged(String),
}

impl Failure {
    pub(super) fn into_cause(self) -> String {
        match self {
            Failure::Transient(cause)
            | Failure::Faulty { cause, .. }
            | Failure::Unknown(cause)
            | Failure::Superseded(cause)
            | Failure::Damaged(cause) => cause,
        }
    }
}

/// What a statement's error means. Nothing is recorded as long as the commit was not sent.
pub(super) fn of_statement(error: &Error) -> Failure {
    let text = describe(error);
    let Some(state) = error.code() else {
        // The connection is gone, or the answer is not what the statement returns.
        return if error.is_closed() || is_of_the_connection(error) {
            Failure::Transient(text)
        } else {
            Failure::Damaged(text)
        };
    };
    if *state == SqlState::DIVISION_BY_ZERO {
        // How our statements say that they did not find the rows that were decided on.
        return Failure::Damaged("a stored row is not the one that was decided on".into());
    }
    match state.code().get(..2) {
        Some("22") => Failure::Faulty { cause: text, contradicts: false },
        Some("23") => Failure::Faulty { cause: text, contradicts: true },
        // Data corrupted, index corrupted.
        Some("XX") if *state != SqlState::INTERNAL_ERROR => Failure::Damaged(text),
        _ => Failure::Transient(text),
    }
}

fn is_of_the_connection(error: &Error) -> bool {
    use std::error::Error as _;
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<std::io::Error>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// For queries, which may simply be asked again.
pub(super) fn of_query(error: &Error) -> StoreError {
    if error.code() == Some(&SqlState::QUERY_CANCELED) {
        return too_long();
    }
    match of_statement(error) {
        Failure::Damaged(text) => StoreError::Damaged(text),
        other => StoreError::Unavailable(other.into_cause()),
    }
}

/// The same, for `map_err`.
pub(super) fn failed<E: Borrow<Error>>(error: E) -> StoreError {
    of_query(error.borrow())
}

pub(super) fn too_long() -> StoreError {
    let allowed = pilot_core::limits::QUESTION_DEADLINE.as_secs();
    StoreError::Unavailable(format!("this took longer than {allowed} s; ask for less at a time, or try later"))
}

/// With its cause and the server's hint, on one line. The server's own text may quote values, so only its message and
/// code are used.
pub(super) fn describe(error: &Error) -> String {
    use std::error::Error as _;
    match error.as_db_error() {
        Some(of_server) => format!("PostgreSQL: {} ({})", of_server.message(), of_server.code().code()),
        None => match error.source() {
            Some(cause) => format!("PostgreSQL: {error}: {cause}"),
            None => format!("PostgreSQL: {error}"),
        },
    }
}
