//! Writes bundles, most of them forged, each with our verdict on it, for another verifier to compare with its own:
//! `cargo run --workspace --example forged_bundles COUNT SEED`. The stream is a line of JSON, then the bundle, each after
//! its length in four bytes.
#![allow(clippy::unwrap_used, reason = "a test's helper stops at the first surprise")]

use std::io::{BufWriter, Write as _};

use pilot_evidence::sample::cases::{Case, line};

fn main() {
    let mut numbers = std::env::args().skip(1).map(|argument| argument.parse::<u64>().unwrap());
    let (count, first) = (numbers.next().unwrap(), numbers.next().unwrap());
    let mut output = BufWriter::new(std::io::stdout().lock());
    for seed in first..first + count {
        let mut state = seed;
        // SplitMix64: neighbouring seeds give unlike choices.
        let case = Case::make(&mut |end| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(end).unwrap()).unwrap()
        });
        for piece in [format!("{{\"seed\":{seed},{}", &line(&case)[1..]).as_bytes(), &case.bundle] {
            output.write_all(&u32::try_from(piece.len()).unwrap().to_be_bytes()).unwrap();
            output.write_all(piece).unwrap();
        }
    }
    output.flush().unwrap();
}
