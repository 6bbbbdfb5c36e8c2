//! An item's payload, kept as text and parsed only where a rule looks.
//!
//! As a tree of values, a payload can take a hundred times its bytes. Caches and lists hold hundreds of items, so a
//! payload stays as it is on disk: canonical JSON (RFC 8785).

use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::certain::Certain as _;
use crate::limits::RISK_CHARS_MAX;

/// Why parsing it again cannot fail.
const JSON: &str = "a payload was JSON when it came in, and never changes";

#[derive(Clone)]
pub struct Payload(Kept);

#[derive(Clone)]
enum Kept {
    Text(Arc<RawValue>),
    /// Erased, or left out of a bundle; only when a ledger is replayed. Holds what the item's moves have shown about
    /// it.
    LeftOut(Arc<[Learned]>),
}

/// Whether a payload that can no longer be read has this value at this place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Learned {
    pub pointer: String,
    pub equals: Value,
    pub holds: bool,
}

impl Payload {
    #[expect(clippy::expect_used, reason = "a JSON value has text keys and finite numbers alone")]
    pub fn of(value: &Value) -> Payload {
        let canonical = serde_json_canonicalizer::to_string(value).expect("a JSON value has a canonical form");
        Payload(Kept::Text(RawValue::from_string(canonical).expect("canonical JSON is JSON").into()))
    }

    /// The payload part of a content document, whose text is already canonical.
    pub fn from_canonical(text: &RawValue) -> Payload {
        Payload(Kept::Text(text.to_owned().into()))
    }

    /// A payload that can no longer be read.
    pub fn left_out() -> Payload {
        Payload(Kept::LeftOut(Arc::new([])))
    }

    pub fn is_left_out(&self) -> bool {
        matches!(self.0, Kept::LeftOut(_))
    }

    /// What is left of a payload whose document was erased.
    pub fn empty() -> Payload {
        Payload::of(&Value::Object(serde_json::Map::new()))
    }

    /// `null` for a payload that was left out.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Kept::Text(text) => text.get(),
            Kept::LeftOut(_) => "null",
        }
    }

    /// Whether the JSON pointer leads to this value; `None` if that cannot be known.
    pub fn has(&self, pointer: &str, value: &Value) -> Option<bool> {
        let Kept::LeftOut(learned) = &self.0 else { return Some(self.at(pointer).as_ref() == Some(value)) };
        let here = || learned.iter().filter(|learned| learned.pointer == pointer);
        match here().find(|learned| learned.equals == *value) {
            Some(learned) => Some(learned.holds),
            // Only one value can be there.
            None => here().any(|learned| learned.holds).then_some(false),
        }
    }

    /// The same payload, with one more thing known about it.
    #[must_use]
    pub fn with(&self, learned: &Learned) -> Payload {
        match &self.0 {
            Kept::Text(_) => self.clone(),
            Kept::LeftOut(known) => Payload(Kept::LeftOut(known.iter().cloned().chain([learned.clone()]).collect())),
        }
    }

    /// The whole payload as values, for changing it or validating it against a schema.
    pub fn value(&self) -> Value {
        serde_json::from_str(self.as_str()).certain(JSON)
    }

    /// What a JSON pointer leads to. Everything else is skipped, not built.
    pub fn at(&self, pointer: &str) -> Option<Value> {
        let names = match pointer.strip_prefix('/') {
            Some(names) => names.split('/').map(|name| name.replace("~1", "/").replace("~0", "~")).collect(),
            None if pointer.is_empty() => Vec::new(),
            None => return None,
        };
        Seek(&names).deserialize(&mut serde_json::Deserializer::from_str(self.as_str())).certain(JSON)
    }
}

impl Payload {
    /// The member `risk`, if it is a text short enough to be a label.
    pub fn risk(&self) -> Option<String> {
        match self.at("/risk") {
            Some(Value::String(risk)) if risk.chars().count() <= RISK_CHARS_MAX => Some(risk),
            _ => None,
        }
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Payload) -> bool {
        match (&self.0, &other.0) {
            (Kept::LeftOut(one), Kept::LeftOut(other)) => one == other,
            (Kept::Text(one), Kept::Text(other)) => one.get() == other.get(),
            _ => false,
        }
    }
}

impl Eq for Payload {}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Kept::Text(text) => text.serialize(serializer),
            Kept::LeftOut(_) => serializer.serialize_unit(),
        }
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Payload, D::Error> {
        Value::deserialize(deserializer).map(|value| Payload::of(&value))
    }
}

/// Follows the rest of a pointer into the next value.
struct Seek<'p>(&'p [String]);

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Option<Value>, D::Error> {
        if self.0.is_empty() { Value::deserialize(reader).map(Some) } else { reader.deserialize_any(self) }
    }
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Option<Value>, A::Error> {
        let (wanted, rest) = self.0.split_first().ok_or_else(|| A::Error::custom("nothing is looked for"))?;
        let mut found = None;
        while let Some(name) = members.next_key::<std::borrow::Cow<'de, str>>()? {
            if *name == **wanted {
                found = members.next_value_seed(Seek(rest))?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Option<Value>, A::Error> {
        let (wanted, rest) = self.0.split_first().ok_or_else(|| A::Error::custom("nothing is looked for"))?;
        // RFC 6901: digits, without leading zeros.
        let plain = wanted.bytes().all(|digit| digit.is_ascii_digit()) && (wanted == "0" || !wanted.starts_with('0'));
        let wanted = wanted.parse::<usize>().ok().filter(|_| plain);
        let (mut found, mut index) = (None, 0);
        loop {
            let more = if wanted == Some(index) {
                let element = elements.next_element_seed(Seek(rest))?;
                element.map(|element| found = element).is_some()
            } else {
                elements.next_element::<IgnoredAny>()?.is_some()
            };
            if !more {
                return Ok(found);
            }
            index += 1;
        }
    }

    fn visit_bool<E>(self, _: bool) -> Result<Option<Value>, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Option<Value>, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Option<Value>, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Option<Value>, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Option<Value>, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Option<Value>, E> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pointer_leads_where_the_library_says_it_leads() {
        let value = json!({"a": {"b": [1, {"c": 2.5}], "": 3}, "x/y": {"m~n": 4}, "0": "five", "ä\"": null, "t": true});
        let payload = Payload::of(&value);
        for pointer in [
            "",
            "/",
            "a",
            "/a",
            "/a/b",
            "/a/b/0",
            "/a/b/1/c",
            "/a/b/01",
            "/a/b/9",
            "/a/b/x",
            "/a/b/-",
            "/a/",
            "/a//",
            "/0",
            "/x~1y",
            "/x~1y/m~0n",
            "/x/y",
            "/missing/a",
            "/a/b/0/c",
            "//a",
            "/0/a",
            "/ä\"",
            "/ä\"/x",
            "/t",
            "/t/u",
        ] {
            assert_eq!(payload.at(pointer).as_ref(), value.pointer(pointer), "{pointer}");
        }
    }

    #[test]
    fn a_payload_is_kept_in_canonical_form_and_is_shown_as_it_is_kept() {
        let payload = Payload::of(&json!({"b": [1, "x"], "a": {}}));
        assert_eq!(payload.as_str(), r#"{"a":{},"b":[1,"x"]}"#);
        assert_eq!(serde_json::to_string(&payload).unwrap(), payload.as_str());
        assert_eq!(serde_json::from_str::<Payload>(r#"{"b":[1,"x"], "a":{}}"#).unwrap(), payload);
        assert_eq!(payload.value(), json!({"a": {}, "b": [1, "x"]}));
        assert_eq!(Payload::empty().as_str(), "{}");
    }

    #[test]
    fn of_a_payload_that_was_left_out_only_what_was_learned_is_known() {
        let (risk, high, low) = ("/risk", json!("high"), json!("low"));
        let told = Payload::of(&json!({"risk": "high"}));
        assert_eq!(
            (told.has(risk, &high), told.has(risk, &low), told.has("/x", &low)),
            (Some(true), Some(false), Some(false))
        );
        let gone = Payload::left_out();
        assert!(gone.is_left_out() && gone != Payload::empty());
        assert_eq!(gone.has(risk, &high), None);
        let learn = |holds| gone.with(&Learned { pointer: risk.to_owned(), equals: high.clone(), holds });
        assert_eq!((learn(true).has(risk, &high), learn(true).has(risk, &low)), (Some(true), Some(false)));
        assert_eq!((learn(false).has(risk, &high), learn(false).has(risk, &low)), (Some(false), None));
        assert_eq!(learn(true).has("/x", &high), None);
    }
}
