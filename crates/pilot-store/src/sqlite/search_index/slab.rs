//! A slab: the signatures of consecutive blocks of items, side by side.
//!
//! A block is a few items in order of creation. Its signature has a slot for each gram of their texts, or for several
//! grams at once. A slab holds the same slot of all its blocks in one number, one bit for each block, so that a search
//! reads one number for each gram it looks for.

use super::grams::{Gram, each_slot};

/// The same slot of all blocks of a slab.
pub(super) type Bits = u128;
pub(super) const BITS_BYTES: usize = size_of::<Bits>();

/// How items are divided, and how large signatures are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) struct Geometry {
    pub(in crate::sqlite) block_items: u32,
    /// At most as many as [`Bits`] has bits.
    pub(in crate::sqlite) slab_blocks: u32,
    /// There are `2^slot_bits` slots for grams of three bytes, and as many for those of five.
    pub(in crate::sqlite) slot_bits: u32,
}

impl Geometry {
    /// 8,192 items in a slab of a mebibyte: 128 bytes an item.
    pub(in crate::sqlite) const FULL: Geometry = Geometry { block_items: 64, slab_blocks: Bits::BITS, slot_bits: 15 };

    pub(super) const fn slots(self) -> usize {
        2 << self.slot_bits
    }

    pub(super) const fn slab_blocks(self) -> usize {
        self.slab_blocks as usize
    }

    /// With so many slots set, a signature is still of use. Long contents fill a block before it has all its items; the
    /// index then takes a part of the contents' size, and a search still reads little for nothing.
    const fn fives_max(self) -> u32 {
        1 << self.slot_bits >> 1
    }
}

/// The items created by these entries, both inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) first: u64,
    pub(super) last: u64,
}

pub(super) struct Slab {
    pub(super) geometry: Geometry,
    /// One number for each slot; none before the first item, so that an empty slab takes no memory.
    pub(super) slots: Vec<Bits>,
    pub(super) blocks: Vec<Span>,
    /// What is in the last block.
    items: u32,
    fives: u32,
}

impl Slab {
    pub(super) fn new(geometry: Geometry) -> Slab {
        Slab { geometry, slots: Vec::new(), blocks: Vec::new(), items: 0, fives: 0 }
    }

    /// A full one.
    pub(super) fn of(geometry: Geometry, slots: Vec<Bits>, blocks: Vec<Span>) -> Slab {
        Slab { geometry, slots, blocks, items: geometry.block_items, fives: 0 }
    }

    pub(super) fn is_full(&self) -> bool {
        self.blocks.len() == self.geometry.slab_blocks() && self.is_block_full()
    }

    fn is_block_full(&self) -> bool {
        self.items >= self.geometry.block_items || self.fives >= self.geometry.fives_max()
    }

    /// The next item in order of creation. The slab must not be full.
    pub(super) fn add(&mut self, created_entry: u64, texts: &[String]) {
        if self.slots.is_empty() {
            self.slots = vec![0; self.geometry.slots()];
        }
        if self.blocks.is_empty() || self.is_block_full() {
            self.blocks.push(Span { first: created_entry, last: created_entry });
            (self.items, self.fives) = (0, 0);
        }
        if let Some(block) = self.blocks.last_mut() {
            block.last = created_entry;
        }
        self.items += 1;
        self.fives += self.mark(self.blocks.len() - 1, texts);
    }

    /// Adds the texts of an item that is already in a block. What it had before stays.
    pub(super) fn add_again(&mut self, created_entry: u64, texts: &[String]) -> bool {
        let block = self.blocks.partition_point(|block| block.last < created_entry);
        let is_in = self.blocks.get(block).is_some_and(|block| block.first <= created_entry);
        if is_in {
            self.mark(block, texts);
        }
        is_in
    }

    /// Returns how many slots of grams of five bytes were not set before.
    fn mark(&mut self, block: usize, texts: &[String]) -> u32 {
        let (bit, mut fives) = (1 << block, 0);
        for text in texts {
            each_slot(text, self.geometry.slot_bits, |gram, slot| {
                if let Some(bits) = self.slots.get_mut(slot) {
                    fives += u32::from(gram == Gram::Five && *bits & bit == 0);
                    *bits |= bit;
                }
            });
        }
        fives
    }

    /// The blocks that may have a text with these slots, newest first.
    pub(super) fn having(&self, slots: &[usize]) -> Vec<Span> {
        let bits = slots.iter().filter_map(|slot| self.slots.get(*slot)).fold(Bits::MAX, |bits, slot| bits & slot);
        spans(bits, &self.blocks)
    }
}

/// The blocks whose bits are set, newest first. Blocks that follow each other are one span.
pub(super) fn spans(bits: Bits, blocks: &[Span]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let (mut bits, mut is_next) = (bits, false);
    for (number, block) in blocks.iter().enumerate().rev() {
        let is_set = bits >> number != 0;
        match spans.last_mut() {
            _ if !is_set => {}
            Some(newer) if is_next => newer.first = block.first,
            _ => spans.push(*block),
        }
        bits &= !(Bits::MAX << number);
        is_next = is_set;
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(first: u64, last: u64) -> Span {
        Span { first, last }
    }

    #[test]
    fn blocks_that_follow_each_other_are_one_span_and_the_newest_is_first() {
        let blocks: Vec<_> = (0..5).map(|number| span(10 * number, 10 * number + 3)).collect();
        assert_eq!(spans(0b11011, &blocks), [span(30, 43), span(0, 13)]);
        assert_eq!(spans(0b00100, &blocks), [span(20, 23)]);
        assert_eq!(spans(Bits::MAX, &blocks), [span(0, 43)]);
        assert_eq!(spans(0, &blocks), []);
        let blocks: Vec<_> = (0..128).map(|number| span(number, number)).collect();
        assert_eq!(spans(Bits::MAX, &blocks), [span(0, 127)]);
        assert_eq!(spans(1 << 127 | 1, &blocks), [span(127, 127), span(0, 0)]);
    }

    #[test]
    fn a_block_ends_when_it_has_its_items_or_when_half_of_its_slots_are_set() {
        let mut slab = Slab::new(Geometry { block_items: 3, slab_blocks: 4, slot_bits: 6 });
        for number in 0..4 {
            slab.add(number, &["hay".into()]);
        }
        assert_eq!(slab.blocks, [span(0, 2), span(3, 3)]);
        let long: String = (0..100).map(|number| format!("{number:04}")).collect();
        slab.add(4, std::slice::from_ref(&long));
        slab.add(7, &[long]);
        assert_eq!(slab.blocks, [span(0, 2), span(3, 4), span(7, 7)]);
        assert!(!slab.is_full());
        for number in 8..11 {
            slab.add(number, &["needle".into()]);
        }
        assert!(slab.is_full());
        assert_eq!(slab.blocks.last(), Some(&span(8, 10)));
    }
}
