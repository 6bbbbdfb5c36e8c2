//! What a person gives as the content of an item: a payload from a file or standard input, and what an edit changes.

use std::io::Read as _;
use std::path::Path;

use pilot_core::json::{self, Bounds};
use pilot_core::limits::{PAYLOAD_BYTES_MAX, PAYLOAD_DEPTH_MAX, PAYLOAD_VALUES_MAX};
use serde_json::Value;

use pilot_core::workflow::PayloadSchema;

use crate::draft::text::{self, Mistake, Place, Written};
use crate::exit::Failure;
use crate::files::list_faults;

/// What is given in a file: a draft that was kept has its title too.
pub(crate) struct Given {
    pub title: Option<String>,
    pub payload: Value,
    /// The text of a draft, with its comments.
    pub draft: Option<String>,
}

/// A payload as JSON, or a draft, whose name ends with .toml.
pub(crate) fn read_given(path: &Path) -> Result<Given, Failure> {
    if path.extension().is_none_or(|extension| extension != "toml") {
        return Ok(Given { title: None, payload: read_payload(path)?, draft: None });
    }
    let draft = read_text(path)?;
    let Written { title, payload } = text::read(&draft).map_err(|mistakes| {
        let lines: Vec<_> = mistakes.iter().map(|mistake| format!("{}: {}", place(path), said(mistake))).collect();
        Failure::Usage(lines.join("\n"))
    })?;
    Ok(Given { title: Some(title), payload, draft: Some(draft) })
}

fn said(Mistake { place, what }: &Mistake) -> String {
    match place {
        Place::Pointer(pointer) => format!("{pointer}: {what}"),
        Place::Line(line) => format!("line {line}: {what}"),
    }
}

/// What the service would find wrong with a payload: with all of it, or only with its types while it is a draft.
pub(crate) fn mistakes(schema: &Value, payload: &Value, is_whole: bool) -> Vec<Mistake> {
    // A schema that this program cannot read is the service's to judge by.
    let Ok(schema) = PayloadSchema::compile(schema) else { return Vec::new() };
    let faults = if is_whole { schema.faults(payload) } else { schema.type_faults(payload) };
    faults.into_iter().map(|fault| Mistake::at(&fault.pointer, fault.detail)).collect()
}

/// A payload as the service would read it: a key that is given twice is a fault, not a choice. `-` is standard input.
pub(crate) fn read_payload(path: &Path) -> Result<Value, Failure> {
    let text = read_text(path)?;
    let bounds = Bounds { depth: PAYLOAD_DEPTH_MAX, values: PAYLOAD_VALUES_MAX };
    let value =
        json::parse(text.as_bytes(), bounds).map_err(|faults| Failure::Usage(list_faults(place(path), &faults)))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(Failure::Usage(format!("{}: a payload is a JSON object", place(path))))
    }
}

fn place(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".into() } else { path.display().to_string() }
}

/// As much as may be a payload, with its layout.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let limit = 4 * PAYLOAD_BYTES_MAX as u64;
    let mut text = String::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().take(limit).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text))
    };
    read.map_err(|error| Failure::environment(place(path), error))?;
    Ok(text)
}
