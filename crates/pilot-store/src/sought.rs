//! What a search looks for in an item's texts. Every engine asks here, so all of them find the same.

use std::cell::{Cell, RefCell};
use std::fmt;

use memchr::memmem::Finder;
use pilot_core::item::ItemId;
use pilot_core::limits::ID_PREFIX_CHARS_MIN;
use pilot_core::payload::Payload;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::row::{ItemKey, id_text};
use crate::{Filter, Result, StoreError};

pub(crate) struct Sought {
    /// In lower case. Not set if an id was searched for, which the engine looks up by itself.
    text: Option<String>,
    /// Finds the text in JSON as it is stored, if JSON has it there as it is in a payload.
    finder: Option<Finder<'static>>,
    risk: Option<String>,
}

/// The texts of one item.
pub(crate) struct Texts<'t> {
    pub(crate) key: ItemKey,
    pub(crate) title: &'t str,
    pub(crate) created_by: &'t str,
}

impl Sought {
    pub(crate) fn of(filter: &Filter) -> Sought {
        let text = filter.text.as_ref().filter(|_| searched_id(filter).is_none());
        let text = text.map(|text| text.to_lowercase());
        let finder = text.as_ref().filter(|text| is_written_as_it_is(text));
        Sought { finder: finder.map(|text| Finder::new(text).into_owned()), text, risk: filter.risk.clone() }
    }

    /// Nothing: every item is one of those wanted.
    pub(crate) fn is_nothing(&self) -> bool {
        self.text.is_none() && self.risk.is_none()
    }

    /// Whether the item's row already decides; otherwise its content has to be looked at.
    pub(crate) fn in_row(&self, texts: &Texts<'_>) -> Option<bool> {
        (self.risk.is_none() && self.has_row(texts)).then_some(true)
    }

    fn has_row(&self, texts: &Texts<'_>) -> bool {
        let Some(text) = &self.text else { return true };
        let has = |whole: &str| whole.to_lowercase().contains(text.as_str());
        has(texts.title) || has(texts.created_by) || is_beginning(text, &texts.key)
    }

    /// Whether an item is wanted whose row does not decide, by its content document. An erased document has no text.
    pub(crate) fn in_content(&self, texts: &Texts<'_>, content: Option<&[u8]>) -> Result<bool> {
        // Without a risk, a row that has the text has decided.
        let in_row = self.risk.is_some() && self.has_row(texts);
        let Some(bytes) = content else { return Ok(false) };
        if !in_row && self.is_ruled_out(bytes) {
            return Ok(false);
        }
        let damaged = |error| StoreError::Damaged(format!("item {} cannot be read: {error}", id_text(&texts.key)));
        let payload = payload_of(bytes).map_err(damaged)?;
        if let Some(risk) = &self.risk
            && Payload::from_canonical(payload).risk().as_ref() != Some(risk)
        {
            return Ok(false);
        }
        let Some(text) = self.text.as_ref().filter(|_| !in_row) else { return Ok(true) };
        let is_found = Cell::new(false);
        let look = |found: &str| {
            if !is_found.get() && found.to_lowercase().contains(text.as_str()) {
                is_found.set(true);
            }
        };
        walk(payload, &look).map_err(damaged)?;
        Ok(is_found.get())
    }

    /// Whether no text of this content can be the one looked for. Reading its JSON to see that takes several times as
    /// long: a twentieth of a search that looks at short contents, and more where they are long.
    fn is_ruled_out(&self, content: &[u8]) -> bool {
        // Beyond ASCII, lower case may be other letters: that of the Kelvin sign is a k.
        let Some(finder) = self.finder.as_ref().filter(|_| content.is_ascii()) else { return false };
        !content.contains(&b'\\') && finder.find(&content.to_ascii_lowercase()).is_none()
    }

    /// In lower case, if there is a text to look for.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }
}

/// Every text that a search compares with, in lower case. The id is not among them: only its beginning is compared.
pub(crate) fn searched_texts(title: &str, created_by: &str, content: Option<&[u8]>) -> serde_json::Result<Vec<String>> {
    let texts = RefCell::new(vec![title.to_lowercase(), created_by.to_lowercase()]);
    if let Some(bytes) = content {
        walk(payload_of(bytes)?, &|found: &str| texts.borrow_mut().push(found.to_lowercase()))?;
    }
    Ok(texts.into_inner())
}

fn payload_of(content: &[u8]) -> serde_json::Result<&RawValue> {
    #[derive(Deserialize)]
    struct Content<'d> {
        #[serde(borrow)]
        payload: &'d RawValue,
    }
    serde_json::from_slice::<Content<'_>>(content).map(|content| content.payload)
}

fn walk(payload: &RawValue, each: &dyn Fn(&str)) -> serde_json::Result<()> {
    Walk(each).deserialize(&mut serde_json::Deserializer::from_str(payload.get()))
}

/// The item whose whole id was searched for.
pub(crate) fn searched_id(filter: &Filter) -> Option<ItemId> {
    filter.text.as_ref().and_then(|text| text.parse().ok())
}

/// The lowest and the highest id that begin with a text, if any can.
pub(crate) fn ids_beginning_with(text: &str) -> Option<(ItemId, ItemId)> {
    let filled = |filling: &str| format!("{text}{}", filling.get(text.len()..)?).parse().ok();
    let (lowest, highest) = ("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff");
    if text.len() < ID_PREFIX_CHARS_MIN { None } else { Some((filled(lowest)?, filled(highest)?)) }
}

fn is_beginning(text: &str, key: &ItemKey) -> bool {
    text.len() >= ID_PREFIX_CHARS_MIN && id_text(key).starts_with(text)
}

/// Whether JSON has a text as it is, wherever a payload has it. Numbers are compared as people write them, and JSON may
/// have them in another form.
fn is_written_as_it_is(text: &str) -> bool {
    let could_be_number = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'));
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'));
    is_plain && !could_be_number
}

/// Shows every text and number of a payload. The names of members are the form's, not the item's, and are not searched.
#[derive(Clone, Copy)]
struct Walk<'w>(&'w dyn Fn(&str));

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_str<E>(self, text: &str) -> std::result::Result<(), E> {
        (self.0)(text);
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> std::result::Result<(), E> {
        (self.0)(&number.to_string());
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> std::result::Result<(), E> {
        (self.0)(&number.to_string());
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> std::result::Result<(), E> {
        (self.0)(&number.to_string());
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> std::result::Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> std::result::Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<(), A::Error> {
        while list.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> std::result::Result<(), A::Error> {
        while members.next_key::<IgnoredAny>()?.is_some() {
            members.next_value_seed(self)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::to_key;

    const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

    fn is_found(text: Option<&str>, risk: Option<&str>, payload: &str) -> bool {
        let filter = Filter { text: text.map(str::to_owned), risk: risk.map(str::to_owned), ..Filter::default() };
        let content = format!(r#"{{"nonce":"deadbeef","payload":{payload},"title":"Größe"}}"#);
        let texts = Texts { key: to_key(&ID.parse().unwrap()), title: "Größe", created_by: "ana" };
        let sought = Sought::of(&filter);
        sought.in_row(&texts).unwrap_or_else(|| sought.in_content(&texts, Some(content.as_bytes())).unwrap())
    }

    #[test]
    fn a_text_is_found_in_title_payload_creator_and_at_the_beginning_of_an_id_whatever_its_case() {
        let payload = r#"{"a":{"b":["x","Say \"CHG-77\"\nnow"]},"n":4711,"risk":"high","t":true}"#;
        for found in
            ["GRÖSSE".to_lowercase().as_str(), "größe", "chg-77\"\nNOW", "471", "ANA", "high", &ID[..8], &ID[..20]]
        {
            assert_eq!(is_found(Some(found), None, payload), found != "grösse", "{found}");
        }
        for missing in ["deadbeef", "nonce", "payload", "risk", "true", &ID[..7], &ID[1..12], "chg-78"] {
            assert!(!is_found(Some(missing), None, payload), "{missing}");
        }
    }

    #[test]
    fn a_text_that_json_may_have_in_another_form_is_found_as_well() {
        // Plain contents are first searched as they are stored.
        for (text, payload, expected) in [
            ("region", r#"{"a":"The new REGION"}"#, true),
            ("region", r#"{"region":"x"}"#, false),
            ("region", r#"{"a":"The new site"}"#, false),
            ("new region", r#"{"a":"new\u0020region"}"#, true),
            ("a/b", r#"{"a":"x a\/b"}"#, true),
            ("say \"hi\"", r#"{"a":"They say \"hi\""}"#, true),
            ("1000000000000000000000", r#"{"n":1e21}"#, true),
            ("0.0000001", r#"{"n":1e-7}"#, true),
            ("kelvin", "{\"a\":\"\u{212a}elvin\"}", true),
        ] {
            assert_eq!(is_found(Some(text), None, payload), expected, "{text} in {payload}");
        }
    }

    #[test]
    fn a_risk_is_compared_as_a_whole_and_only_if_it_is_a_short_text() {
        assert!(is_found(None, Some("high"), r#"{"risk":"high"}"#));
        assert!(is_found(Some("ana"), Some("high"), r#"{"risk":"high"}"#));
        assert!(!is_found(Some("ben"), Some("high"), r#"{"risk":"high"}"#));
        for other in
            [r#"{"risk":"High"}"#, r#"{"risk":"hig"}"#, r#"{"risk":["high"]}"#, r#"{"a":{"risk":"high"}}"#, "{}"]
        {
            assert!(!is_found(None, Some("high"), other), "{other}");
        }
        let long = "x".repeat(33);
        assert!(!is_found(None, Some(&long), &format!(r#"{{"risk":"{long}"}}"#)));
    }

    #[test]
    fn an_erased_content_has_no_text_and_no_risk() {
        let filter = |text: Option<&str>, risk: Option<&str>| Filter {
            text: text.map(str::to_owned),
            risk: risk.map(str::to_owned),
            ..Filter::default()
        };
        let texts = Texts { key: to_key(&ID.parse().unwrap()), title: "(erased)", created_by: "ana" };
        let found = |filter: Filter| {
            let sought = Sought::of(&filter);
            sought.in_row(&texts).unwrap_or_else(|| sought.in_content(&texts, None).unwrap())
        };
        assert!(found(filter(Some("ana"), None)));
        assert!(!found(filter(Some("ana"), Some("low"))));
        assert!(!found(filter(Some("purpose"), None)));
    }
}
