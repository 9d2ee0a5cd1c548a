//! The side of the helper: it gives up all rights, and then reads the question.
//!
//! Invariant: nothing is read that others wrote before the limits hold and the capabilities are gone for good.

use std::{
    fs::File,
    io::{self, IoSliceMut, Read as _, Write as _},
    mem::MaybeUninit,
    os::fd::OwnedFd,
};

use rustix::{
    io::Errno,
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg},
    process::{
        DumpableBehavior, Resource, Rlimit, Signal, getrlimit, set_dumpable_behavior,
        set_parent_process_death_signal, setrlimit,
    },
    thread::{set_name, set_no_new_privs},
};
use serde::{Serialize, de::DeserializeOwned};

use super::{FILES, Task, apart};
use crate::os::{capabilities, own};

/// The first command-line argument that makes the program a helper. The second one is the name of its task.
pub const ARGUMENT: &str = "__helper";

const LONGEST: u64 = 16 << 20;
/// The limits: bytes of memory, with the 64 MiB of a parser's stack, of the main thread's stack, seconds on a processor,
/// descriptors, bytes of a file that it writes, which is the answer. Nothing is left of a crash.
const LIMITS: [(Resource, u64); 6] = [
    (Resource::Data, 160 << 20),
    (Resource::Stack, 8 << 20),
    (Resource::Cpu, 2),
    (Resource::Nofile, 256),
    (Resource::Fsize, super::LONGEST),
    (Resource::Core, 0),
];

/// The main function of a helper. `work` gives the answer to the question, with the files that came with it. Returns
/// whether the answer could be written.
pub fn serve(work: impl FnOnce(Task, &[u8], Vec<OwnedFd>) -> Option<Vec<u8>>) -> bool {
    let name = std::env::args().nth(2).unwrap_or_default();
    let Ok(task) = serde_json::from_value::<Task>(name.into()) else { return false };
    if task == Task::Text {
        return confine(true).and_then(|()| apart::serve()).is_ok();
    }
    let asked = confine(false).and_then(|()| question()).ok();
    let answer = asked.and_then(|(question, files)| work(task, &question, files));
    answer.is_some_and(|answer| io::stdout().write_all(&answer).is_ok())
}

/// The answer of `work` to a question, as it is written; nothing if the question is none.
pub fn answered<Q: DeserializeOwned, A: Serialize>(
    question: &[u8],
    work: impl FnOnce(Q) -> A,
) -> Option<Vec<u8>> {
    serde_json::to_vec(&work(serde_json::from_slice(question).ok()?)).ok()
}

/// `stays`: it reads nothing that is parsed, is asked by any thread, ends with its way to them, and is the first to end where
/// memory runs out.
fn confine(stays: bool) -> io::Result<()> {
    // Root owns the files in /proc of a process that is not dumpable, this score too.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    own::raise_oom_score(if stays { 1000 } else { 0 });
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    set_no_new_privs(true)?;
    capabilities::drop_all()?;
    // Otherwise the process would be called `exe`, after the path that it is started by.
    let _ = set_name(c"orphand-helper");
    for (resource, most) in LIMITS.into_iter().filter(|(resource, _)| !(stays && *resource == Resource::Cpu))
    {
        let most = getrlimit(resource).maximum.map_or(most, |had| had.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    // A file that does not answer must not keep it for longer than who asks.
    if !stays {
        set_parent_process_death_signal(Some(Signal::KILL))?;
    }
    Ok(())
}

fn question() -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let (_, files) = received(&mut [0])?;
    let mut files = files.into_iter();
    let text = files.next().ok_or(Errno::NODATA)?;
    let mut question = Vec::new();
    File::from(text).take(LONGEST).read_to_end(&mut question)?;
    Ok((question, files.collect()))
}

/// The next bytes of standard input, and the files that came with them.
pub(super) fn received(bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES + 1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(io::stdin(), &mut [IoSliceMut::new(bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    Ok((got.bytes, files.flatten().collect()))
}
