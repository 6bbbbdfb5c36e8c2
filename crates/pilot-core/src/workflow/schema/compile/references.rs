//! What a `$ref` can point to: a place in the document, or an anchor.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::reading::{Reader, Table, below};

/// Where schemas stand in a schema: one, a list of them, or a table.
const HOLDS_ONE: [&str; 11] = [
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const HOLDS_LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const HOLDS_TABLE: [&str; 5] = ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

pub(super) struct References<'d> {
    document: &'d Value,
    anchors: BTreeMap<&'d str, (String, &'d Value)>,
}

impl<'d> References<'d> {
    /// Invalid anchors are reported.
    pub(super) fn in_document(document: &'d Value, reader: &mut Reader) -> References<'d> {
        let mut anchors = BTreeMap::new();
        let mut open = vec![(String::new(), document)];
        while let Some((at, schema)) = open.pop() {
            let Value::Object(keywords) = schema else { continue };
            let table = Table { at: &at, keywords };
            if let Some(name) = reader.text(table, "$anchor") {
                if !is_anchor(name) {
                    let mend = "begin it with a letter, and use letters, digits, \"-\", \".\" and \"_\"";
                    reader.fault(&table.pointer("$anchor"), "this is not a valid name for an anchor", mend);
                } else if anchors.insert(name, (at.clone(), schema)).is_some() {
                    let says = format!("the anchor `{name}` is given more than once");
                    reader.fault(&table.pointer("$anchor"), says, "choose another name");
                }
            }
            open.extend(schemas_in(table));
        }
        References { document, anchors }
    }

    /// The schema that a reference points to, and its place.
    pub(super) fn find(&self, reference: &str) -> Result<(String, &'d Value), (String, &'static str)> {
        let Some(fragment) = reference.strip_prefix('#') else {
            let mend = "copy the other schema into $defs, and write \"$ref\" = \"#/$defs/name\"";
            return Err(("`$ref` must point inside this schema".to_owned(), mend));
        };
        let fragment = percent_decode_str(fragment).decode_utf8_lossy();
        let found = match fragment.strip_prefix('/') {
            Some(names) => self.document.pointer(&fragment).map(|schema| {
                let names = names.split('/').map(|name| name.replace("~1", "/").replace("~0", "~"));
                (names.fold(String::new(), |at, name| below(&at, &name)), schema)
            }),
            None if fragment.is_empty() => Some((String::new(), self.document)),
            None => self.anchors.get(&*fragment).cloned(),
        };
        let is_schema = |(_, schema): &(String, &Value)| schema.is_object() || schema.is_boolean();
        found.filter(is_schema).ok_or_else(|| {
            (format!("`$ref` points to `{reference}`, where there is no schema"), "correct it, or add the schema there")
        })
    }
}

/// The schemas that stand directly in a schema.
fn schemas_in<'d>(table: Table<'_, 'd>) -> Vec<(String, &'d Value)> {
    let one = HOLDS_ONE.iter().filter_map(|name| Some((table.pointer(name), table.get(name)?)));
    let lists = HOLDS_LIST.iter().filter_map(|name| Some((table.pointer(name), table.get(name)?.as_array()?)));
    let lists = lists.flat_map(|(at, list)| {
        list.iter().enumerate().map(move |(index, schema)| (below(&at, &index.to_string()), schema))
    });
    let tables = HOLDS_TABLE.iter().filter_map(|name| Some((table.pointer(name), table.get(name)?.as_object()?)));
    let tables = tables.flat_map(|(at, map)| map.iter().map(move |(name, schema)| (below(&at, name), schema)));
    one.chain(lists).chain(tables).collect()
}

fn is_anchor(name: &str) -> bool {
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || "-._".contains(sign);
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') && name.chars().all(is_sign)
}
