//! What the transparency log adds to recording a transition, for `bench transitions`: the leaf is hashed and added to
//! the tree, full tiles are encoded; the signer hashes it again into a tree of its own, and signs its root twice a second.
//!
//! `log_cost ENTRIES PER_SECOND` prints `nanos_per_entry N`, the least of several rounds. Storing tiles and reading
//! entries back are not in it.
#![allow(clippy::print_stdout, reason = "the benchmark reads the figure from standard output")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::merkle::{Edge, Hash};
use pilot_evidence::note::NoteKey;

const ROUNDS: usize = 7;
/// The sizes of what the service writes for an approval and for taking it back.
const ENTRIES: [&[u8]; 2] = [&[b'e'; 401], &[b'e'; 493]];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [entries, per_second] = arguments.as_slice() else {
        return Err("usage: log_cost ENTRIES PER_SECOND".into());
    };
    let (entries, per_second): (u32, u32) = (entries.parse()?, per_second.parse()?);
    let between_signatures = (per_second / 2).max(1);
    let key = NoteKey::generate("log.example", &[7; 32])?;
    let nanos = (0..ROUNDS).map(|_| round(entries, between_signatures, &key)).fold(f64::INFINITY, f64::min);
    println!("nanos_per_entry {:.0}", nanos / f64::from(entries));
    Ok(())
}

/// Nanoseconds for all entries.
fn round(entries: u32, between_signatures: u32, key: &NoteKey) -> f64 {
    let begun = Instant::now();
    let (mut stored, mut signed) = (Edge::new(0, Vec::new()), Edge::new(0, Vec::new()));
    let mut full = Vec::new();
    for (number, entry) in (0..entries).zip(ENTRIES.iter().cycle()) {
        stored.push(Hash::of_leaf(black_box(entry)), &mut full);
        signed.push(Hash::of_leaf(black_box(entry)), &mut Vec::new());
        for tile in full.drain(..) {
            black_box(tile.to_bytes());
        }
        if number % between_signatures == 0 {
            let checkpoint = Checkpoint { origin: "log.example".into(), size: signed.size(), root: signed.root() };
            black_box(checkpoint.sign(key));
        }
    }
    black_box(stored.root());
    begun.elapsed().as_secs_f64() * 1e9
}
