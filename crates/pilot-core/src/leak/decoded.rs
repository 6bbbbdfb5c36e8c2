//! What a run means once escapes and encodings are undone.

use std::borrow::Cow;

use percent_encoding::percent_decode;

/// `run` with backslash escapes undone, once and twice, since debug output inside a JSON string is escaped twice; and
/// with percent-encoding undone, once and twice. Variants that change nothing are left out.
pub(super) fn readings(run: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    twice(run, |text| text.contains(&b'\\').then(|| without_escapes(text))).chain(twice(run, percent_decoded))
}

fn twice(run: &[u8], undo: fn(&[u8]) -> Option<Vec<u8>>) -> impl Iterator<Item = Vec<u8>> {
    std::iter::successors(undo(run), move |text| undo(text)).take(2)
}

fn without_escapes(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        plain.push(if *byte == b'\\' { *bytes.next().unwrap_or(byte) } else { *byte });
    }
    plain
}

/// `None` if nothing is encoded.
pub(super) fn percent_decoded(text: &[u8]) -> Option<Vec<u8>> {
    if !text.contains(&b'%') {
        return None;
    }
    match Cow::from(percent_decode(text)) {
        Cow::Borrowed(_) => None,
        Cow::Owned(decoded) => Some(decoded),
    }
}
