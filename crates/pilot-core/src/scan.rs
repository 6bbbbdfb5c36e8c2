//! Finds bytes in long texts.

/// Enough for the compiler to look at all of them with a few instructions.
const TOGETHER: usize = 16;

/// Where the first byte is that is wanted. Whole pieces without one are skipped: an entry is one long run of plain
/// characters, and looking at each of them was a twentieth of what an export cost.
pub(crate) fn first(text: &[u8], is_wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let (pieces, _) = text.as_chunks::<TOGETHER>();
    let has_none = |piece: &&[u8; TOGETHER]| !piece.iter().fold(false, |found, byte| found | is_wanted(*byte));
    let skipped = pieces.iter().take_while(has_none).count() * TOGETHER;
    let found = text.get(skipped..)?.iter().position(|byte| is_wanted(*byte));
    found.map(|found| skipped + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_is_found_wherever_it_is() {
        for length in 0..70 {
            assert_eq!(first(&vec![b'a'; length], |byte| byte == b'x'), None, "{length}");
            for at in 0..length {
                let mut text = vec![b'a'; length];
                text[at] = b'x';
                text[length - 1] = b'x';
                assert_eq!(first(&text, |byte| byte == b'x'), Some(at), "{at} of {length}");
            }
        }
    }
}
