//! What the next daemon of this boot will not know whole: servers that began before a time. One number, in the lock file: no
//! disk that is full or broken holds it back, and it ends with the boot.
//!
//! Invariant: as long as something that is known is not written, all is said to be lost. So a daemon that ends then, in whatever
//! way, leaves no store that seems whole. The text has its length from the beginning, and so its room.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    sync::{Arc, Mutex},
};

use crate::os::{clock, lock};
use orphand_core::model::BootTime;

/// Whoever that starts next: nothing that lives then is known whole.
const ALL: BootTime = BootTime(u64::MAX);
/// The digits of the greatest number.
const DIGITS: usize = 20;

/// The handle of one that writes what is known.
#[derive(Debug)]
pub struct Unkept {
    shared: Arc<Mutex<Shared>>,
    /// Whether something waits here to be written.
    waits: bool,
}

#[derive(Debug)]
struct Shared {
    file: File,
    before: BootTime,
    /// How many handles wait.
    waiting: usize,
}

impl Unkept {
    /// Reads what earlier daemons of this boot have left in the file.
    pub fn of(file: File) -> Self {
        let mut text = [0; DIGITS];
        let length = file.read_at(&mut text, 0).unwrap_or(DIGITS);
        let number = str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
        let told = if length == 0 { BootTime(0) } else { number.map_or(ALL, BootTime) };
        let shared = Shared { file, before: told.min(clock::now()), waiting: 0 };
        shared.write();
        Self { shared: Arc::new(Mutex::new(shared)), waits: false }
    }

    /// For another one that writes what is known.
    pub fn another(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), waits: false }
    }

    /// Servers that began before that are not known whole.
    pub fn before(&self) -> Option<BootTime> {
        Some(lock(&self.shared).before).filter(|before| *before > BootTime(0))
    }

    /// What was known until now will not be written any more.
    pub fn lost(&self) {
        let mut shared = lock(&self.shared);
        shared.before = shared.before.max(clock::now());
        shared.write();
    }

    /// Whether all that is known here is written.
    pub fn is_written(&mut self, all: bool) {
        if self.waits == all {
            self.waits = !all;
            let mut shared = lock(&self.shared);
            shared.waiting = if all { shared.waiting.saturating_sub(1) } else { shared.waiting + 1 };
            shared.write();
        }
    }
}

impl Shared {
    fn write(&self) {
        let BootTime(number) = if self.waiting == 0 { self.before } else { ALL };
        let written = self.file.write_all_at(format!("{number:0DIGITS$}").as_bytes(), 0);
        if let Err(error) = written {
            let error: io::Error = error;
            tracing::warn!("the next daemon cannot be told what this one could not write: {error}");
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write as _;

    use super::*;

    /// A daemon that is started now.
    pub(in super::super) fn begin(file: &File) -> Unkept {
        Unkept::of(file.try_clone().unwrap())
    }

    /// What is written for the next one.
    pub(in super::super) fn written(file: &File) -> BootTime {
        let mut text = [0; DIGITS];
        file.read_exact_at(&mut text, 0).unwrap();
        BootTime(str::from_utf8(&text).unwrap().parse().unwrap())
    }

    fn file(text: &str) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    #[test]
    fn the_first_daemon_of_a_boot_and_the_one_after_it_know_all() {
        let file = file("");
        assert_eq!([begin(&file).before(), begin(&file).before()], [None, None]);
    }

    #[test]
    fn what_is_lost_is_told_to_every_later_daemon() {
        let (file, began) = (file(""), clock::now());
        begin(&file).lost();
        let lost = begin(&file).before();
        assert!(lost >= Some(began) && lost <= Some(clock::now()), "{lost:?}");
        assert_eq!(begin(&file).before(), lost);
    }

    /// The twin: it was written in the end.
    #[test]
    fn what_waits_is_lost_with_the_daemon() {
        let file = file("");
        let mut one = begin(&file);
        let mut two = one.another();
        one.is_written(false);
        two.is_written(false);
        one.is_written(true);
        one.is_written(true);
        assert_eq!(written(&file), ALL, "the other one waits");
        two.is_written(true);
        assert_eq!(written(&file), BootTime(0));
        two.is_written(false);
        let began = clock::now();
        let lost = begin(&file).before();
        assert!(lost >= Some(began) && lost <= Some(clock::now()), "no later than the start: {lost:?}");
    }

    #[test]
    fn a_text_that_is_no_number_tells_nothing() {
        for text in ["7", "0000000000000000000x", "\u{fffd}"] {
            assert!(begin(&file(text)).before().is_some(), "{text:?}");
        }
    }
}
