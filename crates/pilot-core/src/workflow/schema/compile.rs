//! From JSON to nodes. What a schema says is understood, or refused with its place. Keywords that JSON Schema does not know
//! are annotations, as it wants them to be.

mod chains;
mod reading;
mod references;

use std::collections::{BTreeMap, VecDeque};
use std::ptr;
use std::sync::Arc;

use serde_json::Value;

use self::chains::Flaw;
use self::reading::{Reader, Table, below};
use self::references::References;
use super::decimal::Decimal;
use super::format;
use super::node::{Keyword, Members, Node, NodeId, Others, ROOT, Schema};
use super::pattern::Pattern;
use super::rule::{Rule, TYPES, Type, order};
use crate::limits::{FAULTS_MAX, SCHEMA_PATTERNS_MAX};
use crate::workflow::source::Finding;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// How much of a value of the definition a fault shows.
const SHOWN_BYTES_MAX: usize = 256;

/// Keywords that are not implemented. Ignoring them would accept what the author wants refused.
const NOT_DONE: [(&str, &str); 6] = [
    ("$dynamicAnchor", "use $anchor"),
    ("$dynamicRef", "use $ref"),
    ("$recursiveAnchor", "leave it out"),
    ("$recursiveRef", "use $ref"),
    ("additionalItems", "list the first items in prefixItems, and describe the others in items"),
    ("dependencies", "use dependentRequired or dependentSchemas"),
];

type Limit = (&'static str, fn(Decimal) -> Rule, &'static str);
const LIMITS: [Limit; 4] = [
    ("minimum", Rule::Minimum, "less than the minimum of"),
    ("maximum", Rule::Maximum, "greater than the maximum of"),
    ("exclusiveMinimum", Rule::ExclusiveMinimum, "less than or equal to the minimum of"),
    ("exclusiveMaximum", Rule::ExclusiveMaximum, "greater than or equal to the maximum of"),
];

type Count = (&'static str, fn(u64) -> Rule, &'static str, [&'static str; 2]);
const COUNTS: [Count; 6] = [
    ("minLength", Rule::MinLength, "is shorter than", ["character", "characters"]),
    ("maxLength", Rule::MaxLength, "is longer than", ["character", "characters"]),
    ("minItems", Rule::MinItems, "has fewer than", ["item", "items"]),
    ("maxItems", Rule::MaxItems, "has more than", ["item", "items"]),
    ("minProperties", Rule::MinProperties, "has fewer than", ["property", "properties"]),
    ("maxProperties", Rule::MaxProperties, "has more than", ["property", "properties"]),
];

/// All findings at once, up to [`FAULTS_MAX`].
pub(super) fn compile(document: &Value) -> Result<Schema, Vec<Finding>> {
    let mut compiler = Compiler::new(document);
    compiler.node_at(String::new(), document);
    while let Some((id, schema)) = compiler.waiting.pop_front() {
        let node = compiler.node(id, schema);
        if let Some(place) = compiler.nodes.get_mut(id) {
            *place = node;
        }
    }
    compiler.check_chains();
    let mut findings = compiler.reader.findings;
    findings.truncate(FAULTS_MAX);
    if findings.is_empty() { Ok(Schema { nodes: compiler.nodes }) } else { Err(findings) }
}

struct Compiler<'d> {
    reader: Reader,
    references: References<'d>,
    nodes: Vec<Node>,
    /// The pointer of each node.
    places: Vec<String>,
    /// By the place of a schema in memory.
    ids: BTreeMap<*const Value, NodeId>,
    waiting: VecDeque<(NodeId, &'d Value)>,
    patterns: BTreeMap<&'d str, Arc<Pattern>>,
    /// How many states further patterns may have.
    room: usize,
}

impl<'d> Compiler<'d> {
    fn new(document: &'d Value) -> Compiler<'d> {
        let mut reader = Reader::default();
        let references = References::in_document(document, &mut reader);
        Compiler {
            reader,
            references,
            nodes: Vec::new(),
            places: Vec::new(),
            ids: BTreeMap::new(),
            waiting: VecDeque::new(),
            patterns: BTreeMap::new(),
            room: SCHEMA_PATTERNS_MAX,
        }
    }

    /// The node for the schema at a place, now or later.
    fn node_at(&mut self, at: String, schema: &'d Value) -> NodeId {
        if let Some(id) = self.ids.get(&ptr::from_ref(schema)) {
            return *id;
        }
        let id = self.nodes.len();
        self.nodes.push(Node::default());
        self.places.push(at);
        self.ids.insert(ptr::from_ref(schema), id);
        self.waiting.push_back((id, schema));
        id
    }

    fn node(&mut self, id: NodeId, schema: &'d Value) -> Node {
        let at = &self.places.get(id).cloned().unwrap_or_default();
        match schema {
            Value::Bool(true) => Node::default(),
            Value::Bool(false) => Node::never(),
            Value::Object(keywords) => {
                let table = Table { at, keywords };
                self.annotations(table, id == ROOT);
                let mut keywords = self.rules_of_values(table);
                keywords.extend(self.rules_of_members(table));
                keywords.extend(self.rules_of_text_and_lists(table));
                keywords.extend(self.inside(table));
                keywords.extend(self.in_place(table));
                keywords.extend(self.one(table, "unevaluatedProperties").map(Keyword::UnevaluatedMembers));
                keywords.extend(self.one(table, "unevaluatedItems").map(Keyword::UnevaluatedItems));
                Node { keywords }
            }
            _ => {
                self.reader.fault(at, "a schema must be a table, or true or false", "write { type = \"…\" }");
                Node::default()
            }
        }
    }

    /// Annotations, which judge nothing but must have the right type; and what is not supported.
    fn annotations(&mut self, table: Table<'_, 'd>, is_root: bool) {
        for (name, mend) in NOT_DONE.iter().filter(|(name, _)| table.keywords.contains_key(*name)) {
            self.reader.fault_of_keyword(table, name, &format!("`{name}` is not supported"), mend);
        }
        for name in ["$comment", "title", "description", "contentEncoding", "contentMediaType"] {
            self.reader.text(table, name);
        }
        for name in ["deprecated", "readOnly", "writeOnly"] {
            self.reader.flag(table, name);
        }
        self.reader.list(table, "examples");
        if self.reader.text(table, "$schema").is_some_and(|dialect| dialect.trim_end_matches('#') != DIALECT) {
            let mend = format!("leave it out, or write \"$schema\" = \"{DIALECT}\"");
            self.reader.fault(&table.pointer("$schema"), "only JSON Schema 2020-12 is supported", mend);
        }
        if self.reader.text(table, "$id").is_some() && !is_root {
            let mend = "leave it out; refer to this place by its path, or give it an $anchor";
            self.reader.fault_of_keyword(table, "$id", "`$id` is supported only for the schema as a whole", mend);
        }
        // Checked, and used only where something refers to them.
        for name in ["$defs", "definitions"] {
            self.named(table, name);
        }
        self.one(table, "contentSchema");
    }

    fn rules_of_values(&mut self, table: Table<'_, 'd>) -> Vec<Keyword> {
        let mut rules: Vec<Keyword> = self.types(table).into_iter().collect();
        rules.extend(
            table.get("const").map(|value| rule(Rule::Const(value.clone()), format!("{} was expected", shown(value)))),
        );
        rules.extend(self.reader.list(table, "enum").map(|options| one_of(options)));
        for (name, limit, words) in LIMITS {
            let number = self.reader.number(table, name);
            rules.extend(number.map(|number| rule(limit(Decimal::of(number)), format!("this is {words} {number}"))));
        }
        let step = self.reader.step(table, "multipleOf");
        rules.extend(
            step.map(|step| rule(Rule::MultipleOf(Decimal::of(step)), format!("this is not a multiple of {step}"))),
        );
        for (name, limit, words, [one, many]) in COUNTS {
            let count = self.reader.count(table, name);
            rules.extend(count.map(|count| {
                rule(limit(count), format!("this {words} {count} {}", if count == 1 { one } else { many }))
            }));
        }
        rules
    }

    fn types(&mut self, table: Table<'_, 'd>) -> Option<Keyword> {
        let value = table.get("type")?;
        let names = value.as_array().filter(|list| !list.is_empty()).map_or(std::slice::from_ref(value), Vec::as_slice);
        let Some(types) = names.iter().map(type_named).collect::<Option<Vec<Type>>>() else {
            let known = TYPES.map(|(name, _)| format!("\"{name}\"")).join(", ");
            let mend = format!("use {known}, or a list of them");
            self.reader.fault(&table.pointer("type"), "`type` must be the name of a type, or a list of them", mend);
            return None;
        };
        let shown = TYPES.iter().filter(|(_, one)| types.contains(one)).map(|(name, _)| format!("\"{name}\""));
        let shown: Vec<String> = shown.collect();
        let plural = if shown.len() == 1 { "" } else { "s" };
        Some(rule(Rule::Type(types), format!("this is not of type{plural} {}", shown.join(", "))))
    }

    fn rules_of_members(&mut self, table: Table<'_, 'd>) -> Vec<Keyword> {
        let required = self.reader.names(table, "required");
        let mut rules: Vec<Keyword> = required.map(Keyword::Required).into_iter().collect();
        if let Some(keywords) = self.reader.map(table, "dependentRequired") {
            let at = &table.pointer("dependentRequired");
            let names = |name: &String| Some((name.clone(), self.reader.names(Table { at, keywords }, name)?));
            rules.push(Keyword::DependentRequired(keywords.keys().filter_map(names).collect()));
        }
        rules
    }

    fn rules_of_text_and_lists(&mut self, table: Table<'_, 'd>) -> Vec<Keyword> {
        let mut rules = Vec::new();
        if let Some(text) = self.reader.text(table, "pattern") {
            // The usual way to say that a text must not be empty.
            let sentence = if text == "\\S" {
                "must not be empty".to_owned()
            } else {
                format!("this does not match \"{}\"", cut(text))
            };
            let pattern = self.pattern(&table.pointer("pattern"), text);
            rules.extend(pattern.map(|pattern| rule(Rule::Pattern(pattern), sentence)));
        }
        if let Some(name) = self.reader.text(table, "format") {
            if let Some(check) = format::find(name) {
                rules.push(rule(Rule::Format(check), format!("this is not a \"{name}\"")));
            } else {
                let says = format!("the format `{name}` is not checked, so it would let every text pass");
                let mend = format!("write a pattern, or use one of: {}", format::names());
                self.reader.fault(&table.pointer("format"), says, mend);
            }
        }
        if self.reader.flag(table, "uniqueItems") == Some(true) {
            rules.push(rule(Rule::UniqueItems, "this has non-unique elements".to_owned()));
        }
        rules
    }

    fn pattern(&mut self, at: &str, text: &'d str) -> Option<Arc<Pattern>> {
        if let Some(known) = self.patterns.get(text) {
            return Some(Arc::clone(known));
        }
        match Pattern::read(text, &mut self.room) {
            Ok(pattern) => {
                let pattern = Arc::new(pattern);
                self.patterns.insert(text, Arc::clone(&pattern));
                Some(pattern)
            }
            Err(reason) => {
                let mend = "correct or shorten it; look-around and backreferences are not supported";
                self.reader.fault(at, format!("this pattern cannot be used: {reason}"), mend);
                None
            }
        }
    }

    /// Keywords about members and items.
    fn inside(&mut self, table: Table<'_, 'd>) -> Vec<Keyword> {
        let mut keywords: Vec<Keyword> = self.members(table).map(Keyword::Members).into_iter().collect();
        keywords.extend(self.one(table, "propertyNames").map(Keyword::MemberNames));
        let first = self.many(table, "prefixItems");
        let others = if table.get("items").is_some_and(Value::is_array) {
            let mend = "use prefixItems for the first items, and items for the others";
            self.reader.fault(&table.pointer("items"), "`items` must be one schema", mend);
            None
        } else {
            self.one(table, "items")
        };
        if first.is_some() || others.is_some() {
            keywords.push(Keyword::Items { first: first.unwrap_or_default(), others });
        }
        let (min, max) = (self.reader.count(table, "minContains"), self.reader.count(table, "maxContains"));
        let item = self.one(table, "contains");
        keywords.extend(item.map(|item| Keyword::Contains { item, min: min.unwrap_or(1), max }));
        keywords
    }

    fn members(&mut self, table: Table<'_, 'd>) -> Option<Members> {
        let named = self.named(table, "properties");
        let patterns = self.named(table, "patternProperties").map(|list| {
            let at = table.pointer("patternProperties");
            let read = |(text, id): (&'d str, NodeId)| Some((self.pattern(&below(&at, text), text)?, id));
            list.into_iter().filter_map(read).collect()
        });
        let others = match (table.get("additionalProperties"), self.one(table, "additionalProperties")) {
            (Some(Value::Bool(false)), _) => Some(Others::Refused),
            (_, others) => others.map(Others::Judged),
        };
        if named.is_none() && patterns.is_none() && others.is_none() {
            return None;
        }
        let named = named.into_iter().flatten().map(|(name, id)| (name.to_owned(), id)).collect();
        Some(Members { named, patterns: patterns.unwrap_or_default(), others: others.unwrap_or_default() })
    }

    /// Keywords whose schemas judge the same value.
    fn in_place(&mut self, table: Table<'_, 'd>) -> Vec<Keyword> {
        let mut keywords = Vec::new();
        if let Some(list) = self.named(table, "dependentSchemas") {
            let list = list.into_iter().map(|(name, id)| (name.to_owned(), id)).collect();
            keywords.push(Keyword::DependentSchemas(list));
        }
        keywords.extend(self.many(table, "allOf").map(Keyword::AllOf));
        let has_one_of = table.keywords.contains_key("oneOf");
        keywords.extend(self.many(table, "anyOf").map(|branches| Keyword::AnyOf { branches, has_one_of }));
        keywords.extend(self.many(table, "oneOf").map(Keyword::OneOf));
        keywords.extend(self.one(table, "not").map(Keyword::Not));
        let (then, otherwise) = (self.one(table, "then"), self.one(table, "else"));
        keywords.extend(self.one(table, "if").map(|test| Keyword::If { test, then, otherwise }));
        if let Some(reference) = self.reader.text(table, "$ref") {
            match self.references.find(reference) {
                Ok((at, schema)) => keywords.push(Keyword::Ref(self.node_at(at, schema))),
                Err((says, mend)) => self.reader.fault(&table.pointer("$ref"), says, mend),
            }
        }
        keywords
    }

    fn one(&mut self, table: Table<'_, 'd>, name: &str) -> Option<NodeId> {
        table.get(name).map(|schema| self.node_at(table.pointer(name), schema))
    }

    fn many(&mut self, table: Table<'_, 'd>, name: &str) -> Option<Vec<NodeId>> {
        let at = table.pointer(name);
        let schemas = self.reader.schemas(table, name)?.iter().enumerate();
        Some(schemas.map(|(index, schema)| self.node_at(below(&at, &index.to_string()), schema)).collect())
    }

    fn named(&mut self, table: Table<'_, 'd>, name: &str) -> Option<Vec<(&'d str, NodeId)>> {
        let at = table.pointer(name);
        let schemas = self.reader.map(table, name)?.iter();
        Some(schemas.map(|(name, schema)| (name.as_str(), self.node_at(below(&at, name), schema))).collect())
    }

    fn check_chains(&mut self) {
        let Some((id, flaw)) = chains::find_flaw(&self.nodes) else { return };
        let at = self.places.get(id).cloned().unwrap_or_default();
        match flaw {
            Flaw::Endless => {
                let mend = "refer to it from properties or items, or leave it out";
                self.reader.fault(&below(&at, "$ref"), "this `$ref` leads back to itself for the same value", mend);
            }
            Flaw::TooLong => {
                let says = "too many schemas are nested here for the same value";
                self.reader.fault(&at, says, "combine some of them");
            }
        }
    }
}

fn rule(rule: Rule, sentence: String) -> Keyword {
    Keyword::Rule { rule, sentence }
}

/// A value of the definition, as far as a fault shows it.
fn shown(value: &Value) -> String {
    cut(&value.to_string())
}

fn cut(text: &str) -> String {
    let shown = text.get(..text.floor_char_boundary(SHOWN_BYTES_MAX)).unwrap_or_default();
    if shown.len() < text.len() { format!("{shown}…") } else { shown.to_owned() }
}

fn type_named(value: &Value) -> Option<Type> {
    TYPES.iter().find(|(name, _)| value.as_str() == Some(name)).map(|(_, one)| *one)
}

/// Names up to three of the values, or two and how many others there are.
fn one_of(options: &[Value]) -> Keyword {
    let shown: Vec<String> = options.iter().take(3).map(shown).collect();
    let shown = match shown.as_slice() {
        [first, second, _] if options.len() > 3 => {
            format!("{first}, {second} or {} other candidates", options.len() - 2)
        }
        [first, second, third] => format!("{first}, {second} or {third}"),
        few => few.join(" or "),
    };
    let mut options = options.to_vec();
    options.sort_by(order);
    rule(Rule::Enum(options), format!("this is not one of {shown}"))
}
