//! Readers for values of one type each, with the message if they do not fit. `need_…` reports a missing key; the others
//! accept it.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::limits;
use crate::role::Role;
use crate::role_set::RoleSet;
use crate::workflow::source::Finding;
use crate::workflow::{Name, Span};

const NAME_RULE: &str = "a name has 1 to 64 characters: lowercase letters, digits, - and _, beginning with a letter";

/// An object of the document and its pointer.
#[derive(Clone, Copy)]
pub(super) struct Table<'v> {
    pub(super) members: &'v Map<String, Value>,
    pub(super) at: &'v str,
}

impl<'v> Table<'v> {
    pub(super) fn get(self, key: &str) -> Option<&'v Value> {
        self.members.get(key)
    }

    pub(super) fn pointer(self, key: &str) -> String {
        crate::json::join(self.at, key)
    }
}

pub(super) struct Reader {
    pub(super) findings: Vec<Finding>,
}

impl Reader {
    pub(super) fn fault(&mut self, pointer: impl Into<String>, says: impl Into<String>, mend: impl Into<String>) {
        self.findings.push(Finding::new("format", pointer).says(says).mend(mend));
    }

    pub(super) fn table<'v>(&mut self, value: &'v Value, at: &'v str) -> Option<Table<'v>> {
        let members = value.as_object();
        if members.is_none() {
            self.fault(at, "this must be a table", "write it as { key = value } or under a [header]");
        }
        Some(Table { members: members?, at })
    }

    pub(super) fn list<T>(
        &mut self,
        table: Table<'_>,
        key: &str,
        max: usize,
        read: fn(&mut Reader, &Value, &str) -> Option<T>,
    ) -> Vec<T> {
        let Some(value) = table.get(key) else { return Vec::new() };
        let Some(list) = value.as_array().filter(|list| list.len() <= max) else {
            self.fault(
                table.pointer(key),
                format!("this must be a list of at most {max} tables"),
                format!("begin each with [[{key}]]"),
            );
            return Vec::new();
        };
        list.iter().enumerate().filter_map(|(index, one)| read(self, one, &format!("/{key}/{index}"))).collect()
    }

    pub(super) fn known(&mut self, table: Table<'_>, keys: &[&str]) {
        for key in table.members.keys().filter(|key| !keys.contains(&key.as_str())) {
            let nearest =
                keys.iter().min_by_key(|known| distance(known, key)).filter(|known| distance(known, key) <= 3);
            let mend = match nearest {
                Some(known) => format!("did you mean `{known}`?"),
                None => format!("the keys here are {}", keys.join(", ")),
            };
            let says = format!("`{key}` is not a valid key here");
            self.findings.push(Finding::new("format", table.pointer(key)).at_key().says(says).mend(mend));
        }
    }

    pub(super) fn required(&mut self, table: Table<'_>, key: &str, mend: &str) {
        if table.get(key).is_none() {
            self.fault(table.at, format!("`{key}` is missing"), mend);
        }
    }

    pub(super) fn text(&mut self, table: Table<'_>, key: &str) -> Option<String> {
        let value = table.get(key)?;
        let text = value.as_str().filter(|text| text.chars().count() <= limits::COMMENT_CHARS_MAX);
        if text.is_none() {
            self.fault(
                table.pointer(key),
                format!("`{key}` must be a string of at most 4,000 characters"),
                "put it in quotes",
            );
        }
        text.map(|text| text.trim().to_owned())
    }

    pub(super) fn need_text(&mut self, table: Table<'_>, key: &str) -> String {
        self.required(table, key, &format!("add {key} = \"…\""));
        self.text(table, key).unwrap_or_default()
    }

    pub(super) fn need_name(&mut self, table: Table<'_>, key: &str) -> Name {
        let text = self.need_text(table, key);
        if table.get(key).is_some_and(Value::is_string) && !is_name(&text) {
            self.fault(table.pointer(key), NAME_RULE, "choose a name such as \"submitted\"");
        }
        text.into()
    }

    pub(super) fn names(&mut self, table: Table<'_>, key: &str) -> Option<Vec<Name>> {
        let value = table.get(key)?;
        let list: Option<Vec<Name>> =
            value.as_array().and_then(|list| list.iter().map(|one| one.as_str().map(Name::from)).collect());
        if list.as_ref().is_none_or(Vec::is_empty) {
            self.fault(
                table.pointer(key),
                format!("`{key}` must be a list of names"),
                format!("write {key} = [\"…\"]"),
            );
        }
        list
    }

    pub(super) fn need_names(&mut self, table: Table<'_>, key: &str) -> Vec<Name> {
        self.required(table, key, &format!("add {key} = [\"…\"]"));
        self.names(table, key).unwrap_or_default()
    }

    pub(super) fn flag(&mut self, table: Table<'_>, key: &str) -> bool {
        let Some(value) = table.get(key) else { return false };
        if !value.is_boolean() {
            self.fault(table.pointer(key), format!("`{key}` must be true or false"), format!("write {key} = true"));
        }
        value == &Value::Bool(true)
    }

    pub(super) fn integer(&mut self, table: Table<'_>, key: &str, bounds: RangeInclusive<u32>) -> Option<u32> {
        let value = table.get(key)?;
        let number =
            value.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| bounds.contains(number));
        if number.is_none() {
            let says = format!("`{key}` must be an integer from {} to {}", bounds.start(), bounds.end());
            self.fault(table.pointer(key), says, format!("write {key} = {}", bounds.start().max(&1)));
        }
        number
    }

    pub(super) fn need_integer(&mut self, table: Table<'_>, key: &str, bounds: RangeInclusive<u32>) -> u32 {
        self.required(table, key, &format!("add {key} = {}", bounds.start().max(&1)));
        self.integer(table, key, bounds).unwrap_or_default()
    }

    pub(super) fn span(&mut self, table: Table<'_>, key: &str) -> Option<Span> {
        let value = table.get(key)?;
        let span = value.as_str().and_then(|text| text.parse().ok());
        if span.is_none() {
            let says = format!("`{key}` must be a duration of at most ten years");
            self.fault(table.pointer(key), says, "write it as \"90s\", \"15m\", \"72h\" or \"30d\"");
        }
        span
    }

    pub(super) fn need_span(&mut self, table: Table<'_>, key: &str) -> Option<Span> {
        self.required(table, key, &format!("add {key} = \"4h\""));
        self.span(table, key)
    }

    pub(super) fn roles(&mut self, table: Table<'_>, key: &str) -> Option<RoleSet> {
        let value = table.get(key)?;
        let Some(list) = value.as_array() else {
            self.fault(
                table.pointer(key),
                format!("`{key}` must be a list of roles"),
                format!("write {key} = [\"approver\"]"),
            );
            return None;
        };
        let mut roles = RoleSet::EMPTY;
        for (index, one) in list.iter().enumerate() {
            if let Some(role) = one.as_str().and_then(|text| text.parse::<Role>().ok()) {
                roles = roles.with(role);
            } else {
                let known = Role::ALL.map(Role::as_str).join(", ");
                self.fault(
                    format!("{}/{index}", table.pointer(key)),
                    "this is not a role",
                    format!("the roles are {known}"),
                );
            }
        }
        Some(roles)
    }

    pub(super) fn need_roles(&mut self, table: Table<'_>, key: &str) -> RoleSet {
        self.required(table, key, &format!("add {key} = [\"…\"]"));
        self.roles(table, key).unwrap_or_default()
    }

    pub(super) fn word<T: Copy>(&mut self, table: Table<'_>, key: &str, words: &[(&str, T)]) -> Option<T> {
        let value = table.get(key)?;
        let found = words.iter().find(|(word, _)| value == word).map(|(_, meaning)| *meaning);
        if found.is_none() {
            self.one_of(table.pointer(key), words);
        }
        found
    }

    pub(super) fn words<T: Copy>(&mut self, table: Table<'_>, key: &str, words: &[(&str, T)]) -> Vec<T> {
        let Some(value) = table.get(key) else { return Vec::new() };
        let elements = value.as_array().map(Vec::as_slice).unwrap_or_default();
        let found: Vec<T> = elements
            .iter()
            .filter_map(|one| words.iter().find(|(word, _)| one == word).map(|(_, meaning)| *meaning))
            .collect();
        if !value.is_array() || found.len() != elements.len() {
            self.one_of(table.pointer(key), words);
        }
        found
    }

    pub(super) fn one_of<T>(&mut self, pointer: String, words: &[(&str, T)]) {
        let known: Vec<_> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        self.fault(pointer, "this value is not allowed here", format!("use {}", known.join(" or ")));
    }
}

fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    text.len() <= 64 && text.bytes().all(plain) && text.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
}

/// How many letters differ: enough to guess which key was meant.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut before = i;
        let mut left = i + 1;
        for (b, cell) in other.bytes().zip(row.iter_mut().skip(1)) {
            let here = (before + usize::from(a != b)).min(left + 1).min(*cell + 1);
            before = *cell;
            *cell = here;
            left = here;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}
