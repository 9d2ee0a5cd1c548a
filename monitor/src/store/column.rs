//! Conversion of values to and from SQLite columns: natural numbers, names of variants, JSON. A value of the
//! wrong type is damage.

use rusqlite::{Row, types::Type};
use serde::{Serialize, de::DeserializeOwned};

use orphand_core::model::BootTime;

/// A natural number as SQLite's signed integer; too large numbers become the maximum.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Reads a natural number.
pub(super) fn natural(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    optional(row, column).map(Option::unwrap_or_default)
}

/// Reads a natural number that may be NULL.
pub(super) fn optional(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    let number: Option<i64> = row.get(column)?;
    number
        .map(|n| u64::try_from(n).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, n)))
        .transpose()
}

/// A value as JSON; a variant without fields as its bare name.
pub(super) fn json<T: Serialize>(value: &T) -> rusqlite::Result<String> {
    let json = serde_json::to_value(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    Ok(json.as_str().map_or_else(|| json.to_string(), str::to_owned))
}

/// Reads a list or an object that [`json`] wrote.
pub(super) fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| unreadable(column, error))
}

pub(super) fn from_json_or_null<T: DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<T>> {
    let is_null = row.get_ref(column)? == rusqlite::types::ValueRef::Null;
    if is_null { Ok(None) } else { from_json(row, column).map(Some) }
}

/// Reads a variant without fields that [`json`] wrote, or NULL.
pub(super) fn from_name<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    let name: Option<String> = row.get(column)?;
    name.map(|name| serde_json::from_value(name.into()).map_err(|error| unreadable(column, error)))
        .transpose()
}

fn unreadable(column: usize, error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}

/// `at` in microseconds of the wall clock since 1970.
pub(super) fn wall_us(at: BootTime, offset_ns: i64) -> i64 {
    let ns = i128::from(at.0) + i128::from(offset_ns);
    i64::try_from(ns / 1000).unwrap_or(i64::MAX)
}
