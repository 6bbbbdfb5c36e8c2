//! Ids of items: UUIDv7 (RFC 9562), each greater than the previous one, so that new rows are stored next to each other.
//! Nothing reads an order from them: an id is drawn before its creation is decided, and lists go by the ledger.

use std::sync::atomic::{AtomicU64, Ordering};

use pilot_core::item::{ItemId, MalformedItemId};
use pilot_core::time::Time;

/// Bits of the counter between the milliseconds and the random rest.
const COUNTER_BITS: u32 = 12;

/// The milliseconds of the last id, followed by the counter. If the counter runs out within a millisecond, the next
/// millisecond is used early.
#[derive(Default)]
pub struct Ids(AtomicU64);

impl Ids {
    /// The counter replaces the first two random bytes.
    pub fn next(&self, now: Time, mut random: [u8; 10]) -> Result<ItemId, MalformedItemId> {
        let millis = u64::try_from(now.unix_micros() / 1000).unwrap_or(0);
        let place = self.take_place(millis << COUNTER_BITS);
        let [.., high, low] = (place & ((1 << COUNTER_BITS) - 1)).to_be_bytes();
        let [first, second, ..] = &mut random;
        (*first, *second) = (high, low);
        let id = uuid::Builder::from_unix_timestamp_millis(place >> COUNTER_BITS, &random).into_uuid();
        id.hyphenated().to_string().parse()
    }

    /// The first place of this millisecond, or the one after the last taken.
    fn take_place(&self, first: u64) -> u64 {
        let mut last = self.0.load(Ordering::Relaxed);
        loop {
            let place = first.max(last.saturating_add(1));
            match self.0.compare_exchange_weak(last, place, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return place,
                Err(other) => last = other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use expect_test::expect;

    use super::*;
    use pilot_setup::random;

    fn at(text: &str) -> Time {
        text.parse().unwrap()
    }

    #[test]
    fn an_id_is_a_uuid_of_version_7_with_the_time_a_counter_and_a_random_rest() {
        let (ids, now) = (Ids::default(), at("2026-11-15T09:30:00.123456Z"));
        let drawn = [(now, 0), (now, 0xff), (at("2026-11-15T09:30:00.122Z"), 0x0f), (at("2026-11-15T09:30:01Z"), 0)];
        let drawn = drawn.map(|(now, byte)| ids.next(now, [byte; 10]).unwrap().to_string());
        expect![[r#"
            01a1de8a-ca3b-7000-8000-000000000000
            01a1de8a-ca3b-7001-bfff-ffffffffffff
            01a1de8a-ca3b-7002-8f0f-0f0f0f0f0f0f
            01a1de8a-cda8-7000-8000-000000000000"#]]
        .assert_eq(&drawn.join("\n"));
    }

    #[test]
    fn ids_are_distinct_and_each_thread_gets_them_in_order_also_when_time_stands_still() {
        const EACH: usize = 5_000;
        let (ids, now) = (Ids::default(), at("2026-11-15T09:30:00Z"));
        let draw =
            || (0..EACH).map(|_| ids.next(now, random::bytes().unwrap()).unwrap().to_string()).collect::<Vec<_>>();
        let of_threads: Vec<Vec<String>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(draw)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for ids in &of_threads {
            assert!(ids.is_sorted(), "one after the other");
        }
        let distinct: BTreeSet<_> = of_threads.into_iter().flatten().map(|id| id[..18].to_owned()).collect();
        assert_eq!(distinct.len(), 4 * EACH, "already by time and counter");
    }

    #[test]
    fn a_time_before_1970_or_at_the_end_of_all_time_still_gives_ids() {
        let ids = Ids::default();
        let first = ids.next(Time::from_unix_micros(i64::MIN), [0; 10]).unwrap();
        let last = ids.next(Time::from_unix_micros(i64::MAX), [0; 10]).unwrap();
        assert!(first < last);
    }
}
