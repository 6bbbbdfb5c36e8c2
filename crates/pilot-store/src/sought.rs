//! What a search looks for in an item's texts. Every engine asks here, so all of them find the same.

use std::cell::{Cell, RefCell};
use std::fmt;

use pilot_core::item::ItemId;
use pilot_core::limits::ID_PREFIX_CHARS_MIN;
use pilot_core::payload::Payload;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::{Filter, Result, StoreError};

pub(crate) struct Sought {
    /// In lower case. Not set if an id was searched for, which the engine looks up by itself.
    text: Option<String>,
    risk: Option<String>,
}

/// The texts of one item.
pub(crate) struct Texts<'t> {
    pub(crate) id: &'t ItemId,
    pub(crate) title: &'t str,
    pub(crate) created_by: &'t str,
}

impl Sought {
    pub(crate) fn of(filter: &Filter) -> Sought {
        let text = filter.text.as_ref().filter(|_| searched_id(filter).is_none());
        Sought { text: text.map(|text| text.to_lowercase()), risk: filter.risk.clone() }
    }

    /// Nothing: every item is one of those wanted.
    pub(crate) fn is_nothing(&self) -> bool {
        self.text.is_none() && self.risk.is_none()
    }

    /// Whether the item's row already decides; otherwise its content has to be looked at.
    pub(crate) fn in_row(&self, texts: &Texts<'_>) -> Option<bool> {
        let is_in_row = match &self.text {
            None => true,
            Some(text) => {
                let has = |whole: &str| whole.to_lowercase().contains(text.as_str());
                has(texts.title) || has(texts.created_by) || is_beginning(text, texts.id)
            }
        };
        (is_in_row && self.risk.is_none()).then_some(true)
    }

    /// Whether an item is wanted, by its row and its content document. An erased document has no text.
    pub(crate) fn in_content(&self, texts: &Texts<'_>, content: Option<&[u8]>) -> Result<bool> {
        let Some(bytes) = content else {
            return Ok(self.risk.is_none() && self.in_row(texts) == Some(true));
        };
        let damaged = |error| StoreError::Damaged(format!("item {} cannot be read: {error}", texts.id));
        let payload = payload_of(bytes).map_err(damaged)?;
        if let Some(risk) = &self.risk
            && Payload::from_canonical(payload).risk().as_ref() != Some(risk)
        {
            return Ok(false);
        }
        let Some(text) = &self.text else { return Ok(true) };
        let without_risk = Sought { text: Some(text.clone()), risk: None };
        if without_risk.in_row(texts) == Some(true) {
            return Ok(true);
        }
        let is_found = Cell::new(false);
        let look = |found: &str| {
            if !is_found.get() && found.to_lowercase().contains(text.as_str()) {
                is_found.set(true);
            }
        };
        walk(payload, &look).map_err(damaged)?;
        Ok(is_found.get())
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

fn is_beginning(text: &str, id: &ItemId) -> bool {
    text.len() >= ID_PREFIX_CHARS_MIN && id.as_str().starts_with(text)
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

    const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

    fn is_found(text: Option<&str>, risk: Option<&str>, payload: &str) -> bool {
        let filter = Filter { text: text.map(str::to_owned), risk: risk.map(str::to_owned), ..Filter::default() };
        let content = format!(r#"{{"nonce":"deadbeef","payload":{payload},"title":"Größe"}}"#);
        let id = ID.parse().unwrap();
        let texts = Texts { id: &id, title: "Größe", created_by: "ana" };
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
        let id = ID.parse().unwrap();
        let texts = Texts { id: &id, title: "(erased)", created_by: "ana" };
        let found = |filter: Filter| Sought::of(&filter).in_content(&texts, None).unwrap();
        assert!(found(filter(Some("ana"), None)));
        assert!(!found(filter(Some("ana"), Some("low"))));
        assert!(!found(filter(Some("purpose"), None)));
    }
}
