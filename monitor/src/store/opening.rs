//! How a store is opened: made, brought up to date, or set aside where it is damaged.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, params};

use super::{
    Limits, Store,
    column::wall_us,
    error::StoreError,
    facts::Keys,
    keeper::Keeper,
    knowledge, place, salvage,
    schema::{self, STEPS},
    surplus,
};
use crate::os::clock;
use orphand_core::model::{BootTime, Knowledge};

/// What was found when the store was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// Whether there was none before.
    pub fresh: bool,
    /// A damaged one that is out of the way now: a line for the log.
    pub set_aside: Option<SetAside>,
}

/// A damaged store that was renamed. Its `Display` is the line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Where it was.
    pub file: PathBuf,
    /// Where it is now.
    pub aside: PathBuf,
    /// What was wrong with it.
    pub what: String,
    /// Runs that could still be read in it and are in the new one.
    pub runs: u64,
}

impl fmt::Display for SetAside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, aside, what, runs } = self;
        let (file, aside) = (file.display(), aside.display());
        write!(f, "the store {file} was damaged ({what}): it is {aside} now, and a new one begins")?;
        match runs {
            0 => f.write_str("; runs are counted from 1 again"),
            1 => f.write_str("; 1 run could still be read"),
            _ => write!(f, "; {runs} runs could still be read"),
        }
    }
}

/// A file that is ready.
struct Ready {
    db: Connection,
    boot: i64,
    daemon: i64,
    knowledge: Knowledge,
}

impl Store {
    /// Makes the directory, and nothing in it.
    pub fn prepare(dir: &Path) -> Result<(), StoreError> {
        place::directory(dir)
    }

    /// Opens the store in `dir`, makes it where there is none. `boot_id` is the kernel's name of this boot, `offset_ns` leads
    /// from `CLOCK_BOOTTIME` to the wall clock.
    pub fn open(dir: &Path, boot_id: &str, offset_ns: i64) -> Result<(Self, Opening), StoreError> {
        Self::open_within(dir, boot_id, offset_ns, Limits::default())
    }

    /// [`Store::open`] with other bounds than the default ones.
    pub fn open_within(
        dir: &Path,
        boot_id: &str,
        offset_ns: i64,
        limits: Limits,
    ) -> Result<(Self, Opening), StoreError> {
        place::directory(dir)?;
        let file = dir.join(place::FILE);
        let mut opening = Opening { fresh: place::touch(&file)?, set_aside: None };
        let now = clock::now();
        let ready = match ready(&file, boot_id, offset_ns, now) {
            Err(StoreError::Damaged { what, .. }) => {
                let at = jiff::Timestamp::from_microsecond(wall_us(now, offset_ns)).unwrap_or_default();
                let aside = place::set_aside(&file, at)?;
                place::touch(&file)?;
                let mut new = ready(&file, boot_id, offset_ns, now)?;
                let runs = salvage::salvage(&mut new.db, &aside).unwrap_or(0);
                // What was salvaged has to be as good as what is written: else it is left.
                if let Ok(salvaged) = knowledge::read(&new.db, new.boot) {
                    new.knowledge = salvaged;
                }
                opening.set_aside = Some(SetAside { file: file.clone(), aside, what, runs });
                new
            }
            opened => opened?,
        };
        let keeper = Keeper::start(&file, limits)?;
        let Ready { db, boot, daemon, knowledge } = ready;
        let store = Self {
            file,
            db,
            keeper,
            boot,
            daemon,
            offset_ns,
            keys: Keys::default(),
            knowledge,
            pending: super::Backlog::default(),
            retry: None,
        };
        Ok((store, opening))
    }
}

fn ready(file: &Path, boot_id: &str, offset_ns: i64, now: BootTime) -> Result<Ready, StoreError> {
    let failed = |operation| move |source| StoreError::of(operation, file, source);
    let mut db = place::connect(file, "OFF").map_err(failed("open"))?;
    place::examine(&db, file)?;
    schema::migrate(&mut db, STEPS).map_err(failed("bring up to date"))?;
    let (boot, daemon) = enter(&mut db, boot_id, offset_ns, now).map_err(failed("write"))?;
    let knowledge = knowledge::read(&db, boot).map_err(failed("read"))?;
    Ok(Ready { db, boot, daemon, knowledge })
}

/// Enters this daemon, and closes what an earlier boot left open: its processes ended with it. The rows of boot and daemon.
fn enter(db: &mut Connection, boot_id: &str, offset_ns: i64, now: BootTime) -> rusqlite::Result<(i64, i64)> {
    let booted = wall_us(BootTime(0), offset_ns);
    let change = db.transaction()?;
    change.execute("INSERT OR IGNORE INTO boots (boot) VALUES (?1)", [boot_id])?;
    let boot: i64 = change.query_row("SELECT id FROM boots WHERE boot = ?1", [boot_id], |row| row.get(0))?;
    change.execute(
        "UPDATE servers SET ended = max(since, ?2), how = 'unseen', processes = NULL
         WHERE ended IS NULL AND boot <> ?1",
        [boot, booted],
    )?;
    // `alive` stays as last known.
    change.execute(
        "UPDATE runs SET ended = max(started, ?2) WHERE ended IS NULL AND boot <> ?1",
        [boot, booted],
    )?;
    change.execute(
        "INSERT INTO daemons (boot, version, offset_ns, started) VALUES (?1, ?2, ?3, ?4)",
        params![boot, env!("CARGO_PKG_VERSION"), offset_ns, wall_us(now, offset_ns)],
    )?;
    let daemon = change.last_insert_rowid();
    surplus::forget(&change, wall_us(now, offset_ns))?;
    change.commit()?;
    Ok((boot, daemon))
}
