//! The file of exemptions that `orphand spare` writes: `conf.d/spared.toml` beside the configuration.
//!
//! Invariant: a configuration with a mistake is never left behind. If the new file makes one, the old file is put back.

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Result, anyhow, bail};
use rustix::fs::OFlags;

use orphand_core::recognise::{Rule, Rules};

use super::{DEFAULT_PATH, Loaded, shown};
use crate::os::{if_there, replace_file, text_file};

const HEAD: &str = "# Written by `orphand spare`, which keeps no comments. To take an exemption back: `orphand spare --remove NAME`,
# or delete its lines and run `orphand reload`.
";

#[derive(Debug)]
pub struct Spared {
    main: PathBuf,
    pub file: PathBuf,
    /// The text of the file as it was read; absent if there was none.
    text: Option<String>,
    book: Rules,
}

impl Spared {
    /// Its place beside the configuration.
    pub const FILE: &str = "conf.d/spared.toml";

    /// Reads the file beside this main file of the configuration.
    pub fn read(main: &Path) -> Result<Self> {
        let file = main.parent().unwrap_or(Path::new("")).join(Self::FILE);
        let text = if_there(text_file(&file)).map_err(failed("read", &file))?;
        let book = text.as_deref().map_or_else(|| Ok(Rules::default()), Rules::from_source);
        let book = book.map_err(|error| {
            let what = error.message().lines().next().unwrap_or_default();
            let advice = "correct it, or move it away";
            anyhow!("{} is not as `orphand spare` writes it: {what}; {advice}", shown(&file))
        })?;
        Ok(Self { main: main.to_owned(), file, text, book })
    }

    pub fn rules(&self) -> &[Rule] {
        &self.book.exempt
    }

    /// Reads the file, changes it and writes it, so that no two do so at a time. Returns its path, and what was changed.
    pub fn change(main: &Path, change: impl FnOnce(&mut Self) -> Vec<Rule>) -> Result<(PathBuf, Vec<Rule>)> {
        let file = Self::read(main)?.file;
        let lock = file.with_extension("lock");
        let dir = file.parent().unwrap_or(Path::new(""));
        fs::create_dir_all(dir).map_err(failed("make", dir))?;
        // Who can open a file can lock it: no other user must.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        // The file stays: whoever waits for the lock has it open.
        let held = options.open(&lock).map_err(failed("open", &lock))?;
        held.lock().map_err(failed("lock", &lock))?;
        let mut spared = Self::read(main)?;
        let changed = change(&mut spared);
        if !changed.is_empty() {
            spared.write()?;
        }
        Ok((file, changed))
    }

    /// Adds exemptions, but for those that are there. Returns the added ones.
    pub fn add(&mut self, rules: Vec<Rule>) -> Vec<Rule> {
        let is_new = |rule: &Rule| self.book.exempt.iter().all(|one| one.patterns() != rule.patterns());
        let new: Vec<Rule> = rules.into_iter().filter(is_new).collect();
        self.book.exempt.extend(new.iter().cloned());
        new
    }

    pub fn remove(&mut self, name: &str) -> Vec<Rule> {
        let (gone, left) =
            std::mem::take(&mut self.book.exempt).into_iter().partition(|rule| rule.name == name);
        self.book.exempt = left;
        gone
    }

    pub fn write(&self) -> Result<()> {
        let rules = toml::to_string(&self.book).unwrap_or_default();
        let text = (!self.book.is_empty()).then(|| format!("{HEAD}\n{rules}"));
        self.replace(text.as_deref())?;
        let asked = (self.main != Path::new(DEFAULT_PATH)).then_some(&*self.main);
        if let Err(mistake) = Loaded::read(asked) {
            self.replace(self.text.as_deref())?;
            bail!("nothing was changed: {mistake}");
        }
        Ok(())
    }

    /// Puts this text in place of the file, as a whole; removes it without one.
    fn replace(&self, text: Option<&str>) -> Result<()> {
        let Some(text) = text else {
            return if_there(fs::remove_file(&self.file)).map(drop).map_err(failed("remove", &self.file));
        };
        let dir = self.file.parent().unwrap_or(Path::new(""));
        fs::create_dir_all(dir).map_err(failed("make", dir))?;
        // On its way it has a name that no file of the configuration has.
        replace_file(&self.file, text.as_bytes()).map_err(failed("write", &self.file))
    }
}

fn failed(operation: &str, path: &Path) -> impl FnOnce(io::Error) -> anyhow::Error {
    move |error| anyhow!("cannot {operation} {}: {error}; run this as root", shown(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, user: &str) -> Rule {
        Rule::of_place(name, None, Some(user.to_owned())).unwrap()
    }

    fn main(dir: &Path, text: &str) -> PathBuf {
        let main = dir.join("config.toml");
        fs::write(&main, text).unwrap();
        main
    }

    #[test]
    fn what_is_added_is_read_again_and_can_be_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let main = main(dir.path(), "[[exempt]]\nname = 'other'\nprogram = 'x'\n");
        let mut spared = Spared::read(&main).unwrap();
        assert_eq!(spared.add(vec![rule("root", "0"), rule("again", "0")]).len(), 2);
        spared.write().unwrap();
        let mut spared = Spared::read(&main).unwrap();
        assert_eq!(spared.rules().len(), 2);
        assert_eq!(spared.add(vec![rule("root", "0")]), []);
        assert_eq!(Loaded::read(Some(&main)).unwrap().config.exempt.len(), 3);
        assert_eq!(spared.remove("nobody"), []);
        assert_eq!(spared.remove("root").len(), 1);
        spared.write().unwrap();
        let text = fs::read_to_string(&spared.file).unwrap();
        assert!(text.starts_with("# Written by `orphand spare`") && !text.contains("\"root\""), "{text}");
        let mut spared = Spared::read(&main).unwrap();
        spared.remove("again");
        spared.write().unwrap();
        assert!(!spared.file.exists(), "an empty file is none");
    }

    #[test]
    fn of_two_at_a_time_none_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let main = &main(dir.path(), "");
        std::thread::scope(|scope| {
            for user in 0..8 {
                scope.spawn(move || {
                    let rules = vec![rule("one", &user.to_string())];
                    Spared::change(main, |spared| spared.add(rules)).unwrap()
                });
            }
        });
        assert_eq!(Spared::read(main).unwrap().rules().len(), 8);
        let (_, gone) = Spared::change(main, |spared| spared.remove("one")).unwrap();
        assert_eq!(gone.len(), 8);
    }

    #[test]
    fn a_mistake_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let right = main(dir.path(), "");
        let mut spared = Spared::read(&right).unwrap();
        spared.add(vec![rule("a", "0")]);
        spared.write().unwrap();
        let before = fs::read_to_string(&spared.file).unwrap();
        let mut spared = Spared::read(&right).unwrap();
        spared.add(vec![rule("b", "no-such-user")]);
        let error = spared.write().unwrap_err().to_string();
        assert!(error.starts_with("nothing was changed: ") && error.contains("no-such-user"), "{error}");
        assert_eq!(fs::read_to_string(&spared.file).unwrap(), before);
        // The mistake of another file counts, too.
        main(dir.path(), "grace = 7\n");
        let mut spared = Spared::read(&right).unwrap();
        spared.add(vec![rule("b", "1")]);
        assert!(spared.write().unwrap_err().to_string().contains("grace"));
        assert_eq!(fs::read_to_string(&spared.file).unwrap(), before);
        fs::write(&spared.file, "observe = true\n").unwrap();
        let error = Spared::read(&right).unwrap_err().to_string();
        assert!(error.contains("is not as `orphand spare` writes it"), "{error}");
    }
}
