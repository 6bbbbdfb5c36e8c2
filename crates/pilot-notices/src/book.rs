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
    /// All reminders that were due until then.
    pub(crate) looked: Time,
    /// The last daily summary, by when it was due.
    pub(crate) summary: Time,
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
            Some(book) => book.within(size, now),
            None => Book { generation: 1, next: size, looked_until: now, summarised_at: now, told: BTreeMap::new() },
        }
    }

    /// A ledger that was restored with a loss may be shorter than it was, and a clock that ran ahead may have been put right:
    /// what has not come yet has not been told.
    fn within(self, size: u64, now: Time) -> Book {
        let told = |(place, told): (String, Told)| {
            let Told { before, looked, summary, at } = told;
            let told =
                Told { before: before.min(size), looked: looked.min(now), summary: summary.min(now), at: at.min(now) };
            (place, told)
        };
        Book {
            generation: self.generation.saturating_add(1),
            next: self.next.min(size),
            looked_until: self.looked_until.min(now),
            summarised_at: self.summarised_at.min(now),
            told: self.told.into_iter().map(told).collect(),
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
        let ahead = now.plus(std::time::Duration::from_hours(24));
        let told = Told { before: 9, looked: ahead, summary: ahead, at: ahead };
        let dreamt =
            Book { looked_until: ahead, summarised_at: ahead, told: [("ben".into(), told)].into(), ..book.clone() };
        let awake = Book::taken_over(Some(dreamt), 7, now);
        assert_eq!((awake.looked_until, awake.summarised_at), (now, now));
        assert_eq!(awake.told["ben"], Told { before: 7, looked: now, summary: now, at: now });
        assert_eq!(
            Book::taken_over(Some(book), 3, now).next,
            3,
            "a ledger that lost entries is continued where it ends"
        );
    }
}
