//! What people decide on: an item's title and payload, identified by one digest.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::certain::Certain as _;
use crate::json::INTEGER_MAX;
use crate::sha256::sha256;

/// `sha256:` and 64 lowercase hexadecimal characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "Arc<str>")]
pub struct ContentDigest(Arc<str>);

/// Why serialisation cannot fail.
const CANONICAL: &str = "values of this crate have text as keys and finite numbers";

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a digest is written as sha256: followed by 64 lowercase hexadecimal characters")]
pub struct MalformedDigest;

impl ContentDigest {
    /// The digest of a title and payload. The nonce keeps anyone from testing guesses against a public ledger. It is
    /// stored in the document, so that erasing the document erases it too.
    pub fn of(title: &str, payload: &Value, nonce: &str) -> ContentDigest {
        let document = json!({"nonce": nonce, "payload": payload, "title": title});
        ContentDigest(sha256_of_canonical(&document).into())
    }

    /// The digest of a document's stored bytes.
    pub fn of_bytes(bytes: &[u8]) -> ContentDigest {
        ContentDigest::of_hash(sha256([bytes]))
    }

    /// The digest whose hexadecimal characters stand for this SHA-256.
    pub fn of_hash(hash: [u8; 32]) -> ContentDigest {
        let mut text = *b"sha256:0000000000000000000000000000000000000000000000000000000000000000";
        let (_, hex) = text.split_at_mut(7);
        HEXLOWER.encode_mut(&hash, hex);
        ContentDigest(std::str::from_utf8(&text).certain("hexadecimal digits are text").into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What people wrote, stored separately: the entry has only its digest, so a document can be erased and the proof stays
/// valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub kind: DocumentKind,
    pub digest: ContentDigest,
    /// Canonical JSON including the nonce; what is hashed is what is stored.
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentKind {
    Content,
    Comment,
    Inputs,
    /// The role map in force from a start of the service on.
    RoleMap,
}

impl Document {
    pub fn content(title: &str, payload: &Value, nonce: &str) -> Document {
        Document::new(DocumentKind::Content, canonical(&WrittenContent { nonce, payload, title }))
    }

    pub fn comment(text: &str, nonce: &str) -> Document {
        let bytes = serde_json::to_vec(&WrittenComment { comment: text, nonce }).certain("two texts are JSON");
        Document::new(DocumentKind::Comment, bytes)
    }

    pub fn inputs(inputs: &Value, nonce: &str) -> Document {
        Document::new(DocumentKind::Inputs, canonical(&WrittenInputs { inputs, nonce }))
    }

    /// The file as it was read. It has no nonce, because anyone who may read the entry may read the role map.
    pub fn role_map(file: &[u8]) -> Document {
        Document { kind: DocumentKind::RoleMap, digest: ContentDigest::of_bytes(file), bytes: file.to_vec() }
    }

    fn new(kind: DocumentKind, bytes: Vec<u8>) -> Document {
        Document { kind, digest: ContentDigest::of_bytes(&bytes), bytes }
    }
}

/// Sorted by name, as are the members of the next two.
#[derive(Serialize)]
struct WrittenContent<'a> {
    nonce: &'a str,
    payload: &'a Value,
    title: &'a str,
}

/// Only strings: plain serialisation is already canonical.
#[derive(Serialize)]
struct WrittenComment<'a> {
    comment: &'a str,
    nonce: &'a str,
}

#[derive(Serialize)]
struct WrittenInputs<'a> {
    inputs: &'a Value,
    nonce: &'a str,
}

/// Whether these bytes are what [`Document::content`] writes, without writing it; and below for the others.
pub fn is_content(bytes: &[u8], title: &str, payload: &Value, nonce: &str) -> bool {
    is_canonical(bytes, &WrittenContent { nonce, payload, title }, payload)
}

pub fn is_comment(bytes: &[u8], text: &str, nonce: &str) -> bool {
    is_written_as(bytes, &WrittenComment { comment: text, nonce })
}

pub fn is_inputs(bytes: &[u8], inputs: &Value, nonce: &str) -> bool {
    is_canonical(bytes, &WrittenInputs { inputs, nonce }, inputs)
}

/// `inner` is the only part of `value` that may be written in several ways.
fn is_canonical(bytes: &[u8], value: &impl Serialize, inner: &Value) -> bool {
    if is_plain(inner) { is_written_as(bytes, value) } else { canonical(value) == bytes }
}

/// Whether plain serialisation of a value is its canonical form: whole numbers, and names in an order that does not
/// depend on how characters are encoded. Anything else is brought into canonical form first, which sorts its names.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => number.as_i64().is_some_and(|number| number.unsigned_abs() <= INTEGER_MAX),
        Value::Array(list) => list.iter().all(is_plain),
        Value::Object(members) => {
            members.keys().is_sorted() && members.iter().all(|(name, member)| name.is_ascii() && is_plain(member))
        }
    }
}

/// Compares while it is being written.
fn is_written_as(bytes: &[u8], value: &impl Serialize) -> bool {
    let mut expected = Expected(bytes);
    serde_json::to_writer(&mut expected, value).is_ok() && expected.0.is_empty()
}

/// What has yet to be written; anything else is an error.
struct Expected<'b>(&'b [u8]);

impl io::Write for Expected<'_> {
    fn write(&mut self, written: &[u8]) -> io::Result<usize> {
        self.0 = self.0.strip_prefix(written).ok_or(io::ErrorKind::InvalidData)?;
        Ok(written.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `sha256:…` over the RFC 8785 form of `value`.
pub fn sha256_of_canonical(value: &impl Serialize) -> String {
    ContentDigest::of_bytes(&canonical(value)).as_str().to_owned()
}

/// The RFC 8785 form of `value`.
pub(crate) fn canonical(value: &impl Serialize) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).certain(CANONICAL)
}

/// RFC 7396: members of `patch` replace, `null` removes, objects merge.
pub fn merge_patch(target: Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut merged = if let Value::Object(members) = target { members } else { Map::new() };
    for (name, change) in changes {
        // Moved, not copied: what a patch does not touch costs nothing.
        let before = merged.remove(name).unwrap_or(Value::Null);
        if !change.is_null() {
            merged.insert(name.clone(), merge_patch(before, change));
        }
    }
    Value::Object(merged)
}

/// The merge patch (RFC 7396) that makes one payload into another. `None` if that is impossible,
/// because a merge patch cannot set a member to null.
pub fn patch_between(from: &Value, to: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (from, to) else {
        return (!has_null(to)).then(|| to.clone());
    };
    let mut changes = Map::new();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        changes.insert(name.clone(), Value::Null);
    }
    for (name, value) in after {
        match before.get(name) {
            Some(known) if known == value => {}
            Some(known) => drop(changes.insert(name.clone(), patch_between(known, value)?)),
            None if has_null(value) => return None,
            None => drop(changes.insert(name.clone(), value.clone())),
        }
    }
    Some(changes.into())
}

/// Whether a member is null. Elements of a list may be.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}

impl FromStr for ContentDigest {
    type Err = MalformedDigest;

    fn from_str(text: &str) -> Result<Self, MalformedDigest> {
        let hex = text.strip_prefix("sha256:").ok_or(MalformedDigest)?;
        let lowercase_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if hex.len() == 64 && hex.bytes().all(lowercase_hex) {
            Ok(ContentDigest(text.into()))
        } else {
            Err(MalformedDigest)
        }
    }
}

impl TryFrom<String> for ContentDigest {
    type Error = MalformedDigest;

    fn try_from(text: String) -> Result<Self, MalformedDigest> {
        text.parse()
    }
}

impl From<ContentDigest> for Arc<str> {
    fn from(digest: ContentDigest) -> Self {
        digest.0
    }
}

impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_covers_title_payload_and_nonce_but_not_the_order_of_members() {
        let one = ContentDigest::of("t", &json!({"a": 1, "b": 2}), "n");
        assert_eq!(one, ContentDigest::of("t", &json!({"b": 2, "a": 1}), "n"));
        for other in [
            ContentDigest::of("u", &json!({"a": 1, "b": 2}), "n"),
            ContentDigest::of("t", &json!({"a": 1, "b": 3}), "n"),
            ContentDigest::of("t", &json!({"a": 1, "b": 2}), "m"),
        ] {
            assert_ne!(one, other);
        }
        assert_eq!(one.as_str().parse(), Ok(one.clone()));
        let hex = "0".repeat(64);
        for wrong in [hex.clone(), format!("sha256:{}", &hex[1..]), format!("SHA256:{hex}"), format!("sha256:{hex}0")] {
            assert_eq!(wrong.parse::<ContentDigest>(), Err(MalformedDigest), "{wrong}");
        }
    }

    #[test]
    fn a_comment_is_written_in_canonical_form_whatever_is_in_it() {
        let every: String = (0..=0x2FFF).chain(0xFFF0..=0x1_0020).filter_map(char::from_u32).collect();
        for text in ["", "plain", "\"\\/\u{8}\u{c}\n\r\t\u{0}\u{1f}\u{7f}\u{2028}", &every] {
            let canonical = serde_json_canonicalizer::to_vec(&json!({"comment": text, "nonce": "n\""})).unwrap();
            let document = Document::comment(text, "n\"");
            assert!(document.bytes == canonical, "{text:?}");
            assert_eq!(document.digest.as_str(), sha256_of_canonical(&json!({"comment": text, "nonce": "n\""})));
        }
    }

    #[test]
    fn what_is_compared_without_writing_it_is_what_would_be_written() {
        let payloads = [
            json!({}),
            json!({"a": 1, "b": [true, null, -7, "é\u{7f}\n"], "c": {"d": 9_007_199_254_740_991_u64}}),
            json!({"a": 9_007_199_254_740_993_u64}),
            json!({"a": 1.5, "b": 1e300, "c": -0.0}),
            json!({"\u{e000}": 1, "\u{10000}": 2, "a": 3}),
            json!([["x"], {"é": {"b": 1, "a": 2}}]),
        ];
        for (number, payload) in payloads.iter().enumerate() {
            let (title, nonce) = ("A \"title\"", "0123");
            let content = Document::content(title, payload, nonce).bytes;
            let inputs = Document::inputs(payload, nonce).bytes;
            assert_eq!(content, canonical(&json!({"title": title, "payload": payload, "nonce": nonce})));
            assert_eq!(inputs, canonical(&json!({"inputs": payload, "nonce": nonce})));
            assert!(is_content(&content, title, payload, nonce), "{payload}");
            assert!(is_inputs(&inputs, payload, nonce), "{payload}");
            assert_eq!(is_plain(payload), [0, 1].contains(&number), "{payload}");
            for at in 0..content.len() {
                let (before, after) = content.split_at(at);
                assert!(!is_content(before, title, payload, nonce));
                assert!(!is_content(&[before, b" ", after].concat(), title, payload, nonce));
                assert!(!is_content(&[before, &after[1..]].concat(), title, payload, nonce));
            }
            assert!(!is_content(&[&content, b" ".as_slice()].concat(), title, payload, nonce));
        }
        let comment = Document::comment("text", "n").bytes;
        assert!(is_comment(&comment, "text", "n") && !is_comment(&comment, "text", "m"));
    }

    #[test]
    fn a_merge_patch_works_as_in_the_examples_of_rfc_7396() {
        for (target, patch, merged) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            assert_eq!(merge_patch(target.clone(), &patch), merged, "{target} {patch}");
        }
    }

    #[test]
    fn a_patch_makes_one_payload_into_the_other_whatever_changed() {
        let payloads = [
            json!({}),
            json!({"a": 1, "b": {"c": "x", "d": [1, null]}}),
            json!({"a": {"e": 1}, "b": {"c": "y"}}),
            json!({"b": [], "c": {"f": {"g": true}}}),
            json!({"a": "text", "b": {"c": {"h": 1}, "d": [null]}}),
        ];
        for from in &payloads {
            for to in &payloads {
                let patch = patch_between(from, to).unwrap();
                assert_eq!(merge_patch(from.clone(), &patch), *to, "{from} {patch}");
            }
        }
        assert_eq!(patch_between(&json!({}), &json!({"a": null})), None);
        assert_eq!(patch_between(&json!({"a": 1}), &json!({"a": {"b": null}})), None);
    }
}
