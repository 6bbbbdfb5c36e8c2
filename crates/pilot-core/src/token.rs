//! Clear tokens: the format every token has, and how the program generates a new one.
//!
//! A generated token is `pilot_`, 43 base62 characters for 32 random bytes, and 6 characters of checksum, so that
//! secret scanners (and our own leak guard) can tell it from any other text without knowing it.

use std::ops::Range;

use zeroize::Zeroizing;

use crate::access_token::find_signed;
use crate::certain::Certain as _;
use crate::digest::Digest;
use crate::limits::{ACCESS_TOKEN_BYTES_MAX, TOKEN_BYTES_MAX, TOKEN_BYTES_MIN};
use crate::scan::first;

pub const PREFIX: &[u8] = b"pilot_";
const BODY_CHARS: usize = 43;
const CHECKSUM_CHARS: usize = 6;
pub const GENERATED_CHARS: usize = PREFIX.len() + BODY_CHARS + CHECKSUM_CHARS;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A clear token in the program's memory. It cannot be printed, cloned or serialised, and is wiped when dropped.
pub struct Token(Zeroizing<String>);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "a token is 32 to 256 printable ASCII characters without spaces, or up to 8 KiB if an identity provider signed it"
)]
pub struct MalformedToken;

/// 32 to 256 bytes, each printable ASCII other than space: the specification's limits, checked before anything is
/// hashed.
pub fn is_well_formed(token: &[u8]) -> bool {
    (TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len()) && token.iter().all(u8::is_ascii_graphic)
}

/// The same for a token signed by an identity provider: up to 8 KiB.
pub fn is_well_formed_if_signed(token: &[u8]) -> bool {
    (TOKEN_BYTES_MIN..=ACCESS_TOKEN_BYTES_MAX).contains(&token.len()) && token.iter().all(u8::is_ascii_graphic)
}

impl Token {
    pub fn generate(random: &[u8; 32]) -> Token {
        let mut text = Zeroizing::new(String::with_capacity(GENERATED_CHARS));
        text.push_str("pilot_");
        push_base62(&mut text, random, BODY_CHARS);
        // CRC-32 as in zlib: it protects against accidents, not attacks.
        let sum = crc32fast::hash(text.as_bytes()).to_be_bytes();
        push_base62(&mut text, &sum, CHECKSUM_CHARS);
        Token(text)
    }

    pub fn parse(text: Zeroizing<String>) -> Result<Token, MalformedToken> {
        let bytes = text.as_bytes();
        let is_signed = || is_well_formed_if_signed(bytes) && find_signed(bytes) == Some(0..bytes.len());
        if is_well_formed(bytes) || is_signed() { Ok(Token(text)) } else { Err(MalformedToken) }
    }

    pub fn digest(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }

    /// The value of an `Authorization` header; only for the client side.
    pub fn bearer(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("Bearer {}", self.0.as_str()))
    }

    /// Gives a new token to the person who asked for it. This is the only time anyone sees it.
    pub fn hand_over(self) -> Zeroizing<String> {
        self.0
    }
}

/// The position of a generated token in `text`, from `from` on: prefix, alphabet and checksum all match.
pub fn find_generated(text: &[u8], from: usize) -> Option<Range<usize>> {
    // Most text is settled by this one quick search.
    if !text.contains(&b'_') {
        return None;
    }
    let mut at = from;
    while let Some(found) = find_prefix(text.get(at..)?) {
        let start = at + found;
        let range = start..start + GENERATED_CHARS;
        if text.get(range.clone()).is_some_and(is_generated) {
            return Some(range);
        }
        at = start + 1;
    }
    None
}

fn is_generated(text: &[u8]) -> bool {
    let Some((signed, checksum)) = text.split_at_checked(GENERATED_CHARS - CHECKSUM_CHARS) else { return false };
    // The cheap check first: a text full of prefixes must not cost a checksum for each.
    if !signed.iter().skip(PREFIX.len()).chain(checksum).all(u8::is_ascii_alphanumeric) {
        return false;
    }
    let mut expected = String::with_capacity(CHECKSUM_CHARS);
    push_base62(&mut expected, &crc32fast::hash(signed).to_be_bytes(), CHECKSUM_CHARS);
    checksum == expected.as_bytes()
}

/// Where the next prefix begins. Few characters of a text are the one that it ends with.
fn find_prefix(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = first(text.get(at..)?, |byte| Some(&byte) == PREFIX.last()) {
        at += found + 1;
        if text.get(..at)?.ends_with(PREFIX) {
            return at.checked_sub(PREFIX.len());
        }
    }
    None
}

/// Appends `number` (big-endian) in base 62, padded with zeros to `width`.
fn push_base62(text: &mut String, number: &[u8], width: usize) {
    let mut number = Zeroizing::new(number.to_vec());
    let mut digits = Zeroizing::new(vec![0_u8; width]);
    for digit in digits.iter_mut().rev() {
        let mut remainder = 0_u32;
        for byte in number.iter_mut() {
            let value = remainder << 8 | u32::from(*byte);
            *byte = u8::try_from(value / 62).certain("the remainder before was below 62");
            remainder = value % 62;
        }
        *digit = *BASE62.get(remainder as usize).certain("a remainder is below 62");
    }
    text.extend(digits.iter().map(|digit| char::from(*digit)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_32_to_256_printable_bytes_without_spaces() {
        for (length, legal) in [(0, false), (31, false), (32, true), (256, true), (257, false)] {
            assert_eq!(is_well_formed(&vec![b'x'; length]), legal, "{length} bytes");
        }
        for byte in 0..=u8::MAX {
            let mut token = vec![b'x'; 40];
            token[20] = byte;
            assert_eq!(is_well_formed(&token), (0x21..=0x7E).contains(&byte), "byte {byte:#04x}");
        }
    }

    #[test]
    fn a_generated_token_has_prefix_body_and_checksum() {
        assert_eq!(crc32fast::hash(b"123456789"), 0xCBF4_3926);
        let token = Token::generate(&[0xFF; 32]).hand_over();
        assert_eq!(token.len(), 55);
        assert!(token.starts_with("pilot_"));
        assert!(is_well_formed(token.as_bytes()));
        assert_eq!(
            *Token::generate(&[0; 32]).hand_over(),
            format!("pilot_{}{}", "0".repeat(43), &Token::generate(&[0; 32]).hand_over()[49..])
        );
    }

    #[test]
    fn a_generated_token_is_found_in_any_text_and_a_misprint_is_not() {
        let token = Token::generate(&[7; 32]).hand_over();
        let text = format!("see pilot_ and \"token\":\"{}\",", *token);
        let range = find_generated(text.as_bytes(), 0).unwrap();
        assert_eq!(&text[range], token.as_str());
        let misprint = text.replace(&token[20..22], "zz");
        assert_eq!(find_generated(misprint.as_bytes(), 0), None);
    }
}
