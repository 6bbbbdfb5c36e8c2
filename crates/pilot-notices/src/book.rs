//! What has been told, as the store keeps it: enough to leave nothing out after a crash, and to repeat little.

use std::collections::BTreeMap;

use pilot_core::time::Time;
use pilot_ledger::fenced::Fenced;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Book {
    generation: u64,
    /// The first entry that someone may still have to be told about.
    pub(crate) next: u64,
    /// Reminders that were due until then have been told.
    pub(crate) looked_until: Time,
    /// When the last daily summary was due.
    pub(crate) summarised_at: Time,
    /// By place: only those who know more than `next` says, or were told just now.
    #[serde(default)]
    pub(crate) told: BTreeMap<String, Told>,
}

/// What one place has been told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Told {
    /// All entries before this one.
    pub(crate) before: u64,
    pub(crate) at: Time,
}

impl Fenced for Book {
    fn generation(&self) -> u64 {
        self.generation
    }
}

impl Book {
    /// A new one begins with what is new.
    pub(crate) fn taken_over(found: Option<Book>, size: u64, now: Time) -> Book {
        match found {
            // A ledger that was restored with a loss may be shorter than it was.
            Some(book) => Book { generation: book.generation.saturating_add(1), next: book.next.min(size), ..book },
            None => Book { generation: 1, next: size, looked_until: now, summarised_at: now, told: BTreeMap::new() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_book_begins_with_what_is_new_and_an_old_one_where_it_was() {
        let now = Time::from_unix_micros(1_800_000_000_000_000);
        let book = Book::taken_over(None, 7, now);
        assert_eq!((book.generation, book.next, book.looked_until), (1, 7, now));
        let later = Book::taken_over(Some(Book { next: 5, ..book.clone() }), 9, now);
        assert_eq!((later.generation, later.next), (2, 5));
        assert_eq!(
            Book::taken_over(Some(book), 3, now).next,
            3,
            "a ledger that lost entries is continued where it ends"
        );
    }
}
