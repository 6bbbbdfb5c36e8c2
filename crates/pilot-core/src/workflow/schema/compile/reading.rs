//! Reads the values of keywords, each with its type.

use serde_json::{Map, Number, Value};

use super::super::decimal::Decimal;
use crate::json::join;
use crate::limits::POINTER_BYTES_MAX;
use crate::workflow::source::Finding;

/// A schema with its keywords, and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Table<'t, 'd> {
    pub(super) at: &'t str,
    pub(super) keywords: &'d Map<String, Value>,
}

impl<'d> Table<'_, 'd> {
    pub(super) fn get(self, name: &str) -> Option<&'d Value> {
        self.keywords.get(name)
    }

    pub(super) fn pointer(self, name: &str) -> String {
        below(self.at, name)
    }
}

/// The place of what `name` stands for in the schema at `at`. A pointer that is too long to show stays at what is around
/// the place: with it, every schema inside would have one as long.
pub(super) fn below(at: &str, name: &str) -> String {
    let pointer = join(at, name);
    if pointer.len() > POINTER_BYTES_MAX { at.to_owned() } else { pointer }
}

#[derive(Default)]
pub(super) struct Reader {
    pub(super) findings: Vec<Finding>,
}

impl Reader {
    pub(super) fn fault(&mut self, at: &str, says: impl Into<String>, mend: impl Into<String>) {
        let finding = Finding::new("payload_schema", format!("/payload_schema{at}"));
        self.findings.push(finding.says(says).mend(mend));
    }

    /// The keyword is what is wrong, not its value.
    pub(super) fn fault_of_keyword(&mut self, table: Table<'_, '_>, name: &str, says: &str, mend: &str) {
        let finding = Finding::new("payload_schema", format!("/payload_schema{}", table.pointer(name)));
        self.findings.push(finding.at_key().says(says).mend(mend));
    }

    fn read<'d, T>(
        &mut self,
        table: Table<'_, 'd>,
        name: &str,
        read: impl FnOnce(&'d Value) -> Option<T>,
        (must, example): (&str, &str),
    ) -> Option<T> {
        let found = read(table.get(name)?);
        if found.is_none() {
            // As a key of TOML.
            let is_bare = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
            let key = if is_bare { name.to_owned() } else { format!("\"{name}\"") };
            self.fault(&table.pointer(name), format!("`{name}` must be {must}"), format!("write {key} = {example}"));
        }
        found
    }

    pub(super) fn text<'d>(&mut self, table: Table<'_, 'd>, name: &str) -> Option<&'d str> {
        self.read(table, name, Value::as_str, ("a string", "\"…\""))
    }

    pub(super) fn flag(&mut self, table: Table<'_, '_>, name: &str) -> Option<bool> {
        self.read(table, name, Value::as_bool, ("true or false", "true"))
    }

    pub(super) fn list<'d>(&mut self, table: Table<'_, 'd>, name: &str) -> Option<&'d Vec<Value>> {
        self.read(table, name, Value::as_array, ("a list", "[…]"))
    }

    pub(super) fn map<'d>(&mut self, table: Table<'_, 'd>, name: &str) -> Option<&'d Map<String, Value>> {
        self.read(table, name, Value::as_object, ("a table", "{ name = … }"))
    }

    pub(super) fn schemas<'d>(&mut self, table: Table<'_, 'd>, name: &str) -> Option<&'d Vec<Value>> {
        let read = |value: &'d Value| value.as_array().filter(|list| !list.is_empty());
        self.read(table, name, read, ("a list of one or more schemas", "[{ … }]"))
    }

    pub(super) fn number<'d>(&mut self, table: Table<'_, 'd>, name: &str) -> Option<&'d Number> {
        self.read(table, name, Value::as_number, ("a number", "1"))
    }

    pub(super) fn step<'d>(&mut self, table: Table<'_, 'd>, name: &str) -> Option<&'d Number> {
        let read = |value: &'d Value| value.as_number().filter(|number| Decimal::of(number).is_positive());
        self.read(table, name, read, ("a number above 0", "0.01"))
    }

    pub(super) fn count(&mut self, table: Table<'_, '_>, name: &str) -> Option<u64> {
        let read = |value: &Value| value.as_number().and_then(|number| Decimal::of(number).as_count());
        self.read(table, name, read, ("a whole number that is not negative", "1"))
    }

    pub(super) fn names(&mut self, table: Table<'_, '_>, name: &str) -> Option<Vec<String>> {
        let read = |value: &Value| value.as_array()?.iter().map(|one| one.as_str().map(str::to_owned)).collect();
        self.read(table, name, read, ("a list of member names", "[\"…\"]"))
    }
}
