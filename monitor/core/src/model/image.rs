//! What a process runs, and what its standard streams are connected to.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::EnumTryAs;

use super::redact;

/// The program that a process runs since its last exec. A fork without an exec runs the image of its creator.
///
/// Strings are lossy UTF-8 that an attacker may choose. The arguments may contain secrets: recognition needs them as they
/// are. Wherever a value is written, in a recording or in a message, they are redacted.
#[derive(Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Image {
    /// The path of the executable: `linux_binprm::interp` from the kernel, or the target of `/proc/PID/exe`.
    pub exe: String,
    /// The arguments, program name first.
    #[serde(serialize_with = "redact::serialize")]
    pub argv: Vec<String>,
    /// Whether `argv` was cut; the kernel side reads a bounded prefix.
    #[serde(default)]
    pub argv_truncated: bool,
}

impl Image {
    /// The most arguments that are kept: each takes some forty bytes beside its text, however short that is.
    const WORDS: usize = 128;

    pub fn new(exe: String, argv: Vec<String>, argv_truncated: bool) -> Self {
        let mut image = Self { exe, argv, argv_truncated };
        image.cut(Self::WORDS);
        image
    }

    fn cut(&mut self, words: usize) {
        self.argv_truncated |= words < self.argv.len();
        self.argv.truncate(words);
        self.argv.shrink_to_fit();
    }

    /// About how many bytes it takes.
    pub fn size(&self) -> usize {
        self.exe.len() + self.argv.iter().map(|word| word.len() + 2 * size_of::<String>()).sum::<usize>()
    }

    /// Keeps no more than the first arguments.
    pub fn shorten(&mut self) {
        const WORDS: usize = 16;
        const BYTES: usize = 1024;
        let mut bytes = 0;
        let fits = |word: &&String| {
            bytes += word.len();
            bytes <= BYTES
        };
        self.cut(self.argv.iter().take(WORDS).take_while(fits).count());
    }

    #[must_use]
    pub fn shortened(mut self) -> Self {
        self.shorten();
        self
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { exe, argv, argv_truncated } = self;
        let argv = redact::argv(argv);
        f.debug_struct("Image")
            .field("exe", exe)
            .field("argv", &argv)
            .field("argv_truncated", argv_truncated)
            .finish()
    }
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, EnumTryAs,
)]
#[serde(rename_all = "snake_case")]
pub enum Stdio {
    /// Not open, or not known.
    #[default]
    Closed,
    Null,
    Terminal,
    File,
    /// A pipe or FIFO, by inode number (as in `pipe:[N]`).
    Pipe(u64),
    /// A socket, by inode number (as in `socket:[N]`).
    Socket(u64),
    Other,
}

impl Stdio {
    /// Whether it can carry a protocol: a pipe or a socket.
    pub const fn is_wire(self) -> bool {
        self.inode().is_some()
    }

    /// The inode number of a pipe or socket.
    pub const fn inode(self) -> Option<u64> {
        match self {
            Self::Pipe(inode) | Self::Socket(inode) => Some(inode),
            _ => None,
        }
    }

    /// Whether these can be standard input and output of a stdio server. A process that writes its answers into a file
    /// or a terminal is none, whatever its standard input is.
    pub const fn are_wires(stdin: Self, stdout: Self) -> bool {
        stdin.is_wire() && stdout.is_wire()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_it_is_bounded() {
        let line = |word: &str, count: usize| Image::new("x".to_owned(), vec![word.to_owned(); count], false);
        let whole = line("a", 128);
        assert!(!whole.argv_truncated && whole.argv.len() == 128);
        let mut many = line("a", 10_000);
        assert!(many.argv_truncated && many.size() < 10_000, "{}", many.size());
        many.shorten();
        assert_eq!(many.argv, ["a"; 16]);
        let mut long = line(&"a".repeat(1000), 2);
        long.shorten();
        assert!(long.argv_truncated && long.argv.len() == 1);
        let mut short = line("a", 3);
        short.shorten();
        assert_eq!(short, line("a", 3));
    }

    #[test]
    fn what_is_written_of_it_has_no_secret() {
        let argv = ["node", "s.js", "--token", "hunter2"].map(str::to_owned).into();
        let image = Image { exe: "/usr/bin/node".to_owned(), argv, argv_truncated: false };
        let written = serde_json::to_string(&image).unwrap();
        for shown in [&written, &format!("{image:?}")] {
            assert!(shown.contains("--token") && !shown.contains("hunter2"), "{shown}");
        }
        let read: Image = serde_json::from_str(&written).unwrap();
        assert_eq!(read.argv, ["node", "s.js", "--token", "***"]);
    }
}
