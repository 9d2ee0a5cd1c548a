//! BPF iterators: programs that the kernel runs for each thing of a kind, and that write down what they are to tell.
//!
//! Invariant: what [`Iterator::pass`] hands out is all of one pass, from the first thing to the last, or it is an error.

use std::{
    fs::File,
    io::{self, Read as _},
    sync::{Mutex, PoisonError, Weak},
};

use aya::{
    Btf, Ebpf,
    programs::{Iter, ProgramError},
};

use super::kernel_error::KernelError;

/// What the kernel's buffer holds, and more.
const BUFFER: usize = 64 << 10;
/// How often the kernel may say that it has looked at a million things in a row and found nothing (`MAX_ITER_OBJECTS`).
const MILLIONS: u32 = 1000;

/// One program, and what it goes over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Iterator {
    /// Its function in the object.
    pub program: &'static str,
    /// What the kernel calls such a pass.
    pub kind: &'static str,
    /// How it is called among the hooks.
    pub hook: &'static str,
}

impl Iterator {
    /// Loads the program.
    pub fn load(self, programs: &mut Ebpf) -> Result<(), KernelError> {
        let refused = |e: ProgramError| KernelError::program(self.hook, &e);
        let btf = Btf::from_sys_fs().map_err(|e| refused(e.into()))?;
        self.among(programs)?.load(self.kind, &btf).map_err(refused)
    }

    fn among(self, programs: &mut Ebpf) -> Result<&mut Iter, KernelError> {
        let program = programs.program_mut(self.program).and_then(|p| p.try_into().ok());
        program.ok_or_else(|| KernelError::no_object(self.program))
    }

    /// One pass from the first thing on. `take` gets what is there and says how many bytes at its end are no whole
    /// record yet.
    pub fn pass(
        self,
        programs: &Weak<Mutex<Ebpf>>,
        mut take: impl FnMut(&[u8]) -> usize,
    ) -> Result<(), String> {
        let mut file = self.begin(programs)?;
        let mut buffer = vec![0; BUFFER];
        let mut begun = 0;
        let mut millions = 0;
        loop {
            let free = buffer.get_mut(begun..).unwrap_or_default();
            let got = match file.read(free) {
                Ok(0) if begun == 0 => return Ok(()),
                Ok(0) => return Err(format!("the kernel told {begun} bytes of a record and no more")),
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && millions < MILLIONS => {
                    millions += 1;
                    continue;
                }
                Err(error) => return Err(format!("cannot read on: {error}")),
            };
            let filled = begun + got;
            let rest = take(buffer.get(..filled).unwrap_or_default()).min(filled);
            buffer.copy_within(filled - rest..filled, 0);
            begun = rest;
        }
    }

    fn begin(self, programs: &Weak<Mutex<Ebpf>>) -> Result<File, String> {
        let programs = programs.upgrade().ok_or("the kernel side is gone")?;
        // Nothing panics while it is locked, and what it guards would be whole all the same.
        let mut programs = programs.lock().unwrap_or_else(PoisonError::into_inner);
        let program = self.among(&mut programs).map_err(|e| e.to_string())?;
        let link = program.attach().and_then(|id| program.take_link(id));
        let link = link.map_err(|e| KernelError::program(self.hook, &e).to_string())?;
        link.into_file().map_err(|error| format!("cannot begin a pass of {}: {error}", self.hook))
    }
}
