//! Open files of a model process: just enough to know who holds which end of a wire.

use std::collections::BTreeMap;

use orphand_core::model::Stdio;

/// What a descriptor refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Null,
    Terminal,
    File,
    /// The reading end of the pipe with this inode number.
    Read(u64),
    /// Its writing end: the same inode number.
    Write(u64),
    /// The socket with this inode number.
    Socket(u64),
}

impl End {
    pub fn stdio(self) -> Stdio {
        match self {
            Self::Null => Stdio::Null,
            Self::Terminal => Stdio::Terminal,
            Self::File => Stdio::File,
            Self::Read(n) | Self::Write(n) => Stdio::Pipe(n),
            Self::Socket(n) => Stdio::Socket(n),
        }
    }
}

/// A descriptor.
#[derive(Clone, Copy, Debug)]
pub struct Fd {
    pub end: End,
    pub cloexec: bool,
}

/// A descriptor table.
#[derive(Clone, Debug, Default)]
pub struct Files(BTreeMap<u32, Fd>);

/// Where Python's mcp 2 moves its wires, input and output.
const MOVED: u32 = 6;
const MOVED_OUT: u32 = 7;

impl Files {
    /// Standard streams on `end`.
    fn on(end: End) -> Self {
        Self((0..3).map(|n| (n, Fd { end, cloexec: false })).collect())
    }

    pub fn on_null() -> Self {
        Self::on(End::Null)
    }

    pub fn on_terminal() -> Self {
        Self::on(End::Terminal)
    }

    pub fn open(&mut self, number: u32, fd: Fd) {
        self.0.insert(number, fd);
    }

    /// Opens `end` on the lowest free number from 10 on.
    pub fn open_anywhere(&mut self, end: End, cloexec: bool) {
        let number = (10..1000).find(|n| !self.0.contains_key(n)).unwrap_or(u32::MAX);
        self.open(number, Fd { end, cloexec });
    }

    /// Replaces whatever standard streams there are by /dev/null.
    pub fn null_streams(&mut self) {
        for number in 0..3 {
            self.open(number, Fd { end: End::Null, cloexec: false });
        }
    }

    pub fn close(&mut self, end: End) {
        self.0.retain(|_, fd| fd.end != end);
    }

    pub fn close_on_exec(&mut self) {
        self.0.retain(|_, fd| !fd.cloexec);
    }

    pub fn has(&self, end: End) -> bool {
        self.0.values().any(|fd| fd.end == end)
    }

    /// The numbers of its descriptors of this.
    pub fn numbers(&self, end: End) -> Vec<u32> {
        self.0.iter().filter(|(_, fd)| fd.end == end).map(|(number, _)| *number).collect()
    }

    /// What is open on standard input, output and error.
    pub fn streams(&self) -> impl Iterator<Item = End> {
        (0..3).filter_map(|n| self.end(n))
    }

    /// All that is open.
    pub fn ends(&self) -> impl Iterator<Item = End> {
        self.0.values().map(|fd| fd.end)
    }

    fn end(&self, number: u32) -> Option<End> {
        self.0.get(&number).map(|fd| fd.end)
    }

    /// Standard input, output and error as the kernel side reads them at exec.
    pub fn standard(&self) -> [Stdio; 3] {
        [0, 1, 2].map(|n| self.end(n).map_or(Stdio::Closed, End::stdio))
    }

    /// The same as a look at /proc tells them: the wire is found where it was moved to.
    pub fn standard_with_wire(&self) -> [Stdio; 3] {
        let mut all = self.standard();
        if let Some(moved) = self.end(MOVED) {
            (all[0], all[1]) = (moved.stdio(), moved.stdio());
        }
        all
    }

    /// What the process reads its messages from.
    pub fn wire(&self) -> Option<End> {
        self.end(MOVED).or_else(|| self.end(0)).filter(|end| matches!(end, End::Read(_) | End::Socket(_)))
    }

    /// Moves the wire off standard input, as Python's mcp 2 does while it serves.
    pub fn move_wire(&mut self) {
        if let Some(wire) = self.wire() {
            self.open(MOVED, Fd { end: wire, cloexec: true });
            if let Some(end) = self.end(1) {
                self.open(MOVED_OUT, Fd { end, cloexec: true });
            }
            self.open(0, Fd { end: End::Null, cloexec: false });
            self.open(1, Fd { end: End::File, cloexec: false });
        }
    }
}
