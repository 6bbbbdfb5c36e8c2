//! Content as people edit it: TOML with a title and a payload. JSON has no comments, and no lines in a text.

use std::fmt::Write as _;

use pilot_core::visible::is_hidden;
use serde_json::{Map, Number, Value};

/// A title and a payload, as a person wrote them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Written {
    pub title: String,
    pub payload: Value,
}

/// Something wrong in a draft: where, as a pointer or as a line, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub place: Place,
    pub what: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Pointer(String),
    /// From 1.
    Line(usize),
}

impl Mistake {
    pub(crate) fn at(pointer: &str, what: impl Into<String>) -> Mistake {
        Mistake { place: Place::Pointer(pointer.to_owned()), what: what.into() }
    }
}

/// Texts that were left empty are left out: nobody has filled them in.
pub(crate) fn read(text: &str) -> Result<Written, Vec<Mistake>> {
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
        vec![Mistake { place: Place::Line(before.matches('\n').count() + 1), what: error.message().to_owned() }]
    })?;
    let (mut title, mut payload, mut mistakes) = (String::new(), Map::new(), Vec::new());
    for (name, value) in table {
        match (&*name, value) {
            ("title", toml::Value::String(text)) => title = text,
            ("payload", toml::Value::Table(members)) => {
                let filled = |value: &toml::Value| value.as_str().is_none_or(|text| !text.is_empty());
                payload = members.into_iter().filter(|(_, value)| filled(value)).map(member).collect();
            }
            ("title" | "payload", _) => mistakes.push(Mistake::at(&format!("/{name}"), "has the wrong type")),
            (_, _) => mistakes.push(Mistake::at("", format!("{name} belongs below [payload]"))),
        }
    }
    if mistakes.is_empty() { Ok(Written { title, payload: payload.into() }) } else { Err(mistakes) }
}

fn member((name, value): (String, toml::Value)) -> (String, Value) {
    (name, json(value))
}

fn json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
        toml::Value::Boolean(is) => is.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(values) => values.into_iter().map(json).collect(),
        toml::Value::Table(members) => Value::Object(members.into_iter().map(member).collect()),
    }
}

/// None for what TOML cannot say: null.
pub(crate) fn value(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(is) => is.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.contains('\n') => format!("\"\"\"\n{}\"\"\"", escaped(text, true)),
        Value::String(text) => format!("\"{}\"", escaped(text, false)),
        Value::Array(values) => {
            let written: Option<Vec<_>> = values.iter().map(self::value).collect();
            format!("[{}]", written?.join(", "))
        }
        Value::Object(members) => {
            let written = members.iter().map(|(name, value)| Some(format!("{} = {}", key(name), self::value(value)?)));
            format!("{{ {} }}", written.collect::<Option<Vec<_>>>()?.join(", "))
        }
    })
}

pub(crate) fn key(name: &str) -> String {
    let is_bare = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if is_bare { name.to_owned() } else { format!("\"{}\"", escaped(name, false)) }
}

/// What an editor would not show is written as its code point.
fn escaped(text: &str, keeps_lines: bool) -> String {
    let mut written = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' if keeps_lines => written.push('\n'),
            '"' => written += "\\\"",
            '\\' => written += "\\\\",
            '\n' => written += "\\n",
            '\t' => written += "\\t",
            letter if letter.is_control() || is_hidden(letter) => {
                let _ = write!(written, "\\U{:08X}", u32::from(letter));
            }
            letter => written.push(letter),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_read_again_exactly() {
        for payload in [
            json!({}),
            json!({"a": "x\"y\\z\t\u{202e}\u{7f}\u{0}\u{1F600}", "b b": [1, -2.5, true, "q", []], "c": {"d": {"é": "f"}}}),
            json!({"lines": "one\n  two \"\"\" three\\\n\nfour\n", "n": 9_007_199_254_740_991_u64, "e": 1e300}),
            json!({"crlf": "a\r\nb", "": "nameless"}),
        ] {
            let members = payload.as_object().unwrap().iter();
            let lines: String =
                members.map(|(name, item)| format!("{} = {}\n", key(name), value(item).unwrap())).collect();
            let text = format!("title = {}\n[payload]\n{lines}", value(&json!("T \"1\"")).unwrap());
            assert_eq!(read(&text).unwrap(), Written { title: "T \"1\"".into(), payload }, "{text}");
        }
        assert_eq!(value(&json!([{"a": null}])), None);
    }

    #[test]
    fn a_mistake_has_its_line_and_a_stray_member_its_remedy() {
        let mistakes = read("title = \"x\"\n\n[payload]\na = [1,\nb = 2\n").unwrap_err();
        assert!(matches!(mistakes.as_slice(), [Mistake { place: Place::Line(4 | 5), .. }]), "{mistakes:?}");
        let mistakes = read("title = 1\nrisk = \"low\"\n").unwrap_err();
        let said: Vec<_> = mistakes.iter().map(|mistake| &*mistake.what).collect();
        assert_eq!(said, ["risk belongs below [payload]", "has the wrong type"]);
    }
}
