//! SHA-256, which names documents and builds the log's tree.
//!
//! The service hashes every entry twice, and on processors without instructions for it that was a tenth of what a
//! transition cost. The assembly of the library that also does TLS takes two thirds of the time, so programs that link
//! it in any case turn on the feature `assembly`. A verifier does without.

#[cfg(feature = "assembly")]
use assembly::hash;
#[cfg(not(feature = "assembly"))]
use plain::hash;

/// The hash of all parts, one after the other.
pub fn sha256<const N: usize>(parts: [&[u8]; N]) -> [u8; 32] {
    hash(&parts)
}

#[cfg(any(test, not(feature = "assembly")))]
mod plain {
    use sha2::{Digest as _, Sha256};

    pub(super) fn hash(parts: &[&[u8]]) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(part);
        }
        hash.finalize().into()
    }
}

#[cfg(feature = "assembly")]
mod assembly {
    use aws_lc_rs::digest::{Context, Digest, SHA256, digest};

    use crate::certain::Certain as _;

    /// Almost every entry is shorter. Copying this much costs less than hashing in several steps, which allocates.
    const SHORT_BYTES_MAX: usize = 1024;

    pub(super) fn hash(parts: &[&[u8]]) -> [u8; 32] {
        let mut short = [0; SHORT_BYTES_MAX];
        let hash = match parts {
            [whole] => digest(&SHA256, whole),
            parts => match copy(parts, &mut short) {
                Some(whole) => digest(&SHA256, whole),
                None => hash_in_steps(parts),
            },
        };
        hash.as_ref().try_into().certain("a hash has 32 bytes")
    }

    /// All parts in one piece, if there is room for them.
    fn copy<'r>(parts: &[&[u8]], room: &'r mut [u8]) -> Option<&'r [u8]> {
        let mut at = 0;
        for part in parts {
            room.get_mut(at..at + part.len())?.copy_from_slice(part);
            at += part.len();
        }
        room.get(..at)
    }

    fn hash_in_steps(parts: &[&[u8]]) -> Digest {
        let mut context = Context::new(&SHA256);
        for part in parts {
            context.update(part);
        }
        context.finish()
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;

    use super::{plain, sha256};

    #[test]
    fn the_hash_of_abc_is_the_one_in_the_standard() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(HEXLOWER.encode(&sha256([b"abc"])), expected);
        assert_eq!(HEXLOWER.encode(&sha256([b"a", b"", b"bc"])), expected);
    }

    #[test]
    fn both_implementations_agree_at_every_length_and_however_the_text_is_cut() {
        let bytes: Vec<u8> = (0..3_000_u32).map(|number| (number * 131 % 251) as u8).collect();
        for length in (0..300).chain(1_000..1_050).chain([3_000]) {
            let whole = bytes.get(..length).unwrap();
            let expected = plain::hash(&[whole]);
            assert_eq!(sha256([whole]), expected, "{length}");
            for cut in [0, length / 3, length] {
                let (first, second) = whole.split_at(cut);
                assert_eq!(sha256([first, second]), expected, "{length} cut at {cut}");
            }
        }
    }
}
