//! Where the kernel keeps what the pass over all descriptors reads. A kernel may lack it (`CONFIG_UNIX=m`): then it is not made.

use monitor_common::EndOffsets;

use super::{LayoutError, Names, POINTER};

/// The types that are looked for.
pub(super) const STRUCTS: [&str; 7] =
    ["super_block", "pipe_inode_info", "socket", "sock", "sock_common", "unix_sock", "socket_alloc"];

/// The offsets of the kernel whose types these are.
pub(super) fn offsets(kernel: &Names<'_>) -> Result<EndOffsets, LayoutError> {
    let field = |record, field, size| kernel.offset(record, field, size);
    let (common, _) = kernel.field("sock", "__sk_common")?;
    let (socket, _) = kernel.field("socket_alloc", "socket")?;
    let (inode, _) = kernel.field("socket_alloc", "vfs_inode")?;
    // Since 6.13, and counted from another number.
    let (file_count, file_count_of_one) = match field("file", "f_ref", 8) {
        Ok(reference) => (reference, 0),
        Err(LayoutError::NoField(..)) => (field("file", "f_count", 8)?, 1),
        Err(error) => return Err(error),
    };
    Ok(EndOffsets {
        file_mode: field("file", "f_mode", 4)?,
        file_private: field("file", "private_data", POINTER)?,
        file_count,
        file_count_of_one,
        inode_super: field("inode", "i_sb", POINTER)?,
        inode_pipe: field("inode", "i_pipe", POINTER)?,
        super_device: field("super_block", "s_dev", 4)?,
        pipe_readers: field("pipe_inode_info", "readers", 4)?,
        pipe_writers: field("pipe_inode_info", "writers", 4)?,
        socket_sk: field("socket", "sk", POINTER)?,
        sock_family: common
            .checked_add(field("sock_common", "skc_family", 2)?)
            .ok_or(LayoutError::NoField("sock_common", "skc_family"))?,
        sock_socket: field("sock", "sk_socket", POINTER)?,
        unix_peer: field("unix_sock", "peer", POINTER)?,
        socket_inode: inode.checked_sub(socket).ok_or(LayoutError::NoField("socket_alloc", "vfs_inode"))?,
    })
}
