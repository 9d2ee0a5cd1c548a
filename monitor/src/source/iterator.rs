//! BPF iterators: programs that the kernel runs for each thing of a kind, and that write a record of what they are to tell.
//!
//! Invariant: what [`Iterator::pass`] hands out is all of one pass, from the first thing to the last, or it is an error.

use std::{
    fs::File,
    io::{self, Read as _},
    marker::PhantomData,
    os::fd::AsFd as _,
    sync::{Arc, Mutex, Weak},
};

use aya::{Btf, Ebpf, Pod, programs::Iter};
use monitor_common::{descriptors_of, record};

use super::{attach, kernel_error::KernelError};
use crate::os::lock;

/// What the kernel's buffer holds, and more.
const BUFFER: usize = 64 << 10;
/// How often the kernel may say that it has looked at a million things in a row and found nothing (`MAX_ITER_OBJECTS`).
const MILLIONS: u32 = 1000;

/// A program that writes records of this type. It works as long as the kernel side is there.
#[derive(Debug)]
pub(super) struct Iterator<T> {
    programs: Weak<Mutex<Ebpf>>,
    program: &'static str,
    records: PhantomData<T>,
}

impl<T: Pod> Iterator<T> {
    /// Loads the program of that name, which is what the kernel calls such a pass.
    pub fn load(programs: &Arc<Mutex<Ebpf>>, program: &'static str, btf: &Btf) -> Result<Self, KernelError> {
        let mut all = lock(programs);
        let iter: &mut Iter = attach::program(&mut all, program)?;
        attach::loaded(iter.load(program, btf)).map_err(|e| KernelError::program(program, &e))?;
        Ok(Self { programs: Arc::downgrade(programs), program, records: PhantomData })
    }

    /// One pass from the first thing on, over all or, for a pass over descriptors, over those of process `whose` at least: over all
    /// where the kernel knows no such pass. An error if there are more than so many records.
    pub fn pass(&self, whose: Option<u32>, most: usize) -> Result<Vec<T>, String> {
        read(self.begin(whose)?, most)
    }

    fn begin(&self, whose: Option<u32>) -> Result<File, String> {
        let programs = self.programs.upgrade().ok_or("the kernel side is gone")?;
        let mut programs = lock(&programs);
        let iter: &mut Iter = attach::program(&mut programs, self.program).map_err(|e| e.to_string())?;
        if let Some(file) = whose.and_then(|process| descriptors_of(iter.fd().ok()?.as_fd(), process).ok()) {
            return Ok(file);
        }
        let link = iter.attach().and_then(|id| iter.take_link(id));
        let link = link.map_err(|e| KernelError::program(self.program, &e).to_string())?;
        link.into_file().map_err(|error| format!("cannot begin a pass of {}: {error}", self.program))
    }
}

fn read<T: Pod>(mut file: File, most: usize) -> Result<Vec<T>, String> {
    let mut records = Vec::new();
    let mut buffer = vec![0; BUFFER];
    let (mut begun, mut millions) = (0, 0);
    loop {
        let got = match file.read(buffer.get_mut(begun..).unwrap_or_default()) {
            Ok(0) if begun == 0 => return Ok(records),
            Ok(0) => return Err(format!("the kernel told {begun} bytes of a record and no more")),
            Ok(got) => got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && millions < MILLIONS => {
                millions += 1;
                continue;
            }
            Err(error) => return Err(format!("cannot read on: {error}")),
        };
        if records.len() > most {
            return Err(format!("there is more to tell than {most} records"));
        }
        let filled = begun + got;
        records.extend(whole::<T>(buffer.get(..filled).unwrap_or_default()));
        begun = filled % size_of::<T>();
        buffer.copy_within(filled - begun..filled, 0);
    }
}

/// The whole records at the beginning of these bytes.
pub(super) fn whole<T: Pod>(bytes: &[u8]) -> impl std::iter::Iterator<Item = T> {
    bytes.chunks_exact(size_of::<T>()).filter_map(record)
}

#[cfg(test)]
mod tests {
    use monitor_common::EndRecord;

    use super::*;

    #[test]
    fn what_is_kept_of_a_pass_is_bounded() {
        let zeroes = |size: usize| {
            let file = tempfile::tempfile().unwrap();
            file.set_len(size as u64).unwrap();
            file
        };
        let size = size_of::<EndRecord>();
        assert_eq!(read::<EndRecord>(zeroes(10 * size), 10).unwrap().len(), 10);
        assert!(read::<EndRecord>(zeroes(1 << 40), 10).is_err());
    }
}
