//! Opening a store: it is created, upgraded, or renamed if it is damaged.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, params};

use super::{
    Limits, Store,
    column::{int, wall_us},
    error::StoreError,
    fact_writer::Keys,
    files, key_limits, knowledge,
    maintenance::{Maintenance, Unusable},
    salvage,
    schema::{self, STEPS},
};
use crate::os::clock;
use orphand_core::model::{BootTime, Knowledge};

/// A damaged store that was renamed. Its `Display` is a log line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedFile {
    pub file: PathBuf,
    pub aside: PathBuf,
    pub what: String,
    /// How many runs could be copied to the new store.
    pub runs: u64,
}

impl fmt::Display for DamagedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, aside, what, runs } = self;
        let (file, aside) = (file.display(), aside.display());
        write!(f, "the store {file} was damaged ({what}): it was renamed to {aside}, and a new one begins")?;
        match runs {
            0 => f.write_str("; run numbers begin at 1 again"),
            1 => f.write_str("; 1 run was recovered"),
            _ => write!(f, "; {runs} runs were recovered"),
        }
    }
}

struct OpenedFile {
    db: Connection,
    boot: i64,
    daemon: i64,
    knowledge: Knowledge,
}

impl Store {
    pub fn prepare(dir: &Path) -> Result<(), StoreError> {
        files::create_directory(dir)
    }

    /// Opens the store in `dir`, and creates it if it does not exist. `boot_id` is the kernel's boot id;
    /// `offset_ns` is the offset from `CLOCK_BOOTTIME` to the wall clock in nanoseconds.
    pub fn open(
        dir: &Path,
        boot_id: &str,
        offset_ns: i64,
    ) -> Result<(Self, Option<DamagedFile>), StoreError> {
        Self::open_within(dir, boot_id, offset_ns, Limits::default())
    }

    /// [`Store::open`] with these limits instead of the default ones.
    pub fn open_within(
        dir: &Path,
        boot_id: &str,
        offset_ns: i64,
        limits: Limits,
    ) -> Result<(Self, Option<DamagedFile>), StoreError> {
        files::create_directory(dir)?;
        let file = dir.join(files::FILE);
        files::create_if_missing(&file)?;
        let mut damaged = None;
        let now = clock::now();
        let opened_file = match open_file(&file, boot_id, offset_ns, now) {
            Err(StoreError::Damaged { what, .. }) => {
                let at = jiff::Timestamp::from_microsecond(wall_us(now, offset_ns)).unwrap_or_default();
                let aside = files::rename_damaged(&file, at)?;
                files::create_if_missing(&file)?;
                let mut new = open_file(&file, boot_id, offset_ns, now)?;
                let runs = salvage::salvage(&mut new.db, &aside).unwrap_or(0);
                // Among the boots of the old file this one may have another row.
                new.boot =
                    boot_row(&new.db, boot_id).map_err(|error| StoreError::of("read", &file, &error))?;
                // Salvaged rows must be as readable as written ones; otherwise they are dropped.
                if let Ok(salvaged) = knowledge::read(&new.db, new.boot) {
                    new.knowledge = salvaged;
                }
                // Whoever wrote it may have been of this boot.
                new.knowledge.restarted = true;
                damaged = Some(DamagedFile { file: file.clone(), aside, what, runs });
                new
            }
            opened => opened?,
        };
        let unusable = Unusable::default();
        let maintenance = Maintenance::start(&file, limits, Unusable::clone(&unusable))?;
        let OpenedFile { db, boot, daemon, knowledge } = opened_file;
        let store = Self {
            file,
            db,
            maintenance,
            unusable,
            boot,
            daemon,
            offset_ns,
            keys: Keys::default(),
            knowledge,
            pending: super::Backlog::default(),
            retry: None,
        };
        Ok((store, damaged))
    }
}

fn open_file(file: &Path, boot_id: &str, offset_ns: i64, now: BootTime) -> Result<OpenedFile, StoreError> {
    let failed = |operation| move |source| StoreError::of(operation, file, &source);
    let mut db = files::connect(file).map_err(failed("open"))?;
    files::check_quickly(&db, file)?;
    schema::migrate(&mut db, STEPS).map_err(failed("upgrade"))?;
    let (boot, daemon) = insert_daemon(&mut db, boot_id, offset_ns, now).map_err(failed("write"))?;
    let knowledge = knowledge::read(&db, boot).map_err(failed("read"))?;
    Ok(OpenedFile { db, boot, daemon, knowledge })
}

/// Inserts this boot and this daemon, and ends what an earlier boot left open, because its processes ended
/// with it. Returns the row ids of boot and daemon.
fn insert_daemon(
    db: &mut Connection,
    boot_id: &str,
    offset_ns: i64,
    now: BootTime,
) -> rusqlite::Result<(i64, i64)> {
    let booted = wall_us(BootTime(0), offset_ns);
    let change = db.transaction()?;
    let first_ever = "INSERT OR IGNORE INTO boots (boot, first_start)
                      SELECT ?1, iif(EXISTS (SELECT 1 FROM boots), NULL, ?2)";
    change.execute(first_ever, params![boot_id, int(now.0)])?;
    let boot = boot_row(&change, boot_id)?;
    change.execute(
        "UPDATE servers SET ended = max(since, ?2), how = 'unseen', processes = NULL
         WHERE ended IS NULL AND boot <> ?1",
        [boot, booted],
    )?;
    // `alive` stays as it was last known.
    change.execute(
        "UPDATE runs SET ended = max(started, ?2) WHERE ended IS NULL AND boot <> ?1",
        [boot, booted],
    )?;
    change.execute(
        "INSERT INTO daemons (boot, version, offset_ns, started) VALUES (?1, ?2, ?3, ?4)",
        params![boot, env!("CARGO_PKG_VERSION"), offset_ns, wall_us(now, offset_ns)],
    )?;
    let daemon = change.last_insert_rowid();
    key_limits::enforce(&change, wall_us(now, offset_ns))?;
    change.commit()?;
    Ok((boot, daemon))
}

fn boot_row(db: &Connection, boot_id: &str) -> rusqlite::Result<i64> {
    db.query_row("SELECT id FROM boots WHERE boot = ?1", [boot_id], |row| row.get(0))
}
