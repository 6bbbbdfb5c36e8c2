//! What a schema says about a value by itself.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::decimal::Decimal;
use super::format::Check;
use super::pattern::Pattern;
use super::work::Work;

/// This many bytes of text cost one step.
const BYTES_PER_STEP: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

/// In the order in which a fault names them.
pub(super) const TYPES: [(&str, Type); 7] = [
    ("null", Type::Null),
    ("boolean", Type::Boolean),
    ("integer", Type::Integer),
    ("number", Type::Number),
    ("string", Type::String),
    ("array", Type::Array),
    ("object", Type::Object),
];

#[derive(Debug)]
pub(super) enum Rule {
    Never,
    Type(Vec<Type>),
    Const(Value),
    /// Sorted by [`order`].
    Enum(Vec<Value>),
    Minimum(Decimal),
    Maximum(Decimal),
    ExclusiveMinimum(Decimal),
    ExclusiveMaximum(Decimal),
    MultipleOf(Decimal),
    MinLength(u64),
    MaxLength(u64),
    MinItems(u64),
    MaxItems(u64),
    MinProperties(u64),
    MaxProperties(u64),
    Pattern(Arc<Pattern>),
    Format(Check),
    UniqueItems,
}

impl Rule {
    /// A rule about another type says nothing.
    pub(super) fn holds(&self, value: &Value, work: &mut Work) -> bool {
        match (self, value) {
            (Rule::Never, _) => false,
            (Rule::Type(types), _) => types.iter().any(|one| is_of(value, *one)),
            (Rule::Const(wanted), _) => {
                work.spend(size(value));
                order(wanted, value).is_eq()
            }
            (Rule::Enum(options), _) => {
                work.spend(size(value));
                options.binary_search_by(|option| order(option, value)).is_ok()
            }
            (Rule::Minimum(limit), Value::Number(number)) => Decimal::of(number) >= *limit,
            (Rule::Maximum(limit), Value::Number(number)) => Decimal::of(number) <= *limit,
            (Rule::ExclusiveMinimum(limit), Value::Number(number)) => Decimal::of(number) > *limit,
            (Rule::ExclusiveMaximum(limit), Value::Number(number)) => Decimal::of(number) < *limit,
            (Rule::MultipleOf(step), Value::Number(number)) => Decimal::of(number).is_multiple_of(*step),
            (Rule::MinLength(min), Value::String(text)) => characters(text, work) >= *min,
            (Rule::MaxLength(max), Value::String(text)) => characters(text, work) <= *max,
            (Rule::MinItems(min), Value::Array(list)) => count(list.len()) >= *min,
            (Rule::MaxItems(max), Value::Array(list)) => count(list.len()) <= *max,
            (Rule::MinProperties(min), Value::Object(members)) => count(members.len()) >= *min,
            (Rule::MaxProperties(max), Value::Object(members)) => count(members.len()) <= *max,
            (Rule::Pattern(pattern), Value::String(text)) => pattern.is_in(text, work),
            (Rule::Format(is_valid), Value::String(text)) => {
                work.spend(text.len() / BYTES_PER_STEP);
                is_valid(text)
            }
            (Rule::UniqueItems, Value::Array(list)) => are_unique(list, work),
            _ => true,
        }
    }
}

fn is_of(value: &Value, wanted: Type) -> bool {
    match value {
        Value::Null => wanted == Type::Null,
        Value::Bool(_) => wanted == Type::Boolean,
        Value::Number(number) => wanted == Type::Number || wanted == Type::Integer && Decimal::of(number).is_integer(),
        Value::String(_) => wanted == Type::String,
        Value::Array(_) => wanted == Type::Array,
        Value::Object(_) => wanted == Type::Object,
    }
}

pub(super) fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

fn characters(text: &str, work: &mut Work) -> u64 {
    work.spend(text.len() / BYTES_PER_STEP);
    count(text.chars().count())
}

/// What it costs to look at all of a value.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => 1 + text.len() / BYTES_PER_STEP,
        Value::Array(list) => 1 + list.iter().map(size).sum::<usize>(),
        Value::Object(members) => {
            1 + members.iter().map(|(name, member)| name.len() / BYTES_PER_STEP + size(member)).sum::<usize>()
        }
    }
}

/// Sorted, equals stand next to each other: comparing each with each would take a minute for a large list.
fn are_unique(list: &[Value], work: &mut Work) -> bool {
    let depth = list.len().checked_ilog2().unwrap_or(0) + 1;
    work.spend(usize::try_from(depth).unwrap_or(usize::MAX).saturating_mul(list.iter().map(size).sum()));
    let mut sorted: Vec<&Value> = list.iter().collect();
    sorted.sort_unstable_by(|one, other| order(one, other));
    sorted.is_sorted_by(|one, other| order(one, other).is_lt())
}

/// An order in which exactly those values are equal that JSON Schema calls equal: 1 and 1.0 are.
pub(super) fn order(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::Number(one), Value::Number(other)) => Decimal::of(one).cmp(&Decimal::of(other)),
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Array(one), Value::Array(other)) => {
            one.len().cmp(&other.len()).then_with(|| first_difference(one.iter().zip(other), |(a, b)| order(a, b)))
        }
        (Value::Object(one), Value::Object(other)) => one.len().cmp(&other.len()).then_with(|| members(one, other)),
        _ => rank(one).cmp(&rank(other)),
    }
}

/// Both are sorted by name.
fn members(one: &Map<String, Value>, other: &Map<String, Value>) -> Ordering {
    first_difference(one.iter().zip(other), |((name, a), (other, b))| name.cmp(other).then_with(|| order(a, b)))
}

fn first_difference<T>(pairs: impl Iterator<Item = T>, compare: impl FnMut(T) -> Ordering) -> Ordering {
    pairs.map(compare).find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}
