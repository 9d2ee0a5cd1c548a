//! What persons decided about the mode, in a file of its own beside the store: it is read before anything is judged, and
//! damage to the store does not touch it.
//!
//! Invariant: a file that is there and cannot be read means a pause. Nobody knows what was decided, so nothing is ended.

use std::{io, path::Path};

use crate::os::{replace_file, text_file};
use orphand_core::model::{Pause, Standing, text::sanitise};

const FILE: &str = "decisions.json";

/// What was decided. Where that cannot be read: a pause by nobody, which says why.
pub fn read(dir: &Path) -> Standing {
    let path = dir.join(FILE);
    let unread = |why: &dyn std::fmt::Display| {
        let by = format!("orphand, because {} cannot be read: {why}", path.display());
        tracing::warn!("paused by {by}; `orphand resume` makes a new one");
        Standing { pause: Some(Pause { by: sanitise(&by).into_owned(), until: None }), chosen: None }
    };
    match text_file(&path) {
        Ok(text) => serde_json::from_str(&text).unwrap_or_else(|error| unread(&error)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Standing::default()
        }
        Err(error) => unread(&error),
    }
}

pub fn write(dir: &Path, standing: &Standing) -> io::Result<()> {
    replace_file(&dir.join(FILE), &serde_json::to_vec(standing)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use orphand_core::model::{Decision, Mode};

    #[test]
    fn what_was_decided_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()), Standing::default());
        assert_eq!(read(&dir.path().join("nowhere")), Standing::default());
        let mut standing = Standing::default();
        for decision in [Decision::Pause { for_ms: Some(1) }, Decision::Mode { mode: Some(Mode::Observe) }] {
            standing.decide(&decision, "alice", jiff::Timestamp::UNIX_EPOCH);
            write(dir.path(), &standing).unwrap();
            assert_eq!(read(dir.path()), standing);
        }
        write(&dir.path().join("nowhere"), &standing).unwrap_err();
    }

    #[test]
    fn what_cannot_be_read_is_a_pause() {
        let dir = tempfile::tempdir().unwrap();
        for broken in ["", "{\"pause\":", "7"] {
            fs::write(dir.path().join(FILE), broken).unwrap();
            let standing = read(dir.path());
            assert_eq!(standing.mode(Mode::Enforce), Mode::Observe, "{broken:?}");
            assert!(standing.by().unwrap().contains("decisions.json cannot be read"), "{standing:?}");
        }
        fs::remove_file(dir.path().join(FILE)).unwrap();
        fs::create_dir(dir.path().join(FILE)).unwrap();
        assert_eq!(read(dir.path()).mode(Mode::Enforce), Mode::Observe);
        fs::remove_dir(dir.path().join(FILE)).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join(FILE), rustix::fs::Mode::RUSR).unwrap();
        assert!(read(dir.path()).by().unwrap().contains("it is not a regular file"));
        // A disk that is not mounted yet, of the file or of all.
        let (disk, nowhere) = (dir.path().join("disk"), dir.path().join("nowhere"));
        fs::create_dir(&disk).unwrap();
        fs::write(disk.join(FILE), "{}").unwrap();
        fs::remove_file(dir.path().join(FILE)).unwrap();
        std::os::unix::fs::symlink(disk.join(FILE), dir.path().join(FILE)).unwrap();
        std::os::unix::fs::symlink(&disk, dir.path().join("linked")).unwrap();
        for at in [dir.path(), &dir.path().join("linked")] {
            assert_eq!(read(at), Standing::default(), "it is there");
            fs::rename(&disk, &nowhere).unwrap();
            assert!(read(at).by().unwrap().contains("it is behind a link that leads nowhere"), "{at:?}");
            fs::rename(&nowhere, &disk).unwrap();
        }
    }
}
