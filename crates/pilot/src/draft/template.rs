//! The page a person fills in: made from the payload's schema, with what is known and what is wrong.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::draft::text::{Mistake, Place, key, value};

/// Begins a line that says what is wrong; such lines are removed when the page is opened again.
const MARK: &str = "#! ";

/// None if the payload has something that cannot be written here.
pub(crate) fn template(heading: &str, title: &str, payload: &Map<String, Value>, schema: &Value) -> Option<String> {
    let mut text = format!(
        "# {heading}\n#\n# Fill in, save, and leave the editor. Lines that begin with # are not sent, nor is a\n# text \
         that is left empty. A long text stands between \"\"\" and \"\"\". To give up, leave\n# without a change.\n\ntitle = \
         {}\n\n[payload]\n",
        value(&title.into())?
    );
    let empty = Map::new();
    let described = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required: Vec<_> = schema.get("required").and_then(Value::as_array).into_iter().flatten().collect();
    let is_required = |name: &str| required.iter().any(|known| known.as_str() == Some(name));
    // Required ones first: a tired person fills in what is at the top.
    let (first, second): (Vec<_>, Vec<_>) = described.iter().partition(|(name, _)| is_required(name));
    for (name, schema) in first.into_iter().chain(second) {
        let _ = writeln!(text, "\n# {}", hint(schema, is_required(name)));
        match payload.get(name) {
            Some(given) => drop(writeln!(text, "{} = {}", key(name), value(given)?)),
            None => text += &blank(name, schema, is_required(name)),
        }
    }
    for (name, given) in payload.iter().filter(|(name, _)| !described.contains_key(*name)) {
        let _ = writeln!(text, "\n{} = {}", key(name), value(given)?);
    }
    Some(text)
}

fn hint(schema: &Value, is_required: bool) -> String {
    let words = |name: &str| schema.get(name).and_then(Value::as_str);
    let choices: Vec<_> = schema.get("enum").and_then(Value::as_array).into_iter().flatten().map(plain).collect();
    let kind = match words("type") {
        _ if !choices.is_empty() => choices.join(", "),
        Some("string") => words("format").map_or("text".to_owned(), |format| format!("text, {format}")),
        Some("array") => "a list: [\"…\", \"…\"]".to_owned(),
        Some("object") => "{ name = \"…\" }".to_owned(),
        Some(other) => other.to_owned(),
        None => "text or { name = \"…\" }".to_owned(),
    };
    let need = if is_required { "required" } else { "optional" };
    // A description cannot end its comment.
    let described = words("description").map_or(String::new(), |text| format!("{}; ", text.replace(['\n', '\r'], " ")));
    format!("{described}{need}: {kind}")
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A place to write. What is optional, or not a text, stays a comment until somebody wants it.
fn blank(name: &str, schema: &Value, is_required: bool) -> String {
    let example = match schema.get("type").and_then(Value::as_str) {
        Some("array") => "[]",
        Some("object") => "{ }",
        Some("boolean") => "false",
        Some("integer" | "number") => "0",
        _ if is_required => return format!("{} = \"\"\n", key(name)),
        _ => "\"\"",
    };
    format!("# {} = {example}\n", key(name))
}

/// The page again, with what is wrong above the line where it is.
pub(crate) fn annotated(text: &str, mistakes: &[Mistake]) -> String {
    let mut lines: Vec<String> = text.lines().filter(|line| !line.starts_with(MARK)).map(str::to_owned).collect();
    // A parser counted the lines with those that were there before.
    let marked = |line: usize| text.lines().take(line).filter(|line| line.starts_with(MARK)).count();
    let mut notes: Vec<(usize, String)> = Vec::new();
    for Mistake { place, what } in mistakes {
        let what = what.replace(['\n', '\r'], " ");
        match place {
            Place::Line(line) => notes.push((line.saturating_sub(1 + marked(*line)), format!("{MARK}{what}"))),
            Place::Pointer(pointer) => {
                let at = line_of(&lines, pointer).unwrap_or(0);
                notes.push((at, format!("{MARK}{pointer}: {what}")));
            }
        }
    }
    notes.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    for (at, note) in notes {
        lines.insert(at.min(lines.len()), note);
    }
    lines.join("\n") + "\n"
}

/// Where the member is written, or could be.
fn line_of(lines: &[String], pointer: &str) -> Option<usize> {
    let path = pointer.strip_prefix("/payload/").or_else(|| pointer.strip_prefix('/'))?;
    let name = key(&path.split('/').next()?.replace("~1", "/").replace("~0", "~"));
    let is_it = |line: &String| {
        let line = line.trim_start_matches("# ").trim_start();
        line.strip_prefix(&*name).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    lines.iter().position(is_it)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use pilot_core::workflow::builtin::builtin;
    use serde_json::json;

    use super::*;
    use crate::draft::text::read;

    fn page(payload: &Value) -> String {
        let schema = &builtin()[0].rules().payload_schema.clone();
        template("A new controlled-operation.", "", payload.as_object().unwrap(), schema).unwrap()
    }

    #[test]
    fn a_page_is_made_from_the_schema_and_reads_as_nothing_until_it_is_filled_in() {
        let text = page(&json!({}));
        assert_eq!(read(&text).unwrap().payload, json!({}));
        expect![[r##"
            # A new controlled-operation.
            #
            # Fill in, save, and leave the editor. Lines that begin with # are not sent, nor is a
            # text that is left empty. A long text stands between """ and """. To give up, leave
            # without a change.

            title = ""

            [payload]

            # exactly what will be executed, as text or as an object; required: text or { name = "…" }
            operation = ""

            # why this is done; required: text
            purpose = ""

            # high asks for a second approver; required: low, medium, high
            risk = ""

            # how it is undone; required: text
            rollback_plan = ""

            # how one will know that it worked; optional: text
            # expected_outcome = ""

            # tickets, documents, runs; optional: a list: ["…", "…"]
            # links = []

            # optional: text
            # security_impact = ""

            # the systems it touches; optional: a list: ["…", "…"]
            # targets = []

            # optional: text
            # test_evidence = ""
        "##]]
        .assert_eq(&text);
    }

    #[test]
    fn what_is_known_stays_and_what_is_wrong_stands_above_it() {
        let text = page(&json!({"risk": "extreme", "extra": {"a": [1]}, "purpose": "one\ntwo"}));
        assert_eq!(
            read(&text).unwrap().payload,
            json!({"risk": "extreme", "extra": {"a": [1]}, "purpose": "one\ntwo"})
        );
        let mistakes =
            [Mistake::at("/payload/risk", "must be one of low, medium, high"), Mistake::at("/payload", "is wrong")];
        let once = annotated(&text, &mistakes);
        assert!(once.starts_with("#! /payload: is wrong\n# A new"), "{once}");
        assert!(once.contains("\n#! /payload/risk: must be one of low, medium, high\nrisk = \"extreme\"\n"), "{once}");
        assert_eq!(annotated(&once, &mistakes), once, "old marks go");
        assert_eq!(annotated(&once, &[]), text);
        assert_eq!(read(&once), read(&text));
    }
}
