//! Recovers runs and tracked servers from a damaged store, so that no run number is used twice.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, types::Value};

use super::{
    key_limits, knowledge,
    schema::{self, GONE_GUARDS, STEPS},
};

/// The tables to copy. Rows are read from the latest back until one cannot be read, then from the oldest on.
/// A table comes after those that it refers to.
const TABLES: [(&str, &str, &str); 4] = [
    ("boots", "SELECT * FROM boots", "id"),
    ("keys", "SELECT * FROM keys", "id"),
    ("runs", "SELECT * FROM runs", "key, generation"),
    ("servers", "SELECT * FROM servers WHERE ended IS NULL", "id"),
];

/// Copies what can be read in the damaged file `from` into the new store `db`. Returns the number of runs.
pub(super) fn salvage(db: &mut Connection, from: &Path) -> rusqlite::Result<u64> {
    let old = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    if !(1..=schema::newest(STEPS)).contains(&schema::version(&old)?) {
        return Ok(0);
    }
    let change = db.transaction()?;
    // The new file already contains this boot and this daemon; the row ids of the old boots must not collide.
    let own = "SELECT boot, id, first_start FROM boots";
    let (boot, id, first_start): (String, i64, Option<i64>) =
        change.query_row(own, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut runs = 0;
    change.execute_batch("DELETE FROM boots")?;
    for (table, select, order) in TABLES {
        let latest = format!("{select} ORDER BY {}", order.replace(',', " DESC,") + " DESC");
        let mut copied = copy(&old, &change, table, &latest);
        copied += copy(&old, &change, table, &format!("{select} ORDER BY {order}"));
        if table == "boots" {
            // If the damaged file does not say when the first start was, it was now: then a person decides about more.
            let insert = "INSERT OR IGNORE INTO boots (boot, first_start) VALUES (?1, ?2)";
            change.execute(insert, rusqlite::params![boot, first_start])?;
            change.execute(
                "UPDATE daemons SET boot = (SELECT id FROM boots WHERE boot = ?1) WHERE boot = ?2",
                rusqlite::params![boot, id],
            )?;
        }
        if table == "runs" {
            runs = copied;
        }
    }
    // The effect of later schema versions on rows of an earlier one, except for new columns.
    change.execute_batch(GONE_GUARDS)?;
    // Rows that refer to missing rows.
    change.execute_batch("DELETE FROM runs WHERE key NOT IN (SELECT id FROM keys)")?;
    // Rows that cannot be parsed must not reach the new store.
    let boot = change.query_row("SELECT id FROM boots WHERE boot = ?1", [&boot], |row| row.get(0))?;
    key_limits::enforce(&change, change.query_row("SELECT started FROM daemons", [], |row| row.get(0))?)?;
    knowledge::read(&change, boot)?;
    change.commit()?;
    Ok(runs)
}

fn copy(old: &Connection, new: &Connection, table: &str, select: &str) -> u64 {
    let Ok(mut read) = old.prepare(select) else { return 0 };
    let columns = read.column_count();
    let marks = vec!["?"; columns].join(", ");
    let named = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let quoted: Vec<String> = read.column_names().into_iter().map(named).collect();
    let insert = format!("INSERT OR IGNORE INTO {table} ({}) VALUES ({marks})", quoted.join(", "));
    // Skips a table with foreign columns.
    let Ok(mut write) = new.prepare(&insert) else { return 0 };
    let mut copied = 0;
    let Ok(mut rows) = read.query([]) else { return 0 };
    // Stops at the first row that cannot be read.
    while let Ok(Some(row)) = rows.next() {
        let values: rusqlite::Result<Vec<Value>> = (0..columns).map(|column| row.get(column)).collect();
        let Ok(values) = values else { break };
        if write.execute(rusqlite::params_from_iter(values)).is_ok_and(|n| n > 0) {
            copied += 1;
        }
    }
    copied
}
