//! Whether the settings of an agent declare a process as an MCP server: for programs that read their first message
//! before anybody can look at it.
//!
//! The files are found here ([`super::settings_files`]). Invariant: **none is read here**. A [helper] reads
//! them ([`super::settings`]), as the user whose process it is. Of what it answers nothing is used but the name of the
//! entry that matches. Whatever is in the files: if there is no answer, nothing is declared.

use std::{
    ffi::OsString,
    iter,
    os::unix::ffi::OsStringExt as _,
    path::Path,
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
    recognise::{harmless, is_bridged, told_settings},
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
        let names = |(_, told): &(ProcessDir, Vec<String>)| lines.iter().any(|line| is_bridged(told, line));
        Ok(self.above(&dir)?.iter().any(names))
    }

    /// The processes above this one that are of the same user, as far as a bridge or a host may be, with their command lines.
    fn above(&self, dir: &ProcessDir) -> Result<Vec<(ProcessDir, Vec<String>)>, Errno> {
        let (mut found, user, mut next) = (Vec::new(), dir.uid()?, dir.stat().ppid);
        for _ in 0..BETWEEN {
            let Ok(above) = self.proc.process(next) else { break };
            if above.uid()? != user {
                break;
            }
            next = above.stat().ppid;
            let line = words(&above)?.unwrap_or_default();
            found.push((above, line));
        }
        Ok(found)
    }

    fn declaring(&self, candidates: &[Candidate], gathered: Gathered) -> Vec<Option<String>> {
        if gathered.files.is_empty() && gathered.question.programs.iter().all(|one| one.texts.is_empty()) {
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
        let (mut told, mut texts) = (Vec::new(), Vec::new());
        for (host, line) in &self.above(&dir)? {
            let [named, written] = told_settings(line);
            let cwd = named.first().and_then(|_| host.link("cwd").ok()).map(OsString::from_vec);
            let path = |(cwd, name): (&OsString, &str)| Path::new(cwd).join(name);
            told.extend(cwd.iter().flat_map(|cwd| named.iter().map(move |name| (cwd, *name))).map(path));
            texts.extend(written.into_iter().map(str::to_owned));
        }
        let files = Finder::new(&dir, fds, user).all(&told, &places, &home, gathered);
        Ok(Some(Program { lines, files, texts }))
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
mod tests;
