//! A reader of DER, as far as timestamps need it. Anything but the one form that DER allows is refused.

/// One value: its tag, its contents, and all its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Value<'b> {
    pub tag: u8,
    pub contents: &'b [u8],
    pub whole: &'b [u8],
}

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTETS: u8 = 0x04;
pub(super) const NULL: u8 = 0x05;
pub(super) const OID: u8 = 0x06;
pub(super) const TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;
/// Context tags, constructed: `[0]` and so on.
pub(super) const CONTEXT: [u8; 2] = [0xA0, 0xA1];

/// Values one after another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'b>(pub &'b [u8]);

impl<'b> Reader<'b> {
    pub(super) fn next(&mut self) -> Option<Value<'b>> {
        let (tag, rest) = self.0.split_first()?;
        // Tags of several bytes do not occur in what is read here.
        if tag & 0x1F == 0x1F {
            return None;
        }
        let (first, rest) = rest.split_first()?;
        let (length, rest) = if *first < 0x80 {
            (usize::from(*first), rest)
        } else {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7F))?;
            let length = digits
                .iter()
                .try_fold(0_usize, |length, digit| length.checked_mul(256)?.checked_add(usize::from(*digit)))?;
            // The short form where it is enough, and no leading zeros. An indefinite length has no digits.
            if length < 0x80 || digits.first() == Some(&0) {
                return None;
            }
            (length, rest)
        };
        let (contents, rest) = rest.split_at_checked(length)?;
        let (whole, _) = self.0.split_at(self.0.len() - rest.len());
        self.0 = rest;
        Some(Value { tag: *tag, contents, whole })
    }

    /// The next value, which must have this tag.
    pub(super) fn expect(&mut self, tag: u8) -> Option<Value<'b>> {
        self.next().filter(|value| value.tag == tag)
    }

    /// The next value if it has this tag; otherwise nothing is read.
    pub(super) fn optional(&mut self, tag: u8) -> Option<Value<'b>> {
        let mut ahead = *self;
        let value = ahead.expect(tag)?;
        *self = ahead;
        Some(value)
    }

    pub(super) fn is_done(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'b> Value<'b> {
    pub(super) fn inside(&self) -> Reader<'b> {
        Reader(self.contents)
    }

    /// Exactly one value inside, with this tag.
    pub(super) fn only(&self, tag: u8) -> Option<Value<'b>> {
        let mut inside = self.inside();
        inside.expect(tag).filter(|_| inside.is_done())
    }
}

/// A value as bytes.
pub(super) fn write(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let contents = parts.concat();
    let mut bytes = vec![tag];
    match u8::try_from(contents.len()) {
        Ok(short) if short < 0x80 => bytes.push(short),
        _ => {
            let length = contents.len().to_be_bytes();
            let digits = length.iter().skip_while(|digit| **digit == 0).copied().collect::<Vec<_>>();
            bytes.push(0x80 | u8::try_from(digits.len()).unwrap_or(u8::MAX));
            bytes.extend(digits);
        }
    }
    bytes.extend(contents);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_other_forms_are_refused() {
        for length in [0, 1, 127, 128, 255, 256, 70_000] {
            let bytes = write(OCTETS, &[&vec![7; length]]);
            let mut reader = Reader(&bytes);
            assert_eq!(
                reader.next().map(|value| (value.contents.len(), value.whole.len())),
                Some((length, bytes.len()))
            );
            assert!(reader.is_done());
            assert_eq!(Reader(&bytes[..bytes.len() - 1]).next(), None, "{length}, cut off");
        }
        for bytes in
            [&b""[..], b"\x04", b"\x04\x80\0\0", b"\x04\x81\x01a", b"\x04\x82\0\x80", b"\x1F\x01\0", b"\x04\xFF"]
        {
            assert_eq!(Reader(bytes).next(), None, "{bytes:?}");
        }
    }
}
