//! Keeps secrets that the command was given out of what it prints: as they are, and in the forms in which programs
//! print them.

use std::ops::Range;

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};
use memchr::memmem;

const MASK: &[u8] = b"***";
/// Shorter values would also mask words that are not secret.
const SECRET_BYTES_MIN: usize = 6;

/// Parts of names that say that the value is secret.
const SECRET_NAMES: [&str; 8] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PRIVATE", "CREDENTIAL", "API_KEY", "APIKEY"];

pub(crate) fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_NAMES.iter().any(|part| name.contains(part)) || name.ends_with("_KEY") || name.ends_with("_PASS")
}

/// A pattern for names in which `*` stands for any characters.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(rest) = name.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let pieces: Vec<_> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    let mut rest = rest;
    for piece in middle {
        let Some(at) = rest.find(piece) else { return false };
        rest = rest.get(at + piece.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

#[derive(Default)]
pub(crate) struct Masks {
    forms: Vec<memmem::Finder<'static>>,
    longest: usize,
}

impl Masks {
    pub(crate) fn of<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Masks {
        let mut forms: Vec<Vec<u8>> = Vec::new();
        for secret in secrets.into_iter().map(str::trim).filter(|secret| secret.len() >= SECRET_BYTES_MIN) {
            forms.extend(forms_of(secret));
            // A secret of several lines is printed line by line.
            forms.extend(
                secret.lines().filter(|line| line.len() >= SECRET_BYTES_MIN).map(|line| line.as_bytes().to_vec()),
            );
        }
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        forms.dedup();
        let longest = forms.first().map_or(0, Vec::len);
        Masks { forms: forms.iter().map(|form| memmem::Finder::new(form).into_owned()).collect(), longest }
    }

    /// A whole text without them.
    pub(crate) fn hide(&self, text: &str) -> String {
        let mut shown = String::new();
        let mut at = 0;
        for place in self.find(text.as_bytes()) {
            shown += &String::from_utf8_lossy(text.as_bytes().get(at..place.start).unwrap_or_default());
            shown += &String::from_utf8_lossy(MASK);
            at = place.end;
        }
        shown + &String::from_utf8_lossy(text.as_bytes().get(at..).unwrap_or_default())
    }

    /// The places of secrets, in order and apart.
    fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let found = |form: &memmem::Finder<'_>| {
            let length = form.needle().len();
            form.find_iter(text).map(move |at| at..at + length).collect::<Vec<_>>()
        };
        let mut places: Vec<_> = self.forms.iter().flat_map(found).collect();
        places.sort_by_key(|place| place.start);
        let mut apart: Vec<Range<usize>> = Vec::new();
        for place in places {
            match apart.last_mut().filter(|last| place.start <= last.end) {
                Some(last) => last.end = last.end.max(place.end),
                None => apart.push(place),
            }
        }
        apart
    }
}

fn forms_of(secret: &str) -> Vec<Vec<u8>> {
    let bytes = secret.as_bytes();
    let json = serde_json::Value::from(secret).to_string();
    let mut forms = vec![
        bytes.to_vec(),
        json.trim_matches('"').as_bytes().to_vec(),
        percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC).to_string().into_bytes(),
        HEXLOWER.encode(bytes).into_bytes(),
        HEXUPPER.encode(bytes).into_bytes(),
    ];
    for encoding in [BASE64_NOPAD, BASE64URL_NOPAD] {
        forms.extend((0..3).map(|offset| inside_base64(&encoding, bytes, offset)));
    }
    forms.retain(|form| form.len() >= SECRET_BYTES_MIN);
    forms
}

/// What the bytes look like in base64 when they begin `offset` bytes after a multiple of three: without the characters
/// at either end that also depend on their neighbours.
fn inside_base64(encoding: &data_encoding::Encoding, bytes: &[u8], offset: usize) -> Vec<u8> {
    let text = encoding.encode(&[&vec![0; offset][..], bytes].concat()).into_bytes();
    let start = (offset * 8).div_ceil(6);
    let end = (offset + bytes.len()) * 8 / 6;
    text.get(start..end).unwrap_or_default().to_vec()
}

/// Masks a stream: a secret that is cut in two by the pieces it arrives in is found too.
pub(crate) struct Masked {
    masks: Masks,
    held_back: Vec<u8>,
}

impl Masked {
    pub(crate) fn new(masks: Masks) -> Masked {
        Masked { masks, held_back: Vec::new() }
    }

    /// What can be passed on now. The rest may be the beginning of a secret.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held_back.extend_from_slice(piece);
        let keep = self.masks.longest.saturating_sub(1);
        self.take(self.held_back.len().saturating_sub(keep))
    }

    pub(crate) fn end(&mut self) -> Vec<u8> {
        self.take(self.held_back.len())
    }

    /// The first `upto` bytes; a secret that begins in them is masked as a whole.
    fn take(&mut self, upto: usize) -> Vec<u8> {
        let mut shown = Vec::with_capacity(upto);
        let mut at = 0;
        for place in self.masks.find(&self.held_back).into_iter().take_while(|place| place.start < upto) {
            shown.extend_from_slice(self.held_back.get(at..place.start).unwrap_or_default());
            shown.extend_from_slice(MASK);
            at = place.end;
        }
        shown.extend_from_slice(self.held_back.get(at..upto).unwrap_or_default());
        self.held_back.drain(..at.max(upto));
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(secret: &str, pieces: &[&str]) -> String {
        let mut masked = Masked::new(Masks::of([secret]));
        let mut shown: Vec<u8> = pieces.iter().flat_map(|piece| masked.push(piece.as_bytes())).collect();
        shown.extend(masked.end());
        String::from_utf8(shown).unwrap()
    }

    #[test]
    fn a_secret_is_masked_in_every_form_in_which_programs_print_it() {
        let secret = "s3cr\"t/pass word+é";
        let encoded = |text: &str| BASE64_NOPAD.encode(text.as_bytes());
        for printed in [
            secret.to_owned(),
            serde_json::to_string(secret).unwrap(),
            percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC).to_string(),
            HEXLOWER.encode(secret.as_bytes()),
            HEXUPPER.encode(secret.as_bytes()),
            encoded(&format!("user:{secret}")),
            encoded(&format!("user1:{secret}")),
            encoded(&format!("user12:{secret}@host")),
        ] {
            let shown = masked(secret, &["before ", &printed, " after"]);
            assert!(shown.contains("***"), "{printed} is shown as {shown}");
            let rest = shown.replace("before ", "").replace(" after", "");
            assert!(rest.len() < printed.len() / 2 + 4, "too much of {printed} is left: {shown}");
        }
    }

    #[test]
    fn a_secret_that_arrives_in_pieces_is_masked() {
        let pieces: Vec<String> = "a hunter2hunter2 b".chars().map(String::from).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        assert_eq!(masked("hunter2hunter2", &pieces), "a *** b");
        assert_eq!(masked("hunter2", &["x"]), "x");
        assert_eq!(masked("on", &["on and on"]), "on and on");
    }

    #[test]
    fn a_name_fits_a_pattern_with_stars() {
        for (pattern, name, fit) in [
            ("DB_*", "DB_URL", true),
            ("*", "", true),
            ("A*C*E", "ABCDE", true),
            ("A*C*E", "ABCDEF", false),
            ("*KEY*", "MY_KEYS", true),
            ("DB", "DB_URL", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(fits(pattern, name), fit, "{pattern} and {name}");
        }
    }
}
