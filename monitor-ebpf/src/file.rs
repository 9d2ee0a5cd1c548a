//! The reader of `struct file` and of what it points to: inode, pipe, socket, terminal. Every offset comes from the running kernel's
//! BTF.
//!
//! The iterator holds a reference to the file that it shows, so its inode, pipe and socket stay allocated. A connected
//! socket holds a reference to its peer. The peer's `struct socket` is freed after an RCU grace period, and a program runs
//! inside a read-side section.

use monitor_common::{Counter, StreamRecord};

use crate::{
    maps::global,
    task::{fields, pointer, read},
};

const S_IFMT: u32 = 0o170_000;
const S_IFIFO: u32 = 0o010_000;
const S_IFSOCK: u32 = 0o140_000;
const S_IFCHR: u32 = 0o020_000;
const S_IFREG: u32 = 0o100_000;
/// include/uapi/linux/major.h.
const UNIX98_PTY_SLAVE_MAJOR: u32 = 136;
/// The device of ptmx(4).
const PTMX: u32 = 5 << 20 | 2;
/// include/linux/socket.h.
const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
/// include/net/sock.h: bind(2) was given a port.
const SOCK_BINDPORT_LOCK: u8 = 8;

#[derive(Clone, Copy)]
pub struct File(*const u8);

/// A `struct sock`.
#[derive(Clone, Copy)]
pub struct Socket(*const u8);

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Inode(*const u8);

impl File {
    fields! {
        /// How it was opened: `FMODE_READ`, `FMODE_WRITE` and others.
        pub access: u32 = END_OFFSETS.file_mode;
    }

    #[inline(always)]
    pub const fn new(file: *const u8) -> Self {
        Self(file)
    }

    #[inline(always)]
    pub fn inode(self) -> Result<Inode, Counter> {
        Ok(Inode(pointer(self.0, global!(OFFSETS.file_inode))?))
    }

    /// References to it, without the iterator's.
    #[inline(always)]
    pub fn references(self) -> Result<u64, Counter> {
        let count: u64 = read(self.0, global!(END_OFFSETS.file_count))?;
        Ok(count.wrapping_sub(u64::from(global!(TUNING.file_count_of_one))))
    }

    /// The socket of a file with the mode of one. None: the file only names a socket (`O_PATH`), and is an end of nothing. Its
    /// inode number is that of a file system which any user may have made, and may be that of somebody else's socket.
    #[inline(always)]
    pub fn socket(self) -> Result<Option<Socket>, Counter> {
        let socket = pointer(self.0, global!(END_OFFSETS.file_private))?;
        if socket.is_null() {
            return Ok(None);
        }
        let sock = pointer(socket, global!(END_OFFSETS.socket_sk))?;
        Ok(if sock.is_null() { None } else { Some(Socket(sock)) })
    }

    /// None: the file is of no terminal of devpts, or only names one (`O_PATH`), as any user may.
    #[inline(always)]
    pub fn terminal(self, mode: u32) -> Result<Option<Terminal>, Counter> {
        if mode & S_IFMT != S_IFCHR {
            return Ok(None);
        }
        let device: u32 = read(self.inode()?.0, global!(OFFSETS.inode_rdev))?;
        let is_master = device == PTMX;
        if !is_master && device >> 20 != UNIX98_PTY_SLAVE_MAJOR {
            return Ok(None);
        }
        let private = pointer(self.0, global!(END_OFFSETS.file_private))?;
        if private.is_null() {
            return Ok(None);
        }
        // The first field of `struct tty_file_private`, drivers/tty/tty.h. Both sides name each other: that proves it.
        let tty = pointer(private, 0)?;
        let [link_at, index_at] = global!(TUNING.tty);
        let other = pointer(tty, link_at).unwrap_or(tty);
        let is_proven =
            link_at != 0 && other != tty && matches!(pointer(other, link_at), Ok(back) if back == tty);
        if is_master && !is_proven {
            return Ok(None);
        }
        let number = if is_master { read(tty, index_at)? } else { device & 0xf_ffff };
        let line = if is_master { other } else { tty };
        let line = if is_proven { line as u64 } else { 0 };
        Ok(Some(Terminal { number, line, is_master }))
    }
}

/// A terminal of devpts that a file is a side of.
pub struct Terminal {
    pub number: u32,
    /// The address of its line; 0 if that cannot be read.
    pub line: u64,
    pub is_master: bool,
}

impl Socket {
    fields! { family: u16 = END_OFFSETS.sock_family; }

    /// The inode number of the peer of a unix socket. 0: the peer has none, because it was closed or is not accepted yet.
    /// None: another kind of socket, or one without a peer.
    #[inline(always)]
    pub fn peer(self) -> Result<Option<u64>, Counter> {
        if self.family()? != AF_UNIX {
            return Ok(None);
        }
        let peer = pointer(self.0, global!(END_OFFSETS.unix_peer))?;
        if peer.is_null() {
            return Ok(None);
        }
        let socket = pointer(peer, global!(END_OFFSETS.sock_socket))?;
        if socket.is_null() {
            return Ok(Some(0));
        }
        let from_socket = global!(END_OFFSETS.alloc_inode).wrapping_sub(global!(END_OFFSETS.alloc_socket));
        Inode(socket.wrapping_add(from_socket as usize)).number().map(Some)
    }

    /// Whether it is an internet socket with a port that its program may have chosen, and not the system.
    #[inline(always)]
    pub fn has_chosen_port(self) -> Result<bool, Counter> {
        if !matches!(self.family()?, AF_INET | AF_INET6) {
            return Ok(false);
        }
        let place = global!(TUNING.sock_userlocks);
        if place == 0 {
            return Ok(true);
        }
        let locks = read::<u8>(self.0, place / 8)? >> (place % 8);
        Ok(locks & SOCK_BINDPORT_LOCK != 0)
    }
}

impl Inode {
    fields! { pub number: u64 = OFFSETS.inode_ino; }

    #[inline(always)]
    pub const fn is_null(self) -> bool {
        self.0.is_null()
    }

    #[inline(always)]
    pub fn mode(self) -> Result<u32, Counter> {
        Ok(u32::from(read::<u16>(self.0, global!(OFFSETS.inode_mode))?))
    }

    /// `i_sb->s_dev`.
    #[inline(always)]
    pub fn device(self) -> Result<u32, Counter> {
        read(pointer(self.0, global!(END_OFFSETS.inode_super))?, global!(END_OFFSETS.super_device))
    }

    /// Of a FIFO: how many open file descriptions can read it, and how many can write it. A FIFO that is open for neither
    /// (`O_PATH`) has no pipe.
    #[inline(always)]
    pub fn pipe(self) -> Result<(u32, u32), Counter> {
        let pipe = pointer(self.0, global!(END_OFFSETS.inode_pipe))?;
        if pipe.is_null() {
            return Ok((0, 0));
        }
        Ok((read(pipe, global!(END_OFFSETS.pipe_readers))?, read(pipe, global!(END_OFFSETS.pipe_writers))?))
    }
}

/// The inode that descriptor `fd`, 0 to 2, is open on; null if it is closed. An array has room for these at least
/// (`NR_OPEN_DEFAULT`).
#[inline(always)]
pub fn opened(descriptors: *const u8, fd: u32) -> Result<Inode, Counter> {
    if descriptors.is_null() {
        return Ok(Inode(descriptors));
    }
    let file = pointer(descriptors, fd * size_of::<*const u8>() as u32)?;
    if file.is_null() { Ok(Inode(file)) } else { File(file).inode() }
}

pub const CLOSED: StreamRecord = StreamRecord { ino: 0, rdev: 0, mode: 0 };

/// Descriptor `fd`, 0 to 2.
#[inline(always)]
pub fn stream(descriptors: *const u8, fd: u32) -> Result<StreamRecord, Counter> {
    let inode = opened(descriptors, fd)?;
    if inode.is_null() {
        return Ok(CLOSED);
    }
    let rdev = read(inode.0, global!(OFFSETS.inode_rdev))?;
    Ok(StreamRecord { ino: inode.number()?, rdev, mode: inode.mode()? })
}

/// Whether it is the mode of a FIFO, with or without a name.
#[inline(always)]
pub const fn is_fifo(mode: u32) -> bool {
    mode & S_IFMT == S_IFIFO
}

#[inline(always)]
pub const fn is_socket(mode: u32) -> bool {
    mode & S_IFMT == S_IFSOCK
}

#[inline(always)]
pub const fn is_regular(mode: u32) -> bool {
    mode & S_IFMT == S_IFREG
}

#[inline(always)]
pub const fn is_fifo_or_socket(mode: u32) -> bool {
    is_fifo(mode) || is_socket(mode)
}
