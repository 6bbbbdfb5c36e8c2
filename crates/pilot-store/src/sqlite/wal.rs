//! Checks the write-ahead log before SQLite reads it. SQLite reads it up to the first frame that does not match and
//! silently drops the rest. That is right after a power cut in the middle of a commit, and wrong if a bit has flipped
//! in something that was acknowledged.
//!
//! The two can be told apart, because commits are made one after the other, each synced before the next begins. A power
//! cut leaves at most one incomplete commit, the last. So a commit that another one is chained to was complete once; if
//! anything up to its end does not match now, that is damage. Only damage to the very last commit cannot be recognised;
//! the file in `head` covers that.
//!
//! Every start empties the log, so nothing in it is left over from an earlier crash.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::beside::with_suffix;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// The lowest bit gives the byte order in which words are summed.
const MAGIC: u32 = 0x377f_0682;

type Sum = (u32, u32);

/// A frame, as its own header describes it.
struct Frame {
    salts: (u32, u32),
    sum: Sum,
    is_commit: bool,
    /// Its checksum continues that of the previous frame.
    is_chained: bool,
}

pub(super) fn beside(database: &Path) -> PathBuf {
    with_suffix(database, "-wal")
}

/// What is wrong with the log of a database that nobody has open, as text; `None` if SQLite may read it.
pub(super) fn damage(database: &Path) -> std::io::Result<Option<String>> {
    let file = match File::open(beside(database)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    look(&mut BufReader::with_capacity(1 << 20, file))
}

fn look(log: &mut impl Read) -> std::io::Result<Option<String>> {
    let mut header = [0; HEADER_BYTES];
    if !fill(log, &mut header)? {
        return Ok(None);
    }
    let (magic, page_bytes) = (word(&header, 0), word(&header, 8));
    let page_bytes = usize::try_from(page_bytes).unwrap_or(0);
    let page_bytes =
        if page_bytes.is_power_of_two() && (512..=65_536).contains(&page_bytes) { page_bytes } else { 4_096 };
    let is_big_endian = magic & 1 == 1;
    let sum = (word(&header, 24), word(&header, 28));
    let is_sound = magic & !1 == MAGIC && summed((0, 0), header.get(..24).unwrap_or_default(), is_big_endian) == sum;
    // A header that does not match says nothing about the frames, so they are only compared with each other.
    let mut salts = is_sound.then(|| (word(&header, 16), word(&header, 20)));
    let (mut before, mut is_whole) = (sum, is_sound);
    let (mut first_fault, mut commit_before) = ((!is_sound).then_some(0), false);
    let mut frame = vec![0; FRAME_HEADER_BYTES + page_bytes];
    for number in 1_u64.. {
        if !fill(log, &mut frame)? {
            return Ok(None);
        }
        let frame = read(&frame, before, is_big_endian);
        let is_of_this_log = *salts.get_or_insert(frame.salts) == frame.salts;
        let is_chained = is_of_this_log && frame.is_chained;
        is_whole &= is_chained;
        if !is_whole && first_fault.is_none() {
            first_fault = Some(number);
        }
        if let (Some(fault), true, true) = (first_fault, commit_before, is_chained) {
            // The previous frame ends a commit, and the fault is in or before that commit.
            return Ok(Some(in_words(fault, number)));
        }
        // A commit counts only if it ends at or after the fault, and if it certainly is a commit.
        let is_certain = is_chained || !is_on_two_sectors(number, page_bytes);
        commit_before = frame.is_commit && is_of_this_log && first_fault.is_some() && is_certain;
        before = frame.sum;
    }
    Ok(None)
}

/// If a frame's head spans two sectors, a power cut may have left one half from an earlier log, and that half may claim
/// to end a commit.
fn is_on_two_sectors(number: u64, page_bytes: usize) -> bool {
    const SECTOR: u64 = 512;
    let frame_bytes = (FRAME_HEADER_BYTES + page_bytes) as u64;
    let begin = HEADER_BYTES as u64 + (number - 1) * frame_bytes;
    begin / SECTOR != (begin + FRAME_HEADER_BYTES as u64 - 1) / SECTOR
}

fn in_words(fault: u64, number: u64) -> String {
    let place = if fault == 0 { "its header".to_owned() } else { format!("frame {fault}") };
    format!(
        "the write-ahead log is damaged in {place}: later commits follow, up to frame {number} at least, so it was \
         intact before, and opening it would lose all of them"
    )
}

/// Returns whether the buffer could be filled.
fn fill(log: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<bool> {
    match log.read_exact(buffer) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

fn read(frame: &[u8], before: Sum, is_big_endian: bool) -> Frame {
    let (head, page) = frame.split_at_checked(FRAME_HEADER_BYTES).unwrap_or((frame, &[]));
    let sum = (word(head, 16), word(head, 20));
    let summed = summed(summed(before, head.get(..8).unwrap_or_default(), is_big_endian), page, is_big_endian);
    Frame { salts: (word(head, 8), word(head, 12)), sum, is_commit: word(head, 4) != 0, is_chained: summed == sum }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    word.map_or(0, u32::from_be_bytes)
}

/// SQLite's checksum, continued from a previous value.
fn summed((mut first, mut second): Sum, bytes: &[u8], is_big_endian: bool) -> Sum {
    let (pairs, _) = bytes.as_chunks::<8>();
    for [a, b, c, d, e, f, g, h] in pairs {
        let (left, right) = ([*a, *b, *c, *d], [*e, *f, *g, *h]);
        let (left, right) = if is_big_endian {
            (u32::from_be_bytes(left), u32::from_be_bytes(right))
        } else {
            (u32::from_le_bytes(left), u32::from_le_bytes(right))
        };
        first = first.wrapping_add(left).wrapping_add(second);
        second = second.wrapping_add(right).wrapping_add(first);
    }
    (first, second)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 512;
    const SALTS: (u32, u32) = (7, 11);

    /// A log as SQLite writes it, with this number of frames in each commit.
    fn log(commits: &[usize]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [MAGIC, 3_007_000, 512, 0, SALTS.0, SALTS.1] {
            bytes.extend_from_slice(&u32::to_be_bytes(word));
        }
        let mut sum = summed((0, 0), &bytes, false);
        bytes.extend_from_slice(&[sum.0.to_be_bytes(), sum.1.to_be_bytes()].concat());
        for (commit, frames) in commits.iter().enumerate() {
            for frame in 0..*frames {
                let is_last = frame + 1 == *frames;
                let page = [u8::try_from((commit * 16 + frame) % 251).unwrap(); PAGE];
                let head = [1_u32.to_be_bytes(), u32::from(is_last).to_be_bytes()].concat();
                sum = summed(summed(sum, &head, false), &page, false);
                bytes.extend_from_slice(&head);
                for word in [SALTS.0, SALTS.1, sum.0, sum.1] {
                    bytes.extend_from_slice(&word.to_be_bytes());
                }
                bytes.extend_from_slice(&page);
            }
        }
        bytes
    }

    fn frame_at(number: usize) -> usize {
        HEADER_BYTES + number * (FRAME_HEADER_BYTES + PAGE)
    }

    fn is_damaged(bytes: &[u8]) -> bool {
        look(&mut &*bytes).unwrap().is_some()
    }

    #[test]
    fn a_flipped_bit_is_found_wherever_a_commit_follows_the_one_it_is_in() {
        let whole = log(&[2, 1, 3, 2]);
        assert!(!is_damaged(&whole));
        let mut missed = 0;
        for at in 0..frame_at(6) * 8 {
            let mut bytes = whole.clone();
            bytes[at / 8] ^= 1 << (at % 8);
            missed += usize::from(!is_damaged(&bytes));
        }
        // A flip in the last frame header of the last commit but one looks like the end of the log. And some bits of
        // the log's header mean nothing.
        assert!(missed <= (FRAME_HEADER_BYTES + HEADER_BYTES) * 8, "{missed} bits");
    }

    #[test]
    fn a_commit_in_pieces_at_the_end_is_a_power_cut_and_so_is_what_an_earlier_log_left_behind() {
        let whole = log(&[2, 1, 4]);
        for lost in 0..1 << 4 {
            let mut bytes = whole.clone();
            for frame in (0..4).filter(|frame| lost >> frame & 1 == 1) {
                bytes[frame_at(3 + frame)..frame_at(4 + frame)].fill(0);
            }
            assert!(!is_damaged(&bytes), "of the last commit, {lost:04b} are lost");
        }
        // The log was restarted over a longer one, with new salts.
        let (mut newer, older) = (log(&[2]), log(&[2, 1, 3, 2]));
        for word in [16, 20] {
            newer[word] ^= 0x40;
        }
        let sum = summed((0, 0), &newer[..24], false);
        newer[24..32].copy_from_slice(&[sum.0.to_be_bytes(), sum.1.to_be_bytes()].concat());
        newer.extend_from_slice(&older[newer.len()..]);
        assert!(!is_damaged(&newer));
        // Half of a frame header is from an earlier log, which ended a commit there: the first sector was not written,
        // the second was.
        let straddling = (0..64).find(|frame| (frame_at(*frame) + 8).is_multiple_of(512)).unwrap();
        let mut torn = log(&[straddling, 3]);
        torn[frame_at(straddling) + 4..frame_at(straddling) + 8].copy_from_slice(&9_u32.to_be_bytes());
        assert!(!is_damaged(&torn));
        for cut in [0, 5, HEADER_BYTES, frame_at(1) + 3, frame_at(2)] {
            assert!(!is_damaged(&whole[..cut]), "cut at {cut}");
        }
    }
}
