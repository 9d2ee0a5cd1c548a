//! Reads the settings files of agents, in a [helper]: which of these programs they declare.
//!
//! Invariant: the files come with the question, open or named; no path is walked here. They are read and parsed once each, on a stack that is
//! large enough for any file of that length ([`Notation::STACK`]).

use std::{
    cell::LazyCell,
    fs::File,
    io::{self, Read as _},
    ops::Deref,
    os::fd::OwnedFd,
    thread,
};

use serde::{Deserialize, Serialize};

use super::settings_files::opened;
use crate::helper;
use orphand_core::recognise::{Declarations, Notation};

/// Which of some programs are declared by some files, which come with the question.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Question {
    pub files: Vec<Notation>,
    pub programs: Vec<Program>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Program {
    /// The command lines that it may be declared by.
    pub lines: Vec<Vec<String>>,
    /// The files that may declare it, by their place in the question: the first that does counts.
    pub files: Vec<usize>,
    /// Texts that may, from the command line of its host.
    pub texts: Vec<String>,
}

/// For each program the name of the entry that declares it. Nothing is declared of those that are missing.
pub(super) type Answer = Vec<Option<String>>;

pub(super) fn help(question: &[u8], files: Vec<OwnedFd>) -> Option<Vec<u8>> {
    helper::answered(question, |question| answer(question, files))
}

pub(super) fn answer(question: Question, files: Vec<OwnedFd>) -> Answer {
    let reader = thread::Builder::new().stack_size(Notation::STACK);
    let read = reader.spawn(move || {
        // Each is read when it is needed.
        let files = files.into_iter().zip(question.files);
        let files: Vec<_> = files
            .map(|(file, notation)| LazyCell::new(move || declarations(&file, notation).unwrap_or_default()))
            .collect();
        question.programs.iter().map(|program| program.name_in(&files)).collect()
    });
    read.ok().and_then(|read| read.join().ok()).unwrap_or_default()
}

impl Program {
    fn name_in(&self, files: &[impl Deref<Target = Declarations>]) -> Option<String> {
        let mut files = self.files.iter().filter_map(|at| files.get(*at));
        let in_one =
            |told: &Declarations| self.lines.iter().find_map(|line| told.name_of(line)).map(str::to_owned);
        let mut texts = self.texts.iter().map(|text| Declarations::of(text.as_bytes(), Notation::Told));
        texts.find_map(|told| in_one(&told)).or_else(|| files.find_map(|file| in_one(file)))
    }
}

fn declarations(file: &OwnedFd, notation: Notation) -> io::Result<Declarations> {
    // It may be open already, by more rights than there are here.
    let file = opened(file).map_err(io::Error::from).or_else(|_| file.try_clone())?;
    let mut text = Vec::new();
    File::from(file).take(notation.longest()).read_to_end(&mut text)?;
    Ok(Declarations::of(&text, notation))
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use super::*;

    fn file(text: &str) -> OwnedFd {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.rewind().unwrap();
        file.into()
    }

    fn program(line: &[&str], files: &[usize]) -> Program {
        Program {
            lines: vec![line.iter().map(ToString::to_string).collect()],
            files: files.to_vec(),
            texts: Vec::new(),
        }
    }

    #[test]
    fn the_first_file_that_declares_a_program_counts() {
        let entry = |name: &str| format!(r#"{{"mcpServers":{{"{name}":{{"command":"x"}}}}}}"#);
        let files =
            || vec![file(&entry("a")), file("[mcp_servers.b]\ncommand='x'"), file("{"), file(&entry("c"))];
        let question = Question {
            files: vec![Notation::Json, Notation::Toml, Notation::Json, Notation::Json],
            programs: vec![
                program(&["x"], &[2, 1, 0]),
                program(&["x"], &[0, 1]),
                program(&["y"], &[0, 1, 2, 3]),
                program(&["x"], &[9, 2]),
                program(&["x"], &[]),
                Program {
                    lines: vec![vec!["y".to_owned()], vec!["x".to_owned()]],
                    files: vec![3],
                    texts: Vec::new(),
                },
                Program { texts: vec!["{".to_owned(), entry("d")], ..program(&["x"], &[0]) },
            ],
        };
        let text = serde_json::to_vec(&question).unwrap();
        let said: Answer = serde_json::from_slice(&help(&text, files()).unwrap()).unwrap();
        let said: Vec<Option<&str>> = said.iter().map(Option::as_deref).collect();
        assert_eq!(said, [Some("b"), Some("a"), None, None, None, Some("c"), Some("d")]);
        assert_eq!(help(b"{}", Vec::new()), None);
    }
}
