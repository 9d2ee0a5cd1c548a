//! Files of the kernel's whose text is made in one piece (`single_open()`, `fs/seq_file.c`), and what waits in pipes and sockets,
//! read apart.
//!
//! The kernel makes all of such a text, up to 2 GiB, before it hands out the first byte, in memory that is charged to the
//! control group of who reads. Users make it as long as they like. So a helper reads it, which the kernel ends before
//! anything else where memory runs out, and which is ended as soon as it has worked for longer than an honest text takes. Who
//! copies what waits in a pipe waits for its lock, which its reader may keep: such a helper is abandoned.
//! Invariant: the daemon takes no more memory than it has asked for; what cannot be had within the bounds is an error.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    process::{Child, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FileType, fstat},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};

use super::{Task, command, confine::received, keep, peek, require_room, send};
use crate::os::{
    self, has_ended, lock,
    processor_time::{self, Meter},
};

const SLICE: Duration = Duration::from_millis(10);
/// What a text may take: a thousand times an ordinary one, and less than it takes to fill the memory of the unit.
const WORK: Duration = Duration::from_millis(50);
/// For how long a helper may sleep: some of these texts wait for a lock that a user's process has.
const SLEEP: Duration = Duration::from_millis(250);
const ENDING: Duration = Duration::from_millis(100);
/// So many helpers stay, for those who ask next.
const KEPT: usize = 2;

static IDLE: Mutex<Vec<Reader>> = Mutex::new(Vec::new());
/// Whether this program serves as its own helper. Others that contain this code, tests and benches, read for themselves.
static SERVES: AtomicBool = AtomicBool::new(false);

/// The main function serves helpers.
pub fn can_serve() {
    SERVES.store(true, Ordering::Relaxed);
}

/// For how long a helper worked, and slept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    pub worked: Duration,
    pub slept: Duration,
}

/// What comes next in this file, at most `most` bytes and one more. `user` is whoever can make it long; nothing is read for one for
/// whom an earlier helper still reads.
pub fn read(
    file: &OwnedFd,
    most: usize,
    user: impl Fn() -> Option<u32>,
    cost: &mut Cost,
) -> Result<Vec<u8>, Errno> {
    // He would end the idle ones, too, one after the other.
    require_room(user()).map_err(|_| Errno::TIMEDOUT)?;
    if !SERVES.load(Ordering::Relaxed) {
        return file.try_clone().map_err(|error| errno(&error)).and_then(|file| text_of(file, most));
    }
    let idle = lock(&IDLE).pop();
    match idle.map(|reader| reader.ask(file, most, &user, cost)) {
        // It has ended meanwhile, or for what another one reads at this moment.
        None | Some(Err(Errno::PIPE)) => {
            let reader = Reader::start().map_err(|error| errno(&error))?;
            reader.ask(file, most, &user, cost)
        }
        Some(told) => told,
    }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn text_of(file: OwnedFd, most: usize) -> Result<Vec<u8>, Errno> {
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::Fifo => return peek::in_pipe(file, most),
        FileType::Socket => return peek::in_socket(&file, most),
        _ => {}
    }
    let mut text = Vec::with_capacity(most.min(4095) + 1);
    let got = File::from(file).take((most as u64).saturating_add(1)).read_to_end(&mut text);
    got.map_err(|error| errno(&error)).map(|_| text)
}

/// What a helper that reads spends all its life on.
pub(super) fn serve() -> io::Result<()> {
    let mut way = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut most = [0; 8];
    while let (8, mut files) = received(&mut most)? {
        let meter = Meter::begin();
        let file = files.pop().ok_or(Errno::NODATA)?;
        let text = text_of(file, usize::try_from(u64::from_ne_bytes(most)).unwrap_or_default());
        let error = text.as_ref().err().map_or(0, |errno| errno.raw_os_error());
        let text = text.unwrap_or_default();
        let worked = u64::try_from(meter.spent().as_nanos()).unwrap_or(u64::MAX);
        let head = [u64::from(error.unsigned_abs()), worked, text.len() as u64];
        way.write_all(&head.map(u64::to_ne_bytes).concat())?;
        way.write_all(&text)?;
    }
    Ok(())
}

/// A helper that reads.
#[derive(Debug)]
struct Reader {
    child: Child,
    way: UnixStream,
}

impl Reader {
    fn start() -> io::Result<Self> {
        let (way, theirs) = UnixStream::pair()?;
        let child = os::launch(command(Task::Text).stdin(OwnedFd::from(theirs)).stdout(Stdio::null()))?;
        Ok(Self { child, way })
    }

    /// The error is `EPIPE` if the helper has ended.
    fn ask(
        mut self,
        file: &OwnedFd,
        most: usize,
        user: impl Fn() -> Option<u32>,
        cost: &mut Cost,
    ) -> Result<Vec<u8>, Errno> {
        let told = self.told(file, most, cost);
        let mut idle = lock(&IDLE);
        if told.is_ok() && idle.len() < KEPT {
            idle.push(self);
        } else {
            drop(idle);
            self.end(user());
        }
        told?
    }

    /// What it tells of the file. The outer error is one of the helper, which is not asked again.
    fn told(
        &mut self,
        file: &OwnedFd,
        most: usize,
        cost: &mut Cost,
    ) -> Result<Result<Vec<u8>, Errno>, Errno> {
        send(&self.way, &(most as u64).to_ne_bytes(), &[file.as_fd()])?;
        let mut before = None;
        while !self.has_answer()? {
            let ran = processor_time::of_process(self.child.id()).unwrap_or_default();
            cost.worked = ran.saturating_sub(*before.get_or_insert(ran));
            // One that waits for a processor is not to blame.
            if !processor_time::is_running(self.child.id()) {
                cost.slept += SLICE;
            }
            if cost.worked > WORK || cost.slept > SLEEP {
                processor_time::add(cost.worked);
                return Err(Errno::TIMEDOUT);
            }
        }
        let [error, worked, length] = [self.number()?, self.number()?, self.number()?];
        cost.worked = Duration::from_nanos(worked);
        processor_time::add(cost.worked);
        let mut text = vec![0; usize::try_from(length).unwrap_or(usize::MAX).min(most.saturating_add(1))];
        self.way.read_exact(&mut text).map_err(|_| Errno::PIPE)?;
        let error = i32::try_from(error).unwrap_or_default();
        Ok(if error == 0 { Ok(text) } else { Err(Errno::from_raw_os_error(error)) })
    }

    fn number(&mut self) -> Result<u64, Errno> {
        let mut bytes = [0; 8];
        self.way.read_exact(&mut bytes).map_err(|_| Errno::PIPE)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn has_answer(&self) -> Result<bool, Errno> {
        let slice = Timespec::try_from(SLICE).ok();
        match poll(&mut [PollFd::new(&self.way, PollFlags::IN)], slice.as_ref()) {
            Err(Errno::INTR) => Ok(false),
            told => Ok(told? > 0),
        }
    }

    fn end(mut self, user: Option<u32>) {
        let _ = self.child.kill();
        let pidfd = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty());
        if pidfd.is_ok_and(|pidfd| has_ended(&pidfd, ENDING)) {
            let _ = self.child.wait();
        } else {
            keep(self.child, user);
        }
    }
}
