//! What the kernel side is told once. For [`super::kernel`] only, which hands it out.

use orphand_core::model::{Candidate, RingSize, SetsidHook};

#[derive(Clone, Debug)]
pub struct KernelOptions {
    /// The names whose exec is worth a report.
    pub candidates: Vec<Candidate>,
    /// Whether names that contain `mcp` count as candidates that need no wire.
    pub mcp_names: bool,
    /// Whether any program is a candidate whose standard input and output are wires that its parent, no shell, made.
    pub wired_strangers: bool,
    pub setsid: SetsidHook,
    /// Size of the ring in bytes, rounded up to a power of two.
    pub ring_bytes: u32,
    /// How many processes can be followed at once; those of one user half of that.
    pub members: u32,
    /// How many forks below a candidate are reported until it is judged.
    pub pending_budget: u32,
    /// How many threads can be followed at once.
    pub threads: u32,
    /// How many pipes and sockets one pass over all descriptors can be about; for more it takes several.
    pub wanted: u32,
    /// Whether the programs log (aya-log); free if not.
    pub log: bool,
}

impl Default for KernelOptions {
    fn default() -> Self {
        Self {
            candidates: Vec::new(),
            mcp_names: true,
            wired_strangers: true,
            setsid: SetsidHook::default(),
            ring_bytes: RingSize::DEFAULT.bytes(),
            members: 1 << 15,
            pending_budget: 256,
            threads: 1 << 12,
            wanted: 1 << 13,
            log: false,
        }
    }
}
