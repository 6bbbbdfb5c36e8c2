//! Parts of texts, and the slots of a signature that they set.
//!
//! Every three and every five consecutive bytes of a text in lower case are a gram. If one text contains another, it has
//! all of the other's grams. Five bytes tell texts apart in which every three bytes occur, such as digests.

use pilot_core::certain::Certain as _;
use pilot_core::limits::SEARCH_GRAMS_MAX;

/// Spreads neighbouring numbers: 2^64 divided by the golden ratio.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
const OF_THREE: u64 = (1 << 24) - 1;
const OF_FIVE: u64 = (1 << 40) - 1;
/// Most of what a search looks up are grams of five bytes: fewer texts have them by chance.
const FIVES_MAX: usize = SEARCH_GRAMS_MAX * 5 / 8;

/// The slots of a text's grams. Those of three bytes are in the first half of a signature, the others in the second, each
/// with `2^slot_bits` slots.
pub(super) fn each_slot(text: &str, slot_bits: u32, mut each: impl FnMut(Gram, usize)) {
    let slot = |gram: u64| {
        let slot = gram.wrapping_mul(FACTOR) >> (u64::BITS - slot_bits);
        usize::try_from(slot).certain("a slot has far fewer bits than an address")
    };
    let mut bytes = 0_u64;
    for (count, byte) in (1..).zip(text.bytes()) {
        bytes = bytes << 8 | u64::from(byte);
        if count >= 3_usize {
            each(Gram::Three, slot(bytes & OF_THREE));
        }
        if count >= 5 {
            each(Gram::Five, slot(bytes & OF_FIVE) | 1 << slot_bits);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gram {
    Three,
    Five,
}

/// The slots to look up for a searched text in lower case: a bounded number, taken evenly from all of it. `None` if it is
/// shorter than a gram.
pub(super) fn slots_of(text: &str, slot_bits: u32) -> Option<Vec<usize>> {
    let (mut threes, mut fives) = (Vec::new(), Vec::new());
    each_slot(text, slot_bits, |gram, slot| match gram {
        Gram::Three => threes.push(slot),
        Gram::Five => fives.push(slot),
    });
    let mut slots = evenly(&fives, FIVES_MAX);
    slots.extend(evenly(&threes, SEARCH_GRAMS_MAX - slots.len()));
    (!slots.is_empty()).then_some(slots)
}

fn evenly(slots: &[usize], most: usize) -> Vec<usize> {
    let count = slots.len().min(most);
    (0..count).filter_map(|number| slots.get(number * slots.len() / count).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<usize> {
        let mut slots = Vec::new();
        each_slot(text, 15, |_, slot| slots.push(slot));
        slots
    }

    #[test]
    fn what_contains_a_text_has_all_of_its_grams_and_all_are_within_the_signature() {
        let whole = "der ärger mit größe 4711 und ein digest 00ff17ab";
        let slots = all(whole);
        assert!(slots.iter().all(|slot| *slot < 2 << 15));
        let starts: Vec<_> = whole.char_indices().map(|(at, _)| at).collect();
        for start in &starts {
            for end in starts.iter().filter(|end| *end > start) {
                let part = &whole[*start..*end];
                assert!(all(part).iter().all(|slot| slots.contains(slot)), "{part}");
                match slots_of(part, 15) {
                    None => assert!(part.len() < 3, "{part}"),
                    Some(found) => assert!(found.iter().all(|slot| slots.contains(slot)), "{part}"),
                }
            }
        }
    }

    #[test]
    fn however_long_a_text_is_a_bounded_number_of_its_grams_is_looked_up_and_they_are_from_all_of_it() {
        let text: String = (0..1_000).map(|number| format!("{number:04} ")).collect();
        let (all, slots) = (all(&text), slots_of(&text, 15).unwrap());
        assert_eq!(slots.len(), SEARCH_GRAMS_MAX);
        let is_in = |slots: &[usize], part: &[usize]| slots.iter().any(|slot| part.contains(slot));
        for part in all.chunks(all.len().div_ceil(5)) {
            assert!(is_in(&slots, part));
        }
        assert_eq!(slots_of("abcd", 15).unwrap().len(), 2);
        assert_eq!(slots_of("abcdefg", 15).unwrap().len(), 3 + 5);
        assert_eq!(slots_of("\u{e4}", 15), None, "one letter, two bytes");
    }
}
