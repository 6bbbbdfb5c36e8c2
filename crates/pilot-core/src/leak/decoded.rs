//! What a run means once escapes and encodings are undone.

/// `run` with backslash escapes undone, once and twice, since a debug rendering inside of a JSON string escapes two
/// times; and with percent-encoding undone, once and twice. Those that change nothing are left out.
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

/// Nothing when nothing is encoded.
pub(super) fn percent_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let first = text.iter().position(|byte| *byte == b'%')?;
    let (plain, encoded) = text.split_at_checked(first)?;
    let mut decoded = Vec::with_capacity(text.len());
    decoded.extend_from_slice(plain);
    let mut at = 0;
    while let Some(byte) = encoded.get(at) {
        let escaped = encoded.get(at + 1..at + 3).filter(|_| *byte == b'%').and_then(of_hex);
        decoded.push(escaped.unwrap_or(*byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    (decoded.len() < text.len()).then_some(decoded)
}

fn of_hex(digits: &[u8]) -> Option<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let [high, low] = digits else { return None };
    Some(digit(high)? * 16 + digit(low)?)
}
