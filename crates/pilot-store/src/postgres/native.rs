//! Values of a copy in the types of PostgreSQL.

use tokio_postgres::types::{ToSql, Type};

use super::failure;
use crate::tables::{Kind, Row, Value};
use crate::{Result, StoreError};

/// A value in the type of its column.
pub(super) enum Native {
    Big(Option<i64>),
    Int(Option<i32>),
    Small(Option<i16>),
    Flag(Option<bool>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
}

pub(super) fn type_of(kind: Kind) -> Type {
    match kind {
        Kind::Big => Type::INT8,
        Kind::Int => Type::INT4,
        Kind::Small => Type::INT2,
        Kind::Flag => Type::BOOL,
        Kind::Text => Type::TEXT,
        Kind::Bytes => Type::BYTEA,
    }
}

impl Native {
    pub(super) fn of(value: Value, (name, kind): (&str, Kind)) -> Result<Native> {
        let wrong = || StoreError::Damaged(format!("a value of {name} is not one that PostgreSQL can store there"));
        match (kind, value) {
            (_, Value::Null) => Ok(Native::null(kind)),
            (Kind::Big, Value::Number(number)) => Ok(Native::Big(Some(number))),
            (Kind::Int, Value::Number(number)) => Ok(Native::Int(Some(number.try_into().map_err(|_| wrong())?))),
            (Kind::Small, Value::Number(number)) => Ok(Native::Small(Some(number.try_into().map_err(|_| wrong())?))),
            (Kind::Flag, Value::Number(number @ 0..=1)) => Ok(Native::Flag(Some(number == 1))),
            (Kind::Text, Value::Text(text)) if text.contains('\0') => {
                Err(StoreError::Refused(format!("a {name} has a NUL character in it, which PostgreSQL cannot store")))
            }
            (Kind::Text, Value::Text(text)) => Ok(Native::Text(Some(text))),
            (Kind::Bytes, Value::Bytes(bytes)) => Ok(Native::Bytes(Some(bytes))),
            _ => Err(wrong()),
        }
    }

    fn null(kind: Kind) -> Native {
        match kind {
            Kind::Big => Native::Big(None),
            Kind::Int => Native::Int(None),
            Kind::Small => Native::Small(None),
            Kind::Flag => Native::Flag(None),
            Kind::Text => Native::Text(None),
            Kind::Bytes => Native::Bytes(None),
        }
    }

    pub(super) fn to_sql(&self) -> &(dyn ToSql + Sync) {
        match self {
            Native::Big(value) => value,
            Native::Int(value) => value,
            Native::Small(value) => value,
            Native::Flag(value) => value,
            Native::Text(value) => value,
            Native::Bytes(value) => value,
        }
    }
}

/// A row of a copy, in the types of its columns.
pub(super) fn natives(row: Row, columns: &[(&str, Kind)]) -> Result<Vec<Native>> {
    row.into_iter().zip(columns).map(|(value, column)| Native::of(value, *column)).collect()
}

pub(super) fn read(row: &tokio_postgres::Row, column: usize, kind: Kind) -> Result<Value> {
    let number = |number: Option<i64>| number.map_or(Value::Null, Value::Number);
    let value = match kind {
        Kind::Big => row.try_get(column).map(number),
        Kind::Int => row.try_get::<_, Option<i32>>(column).map(|found| number(found.map(i64::from))),
        Kind::Small => row.try_get::<_, Option<i16>>(column).map(|found| number(found.map(i64::from))),
        Kind::Flag => row.try_get::<_, Option<bool>>(column).map(|found| number(found.map(i64::from))),
        Kind::Text => row.try_get::<_, Option<String>>(column).map(|found| found.map_or(Value::Null, Value::Text)),
        Kind::Bytes => row.try_get::<_, Option<Vec<u8>>>(column).map(|found| found.map_or(Value::Null, Value::Bytes)),
    };
    value.map_err(|error| failure::of_query(&error))
}
