//! Rows and the model's types. SQLite takes facts apart and puts what is read together, both as JSON of the model:
//! a statement that reads has one column, the JSON of one value. A row that is no such value is damage.

use rusqlite::{Connection, Params, Row, types::Type};
use serde::de::DeserializeOwned;

use orphand_core::model::BootTime;

pub(super) fn read<T: DeserializeOwned>(
    db: &Connection,
    sql: &str,
    params: impl Params,
) -> rusqlite::Result<Vec<T>> {
    db.prepare(sql)?.query_map(params, |row| from_json(row, 0))?.collect()
}

pub(super) fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str_or_null()?.unwrap_or("null");
    serde_json::from_str(text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error)))
}

/// SQL: a truth value of JSON.
pub(super) fn flag(condition: &str) -> String {
    format!("json(iif({condition}, 'true', 'false'))")
}

/// SQL: a time in a column, as text. NULL stays NULL.
pub(super) fn time(column: &str) -> String {
    format!(
        "(strftime('%Y-%m-%dT%H:%M:%S', {column} / 1000000, 'unixepoch') || printf('.%06dZ', {column} % 1000000))"
    )
}

/// SQL: the [`orphand_core::model::Share`] of the user id in a column.
pub(super) fn share(uid: &str) -> String {
    format!("iif({uid} < 100000, {uid}, 100000 + ({uid} - 100000) / 65536)")
}

/// SQL: the name of a run's agent, of a row of `keys` named `k` and one of `runs` named `r`.
pub(super) const AGENT: &str = "coalesce(nullif(r.agent, ''), k.key->>'$.unit.name', k.key->>'$.agent.name')";

/// SQL: a `RunView`, of the same rows; NULL without a key.
pub(super) fn run_view(generation: &str) -> String {
    format!(
        "json(iif(k.key IS NULL, NULL, json_object('agent', {AGENT}, 'generation', {generation},
            'uid', k.key->>'$.agent.uid', 'unit', k.key->>'$.unit.name',
            'manager', nullif(k.key->>'$.unit.manager', ''), 'invocation_id', r.invocation)))"
    )
}

/// `at` in microseconds of the wall clock since 1970.
pub(super) fn wall_us(at: BootTime, offset_ns: i64) -> i64 {
    let ns = i128::from(at.0) + i128::from(offset_ns);
    i64::try_from(ns / 1000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use orphand_core::model::Share;

    #[test]
    fn shares_are_those_of_the_core() {
        let db = Connection::open_in_memory().unwrap();
        let same = db.prepare(&format!("SELECT {} = {}", share("?1"), share("?2"))).unwrap();
        let mut same = same;
        let uids = [0, 1000, 99_999, 100_000, 165_535, 165_536, u32::MAX - 1, u32::MAX];
        for (one, other) in uids.iter().flat_map(|one| uids.iter().map(move |other| (*one, *other))) {
            let shared: bool = same.query_row([one, other], |row| row.get(0)).unwrap();
            assert_eq!(shared, Share::of(one) == Share::of(other), "{one} {other}");
        }
    }

    #[test]
    fn times_are_told_to_the_microsecond() {
        let db = Connection::open_in_memory().unwrap();
        let at = jiff::Timestamp::from_microsecond(1_785_153_600_000_042).unwrap();
        let sql = format!("SELECT json_quote({})", time("?1"));
        assert_eq!(read::<jiff::Timestamp>(&db, &sql, [at.as_microsecond()]).unwrap(), [at]);
    }
}
