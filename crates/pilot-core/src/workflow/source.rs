//! A definition's text: TOML converted to JSON with the place of every value, and what is wrong with it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::Serialize;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::json::{self, join};

/// One thing that is wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable, for scripts.
    pub code: &'static str,
    /// JSON pointer into the TOML document, by its own key names: `/transition/3/roles`.
    pub pointer: String,
    pub message: String,
    /// The shortest path that breaks the rule, one step a line; empty if the flaw needs no path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    pub mend: String,
    /// The key is wrong, not its value.
    #[serde(skip)]
    at_key: bool,
}

impl Finding {
    pub(crate) fn new(code: &'static str, pointer: impl Into<String>) -> Finding {
        Finding {
            code,
            pointer: pointer.into(),
            message: String::new(),
            path: Vec::new(),
            mend: String::new(),
            at_key: false,
        }
    }

    pub(crate) fn says(self, message: impl Into<String>) -> Finding {
        Finding { message: message.into(), ..self }
    }

    pub(crate) fn mend(self, mend: impl Into<String>) -> Finding {
        Finding { mend: mend.into(), ..self }
    }

    pub(crate) fn at_key(self) -> Finding {
        Finding { at_key: true, ..self }
    }

    pub(crate) fn path(self, path: Vec<String>) -> Finding {
        Finding { path, ..self }
    }
}

/// Everything that is wrong with a definition, and where.
#[derive(Debug, Clone)]
pub struct Flaws {
    text: String,
    places: Places,
    findings: Vec<Finding>,
}

impl Flaws {
    pub(crate) fn new(text: &str, places: Places) -> Flaws {
        Flaws { text: text.to_owned(), places, findings: Vec::new() }
    }

    pub(crate) fn add(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.findings.extend(findings);
    }

    /// In the order of the file, as a person would fix them.
    pub(crate) fn sort(&mut self) {
        let places = &self.places;
        self.findings.sort_by_key(|finding| places.of(finding).start);
    }

    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The definition as it was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The byte range of the text that a finding is about.
    pub fn span(&self, finding: &Finding) -> Range<usize> {
        self.places.of(finding)
    }

    /// Line and column of a finding, both from 1.
    pub fn place(&self, finding: &Finding) -> (usize, usize) {
        let start = self.places.of(finding).start.min(self.text.len());
        let before = self.text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before.get(line_start..).map_or(0, |line| line.chars().count()) + 1;
        (before.matches('\n').count() + 1, column)
    }
}

impl fmt::Display for Flaws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            let (line, column) = self.place(finding);
            writeln!(f, "line {line}, column {column}: {} [{}]", finding.message, finding.code)?;
            for (number, step) in (1..).zip(&finding.path) {
                writeln!(f, "  {number}. {step}")?;
            }
            writeln!(f, "  {}", finding.mend)?;
        }
        Ok(())
    }
}

impl std::error::Error for Flaws {}

/// Where each value is in the text, by JSON pointer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    values: BTreeMap<String, Range<usize>>,
    keys: BTreeMap<String, Range<usize>>,
}

impl Places {
    pub(crate) fn mark(&mut self, pointer: String, span: Range<usize>) {
        self.values.insert(pointer, span);
    }

    fn of(&self, finding: &Finding) -> Range<usize> {
        let key = self.keys.get(&finding.pointer).filter(|_| finding.at_key);
        key.cloned().unwrap_or_else(|| self.find(&finding.pointer))
    }

    /// The span of the value, or of the nearest enclosing value that is written in the file.
    fn find(&self, pointer: &str) -> Range<usize> {
        let mut pointer = pointer;
        loop {
            if let Some(span) = self.values.get(pointer) {
                return span.clone();
            }
            match pointer.rsplit_once('/') {
                Some((parent, _)) => pointer = parent,
                None => return 0..0,
            }
        }
    }
}

/// TOML as JSON, with the places. Syntax errors are findings too, and parsing continues after them.
pub(crate) fn read_toml(text: &str) -> (Value, Places, Vec<Finding>) {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut reading = Reading { places: Places::default(), findings: Vec::new() };
    for (index, error) in errors.iter().enumerate() {
        let pointer = format!("#{index}");
        reading.places.mark(pointer.clone(), error.span().unwrap_or(0..0));
        let finding = Finding::new("syntax", pointer).says(format!("this is not valid TOML: {}", error.message()));
        reading.findings.push(finding.mend("see https://toml.io for how values are written"));
    }
    // Flaws of the whole document are shown at its first line.
    reading.places.mark(String::new(), 0..text.find('\n').unwrap_or(text.len()));
    let value = reading.table(document.get_ref(), "");
    (value, reading.places, reading.findings)
}

struct Reading {
    places: Places,
    findings: Vec<Finding>,
}

impl Reading {
    fn table(&mut self, table: &DeTable<'_>, at: &str) -> Value {
        let mut members = Map::new();
        for (key, value) in table {
            let pointer = join(at, key.get_ref());
            let member = self.value(value, &pointer);
            self.places.keys.insert(pointer.clone(), key.span());
            // A table's own span is all of its lines; its key is a better place to point at.
            if value.get_ref().is_table() {
                self.places.mark(pointer, key.span());
            }
            members.insert(key.get_ref().to_string(), member);
        }
        Value::Object(members)
    }

    /// A number that JSON cannot represent must not become something else.
    fn number(&mut self, number: Option<Value>, at: &str) -> Value {
        number.unwrap_or_else(|| {
            let finding = Finding::new("format", at).says("a definition holds no number of this size");
            self.findings.push(finding.mend("write a smaller number"));
            Value::Null
        })
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, at: &str) -> Value {
        self.places.mark(at.to_owned(), value.span());
        match value.get_ref() {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Boolean(yes) => Value::Bool(*yes),
            DeValue::Integer(number) => {
                let digits = number.as_str().replace('_', "");
                self.number(i64::from_str_radix(&digits, number.radix()).ok().map(Value::from), at)
            }
            DeValue::Float(number) => {
                let number = number.as_str().replace('_', "").parse().ok().and_then(json::number);
                self.number(number.map(Value::Number), at)
            }
            DeValue::Datetime(_) => {
                let finding = Finding::new("format", at).says("a definition cannot contain dates");
                self.findings.push(finding.mend("write it as a string in quotes, or leave it out"));
                Value::Null
            }
            DeValue::Array(list) => {
                let elements = list.iter().enumerate();
                Value::Array(elements.map(|(index, one)| self.value(one, &format!("{at}/{index}"))).collect())
            }
            DeValue::Table(table) => self.table(table, at),
        }
    }
}
