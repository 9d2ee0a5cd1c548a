//! Whether the settings of an agent declare a process as an MCP server: for programs that read their first message
//! before anybody can look at it.
//!
//! The files are found here ([`super::settings_files`]). Invariant: **none is read here**. A [helper] reads
//! them ([`super::settings`]), as the user whose process it is. Of what it answers nothing is used but the name of the
//! entry that matches. Whatever is in the files: if there is no answer, nothing is declared.

use std::{
    iter,
    sync::Mutex,
    time::{Duration, Instant},
};

use rustix::{io::Errno, process::geteuid};

use super::{
    Probe, metered,
    settings::{self, Program},
    settings_files::{Finder, Gathered},
};
use crate::{
    helper::{self, HelperError, Order, Task},
    host::ProcessDir,
    os::lock,
};
use orphand_core::{
    model::{FirstMessage, ProcessId},
    recognise::{harmless, is_bridged},
};

const PATIENCE: Duration = Duration::from_secs(3);
/// Bytes of the command line that are compared. A longer one is not compared.
const COMMAND_LINE: usize = 32 * 1024;
/// How many processes are looked at above one: a bridge, and the shells and launchers between the two.
const BETWEEN: u8 = 5;
/// Who reads the files of root's processes, with no right but to read these.
const READER_FOR_ROOT: (u32, u32) = (helper::NOBODY, helper::NOBODY);
/// Between two lines in the log about helpers that failed.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub struct Candidate {
    pub process: ProcessId,
    /// The command lines that it had before, on the same wires: an entry that names one of them counts.
    pub earlier: Vec<Vec<String>>,
}

impl Probe {
    /// Whether settings declare these processes, which are one user's: for each [`FirstMessage::Declared`], or
    /// [`FirstMessage::Nothing`]. What a bridge was told to start is spoken to in the protocol, sooner or later.
    pub fn declared(&self, candidates: &[Candidate]) -> Vec<FirstMessage> {
        let (this, all) = (self.clone(), candidates.to_vec());
        let (gathered, bridged): (_, Vec<bool>) = metered(move || {
            let bridged = all.iter().map(|one| this.is_bridged(one).unwrap_or(false)).collect();
            (this.gather(&all), bridged)
        });
        let said = |(name, bridged)| match name {
            Some(name) => FirstMessage::Declared { name },
            None if bridged => FirstMessage::Mcp { client: None },
            None => FirstMessage::Nothing,
        };
        self.declaring(candidates, gathered).into_iter().zip(bridged).map(said).collect()
    }

    /// Whether the command line of a bridge above the process, with launchers between them at most, names it.
    fn is_bridged(&self, candidate: &Candidate) -> Result<bool, Errno> {
        let Some(dir) = self.proc.identified(candidate.process)? else { return Ok(false) };
        let lines: Vec<_> = words(&dir)?.into_iter().chain(candidate.earlier.iter().cloned()).collect();
        let mut above = dir.stat().ppid;
        for _ in 0..BETWEEN {
            let bridge = self.proc.process(above)?;
            if bridge.uid()? != dir.uid()? {
                return Ok(false);
            }
            let told = words(&bridge)?.unwrap_or_default();
            if lines.iter().any(|line| is_bridged(&told, line)) {
                return Ok(true);
            }
            above = bridge.stat().ppid;
        }
        Ok(false)
    }

    fn declaring(&self, candidates: &[Candidate], gathered: Gathered) -> Vec<Option<String>> {
        if gathered.files.is_empty() {
            return vec![None; candidates.len()];
        }
        let said = match ask(gathered) {
            Ok(said) => said,
            Err(why) => {
                complain(&why);
                // One of their files may be to blame: the others are asked about once more, each alone.
                let again = |one: &Candidate| {
                    let one = std::slice::from_ref(one);
                    self.declaring(one, self.gather(one)).pop().flatten()
                };
                let alone = candidates.len() > 1 && matches!(why, HelperError::Failed(_));
                return candidates.iter().map(|one| if alone { again(one) } else { None }).collect();
            }
        };
        let names = candidates.iter().zip(said.into_iter().chain(iter::repeat(None)));
        let name = |(one, name): (&Candidate, Option<String>)| {
            let lives = || matches!(self.proc.identified(one.process), Ok(Some(_)));
            harmless(&name?).filter(|_| lives())
        };
        names.map(name).collect()
    }

    fn gather(&self, candidates: &[Candidate]) -> Gathered {
        let mut gathered = Gathered::default();
        for candidate in candidates {
            let program = self.program(&mut gathered, candidate).unwrap_or_else(|errno| {
                tracing::debug!("cannot look for settings that declare {}: {errno}", candidate.process);
                None
            });
            gathered.question.programs.push(program.unwrap_or_default());
        }
        gathered
    }

    fn program(&self, gathered: &mut Gathered, candidate: &Candidate) -> Result<Option<Program>, Errno> {
        let Candidate { process, earlier } = candidate;
        let Some(dir) = self.proc.identified(*process)? else { return Ok(None) };
        let Some(now) = words(&dir)? else { return Ok(None) };
        let lines = std::iter::once(now).chain(earlier.iter().cloned()).collect();
        let parent = self.proc.process(dir.stat().ppid)?;
        let home = dir.environment("HOME")?.unwrap_or_default();
        let (user, group, fds) = (dir.uid()?, dir.gid()?, dir.fd_dir()?);
        if gathered.user.get_or_insert((user, group)).0 != user {
            return Ok(None);
        }
        let places = [dir.link("cwd")?, parent.link("cwd")?];
        let files = Finder::new(&dir, fds, user).all(&places, &home, gathered);
        Ok(Some(Program { lines, files }))
    }
}

/// The command line of a process; `None` if it is too long or no text.
fn words(dir: &ProcessDir) -> Result<Option<Vec<String>>, Errno> {
    let (line, more) = dir.command_line(COMMAND_LINE)?;
    let line = std::str::from_utf8(&line).ok().and_then(|line| line.strip_suffix('\0')).filter(|_| !more);
    Ok(line.map(|line| line.split('\0').map(str::to_owned).collect()))
}

/// Has a helper read the files: for each program the name of the entry that declares it.
fn ask(gathered: Gathered) -> Result<settings::Answer, HelperError> {
    let Gathered { question, files, user, .. } = gathered;
    let user = match user {
        Some((0, _)) | None => READER_FOR_ROOT,
        Some(user) => user,
    };
    let us = geteuid();
    // Who may not become another user has no right that the helper would have to be without, but for root.
    let stays = user.0 == us.as_raw() || (!us.is_root() && !helper::can_be_others());
    let user = (!stays).then_some(user);
    helper::ask(Order { task: Task::Settings, files, user, namespace: None, patience: PATIENCE }, &question)
}

fn complain(why: &HelperError) {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    let mut last = lock(&LAST);
    if last.is_none_or(|last| last.elapsed() >= BETWEEN_LINES) {
        *last = Some(Instant::now());
        drop(last);
        tracing::warn!("the helper that reads settings of agents failed, so they declare nothing: {why}");
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::{
            fs::{PermissionsExt as _, symlink},
            process::CommandExt as _,
        },
        path::{Path, PathBuf},
        process::{Command, Stdio as Std},
    };

    use orphand_core::recognise::Notation;
    use rustix::fs::{CWD, FileType, Mode};

    use super::*;
    use crate::probe::tests::Started;

    const ENTRY: &str = r#"{"mcpServers":{"nap":{"command":"sleep","args":["600"]}}}"#;

    /// A process `sleep 600` that works in a folder of a project, below a home.
    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            for folder in ["home/.cursor", "home/.codex", "project/.vscode", "project/src"] {
                fs::create_dir_all(place.0.path().join(folder)).unwrap();
            }
            place
        }

        fn write(&self, file: &str, text: &str) {
            fs::write(self.0.path().join(file), text).unwrap();
        }

        fn says(&self) -> FirstMessage {
            self.says_after(&[])
        }

        fn says_after(&self, lines: &[Vec<String>]) -> FirstMessage {
            let mut command = Command::new("sleep");
            command.arg("600").current_dir(self.0.path().join("project/src"));
            let command = command.env("HOME", self.0.path().join("home")).stdin(Std::null());
            said(Started::new(command).id(), lines)
        }
    }

    /// What the files say that are gathered, without a helper.
    fn said(process: ProcessId, lines: &[Vec<String>]) -> FirstMessage {
        let Gathered { question, files, .. } = Probe::new().unwrap().gather(&[candidate(process, lines)]);
        let name = settings::answer(question, files).pop().flatten();
        name.map_or(FirstMessage::Nothing, |name| FirstMessage::Declared { name })
    }

    fn candidate(process: ProcessId, lines: &[Vec<String>]) -> Candidate {
        Candidate { process, earlier: lines.to_vec() }
    }

    fn nap() -> FirstMessage {
        FirstMessage::Declared { name: "nap".to_owned() }
    }

    #[test]
    fn the_files_of_project_and_home_are_found() {
        for (file, text) in [
            ("project/src/.mcp.json", ENTRY),
            ("project/.mcp.json", ENTRY),
            ("project/.vscode/mcp.json", r#"{"servers":{"nap":{"command":"sleep","args":["600"]}}}"#),
            ("home/.claude.json", ENTRY),
            ("home/.cursor/mcp.json", ENTRY),
            ("home/.codex/config.toml", "[mcp_servers.nap]\ncommand = 'sleep'\nargs = ['600']\n"),
        ] {
            let place = Place::new();
            assert_eq!(place.says(), FirstMessage::Nothing);
            place.write(file, text);
            assert_eq!(place.says(), nap(), "{file}");
            place.write(file, &text.replace("600", "60"));
            assert_eq!(place.says(), FirstMessage::Nothing, "other arguments in {file}");
        }
    }

    #[test]
    fn what_a_declared_shell_runs_in_its_place_is_declared() {
        let place = Place::new();
        place.write("project/.mcp.json", &ENTRY.replace("sleep", "sh").replace("600", "cd x"));
        for (before, told) in [("cd x", nap()), ("cd y", FirstMessage::Nothing)] {
            let lines = [["/bin/sh", before].map(str::to_owned).to_vec()];
            assert_eq!(place.says_after(&lines), told, "{before}");
        }
    }

    #[test]
    fn a_file_that_is_none_is_passed_over() {
        let place = Place::new();
        let path = place.0.path().join("project/.mcp.json");
        for target in
            ["/dev/zero", "/proc/self/mem", "/proc/kmsg", "/sys/kernel/uevent_seqnum", "/nowhere", "."]
        {
            symlink(target, &path).unwrap();
            place.write("home/.claude.json", ENTRY);
            assert_eq!(place.says(), nap(), "{target}");
            fs::remove_file(&path).unwrap();
        }
        // Nobody would ever write to it.
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, mode, 0).unwrap();
        assert_eq!(place.says(), nap());
        fs::remove_file(&path).unwrap();
        symlink(place.0.path().join("home/.claude.json"), &path).unwrap();
        fs::rename(place.0.path().join("home/.claude.json"), place.0.path().join("home/.cursor/mcp.json"))
            .unwrap();
        symlink(".cursor/mcp.json", place.0.path().join("home/.claude.json")).unwrap();
        assert_eq!(place.says(), nap(), "a link to a file of the same user");
        let large = format!("{}{}", " ".repeat(usize::try_from(Notation::Json.longest()).unwrap()), ENTRY);
        place.write("home/.cursor/mcp.json", &large);
        assert_eq!(place.says(), FirstMessage::Nothing, "it is too large");
    }

    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn the_files_of_another_user_tell_nothing() {
        let place = Place::new();
        place.write("project/.mcp.json", ENTRY);
        assert_eq!(place.says(), nap());
        std::os::unix::fs::chown(place.0.path().join("project/.mcp.json"), Some(4321), None).unwrap();
        assert_eq!(place.says(), FirstMessage::Nothing);
    }

    /// What the settings say of a process of a user without rights, if they are a link to this file.
    fn says_to_a_user(place: &Place, file: &Path) -> FirstMessage {
        for folder in ["", "project", "project/src", "home"] {
            fs::set_permissions(place.0.path().join(folder), Permissions::from_mode(0o755)).unwrap();
        }
        let _ = fs::remove_file(place.0.path().join("project/.mcp.json"));
        symlink(file, place.0.path().join("project/.mcp.json")).unwrap();
        let mut command = Command::new("sleep");
        command.arg("600").uid(64_003).current_dir(place.0.path().join("project/src"));
        let command = command.env("HOME", place.0.path().join("home")).stdin(Std::null());
        said(Started::new(command).id(), &[])
    }

    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn the_private_files_of_root_tell_nothing() {
        let place = Place::new();
        place.write("secret", ENTRY);
        let secret = place.0.path().join("secret");
        for (mode, told) in [(0o644, nap()), (0o640, FirstMessage::Nothing), (0o600, FirstMessage::Nothing)] {
            fs::set_permissions(&secret, Permissions::from_mode(mode)).unwrap();
            assert_eq!(says_to_a_user(&place, &secret), told, "{mode:o}");
        }
    }

    /// A file that everybody may read is as private as the folder that nobody may enter.
    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn the_files_below_a_private_folder_of_root_tell_nothing() {
        let place = Place::new();
        fs::create_dir_all(place.0.path().join("private/deep")).unwrap();
        place.write("private/deep/file", ENTRY);
        let secret = place.0.path().join("private/deep/file");
        for (mode, told) in [(0o755, nap()), (0o750, FirstMessage::Nothing), (0o700, FirstMessage::Nothing)] {
            fs::set_permissions(place.0.path().join("private"), Permissions::from_mode(mode)).unwrap();
            assert_eq!(says_to_a_user(&place, &secret), told, "{mode:o}");
        }
    }

    /// A set of trace files of its own.
    struct Traced(PathBuf);

    impl Drop for Traced {
        fn drop(&mut self) {
            fs::remove_dir(&self.0).unwrap();
        }
    }

    /// Root's own process (a build in a hostile checkout) may read everything, the files of the kernel too.
    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn a_file_whose_reading_takes_what_is_in_it_is_not_read() {
        let mounted = fs::read_to_string("/proc/self/mounts").unwrap();
        let tracing = mounted.lines().find_map(|line| line.strip_prefix("tracefs "));
        let tracing = tracing.and_then(|line| line.split(' ').next()).expect("tracefs is not mounted");
        let traced = Traced(Path::new(tracing).join(format!("instances/orphand-{}", std::process::id())));
        fs::create_dir(&traced.0).unwrap();
        fs::write(traced.0.join("trace_marker"), ENTRY).unwrap();
        let pipe = traced.0.join("trace_pipe");
        let place = Place::new();
        symlink(&pipe, place.0.path().join("project/.mcp.json")).unwrap();
        assert_eq!(place.says(), FirstMessage::Nothing);
        assert_eq!(says_to_a_user(&place, &pipe), FirstMessage::Nothing);
        let left = fs::read_to_string(traced.0.join("trace")).unwrap();
        assert!(left.contains("mcpServers"), "{left}");
    }

    #[test]
    fn one_that_is_gone_is_not_declared() {
        let mut sleeper = Started::sleeper(Std::null());
        let id = sleeper.id();
        sleeper.end();
        assert_eq!(Probe::new().unwrap().declared(&[candidate(id, &[])]), [FirstMessage::Nothing]);
    }
}
