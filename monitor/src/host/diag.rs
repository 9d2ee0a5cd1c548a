//! Questions to the kernel about sockets (`sock_diag(7)`). They have no effect on the sockets.

use std::{io, net::SocketAddr};

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::{
    SockDiagMessage,
    constants::{AF_INET, AF_INET6, IPPROTO_TCP},
    inet::{ExtensionFlags, InetRequest, SocketId, StateFlags},
};
use netlink_sys::{Socket, protocols::NETLINK_SOCK_DIAG};

/// The largest packet of the kernel's: room for a listener at which 4,096 connections wait (`net.core.somaxconn`).
const PACKET: usize = 32 * 1024;

/// A socket for questions about our own network namespace, or that of the thread.
pub(super) fn open() -> io::Result<Socket> {
    let socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.connect(&netlink_sys::SocketAddr::new(0, 0))?;
    Ok(socket)
}

/// Puts a question, about all sockets (`NLM_F_DUMP`) or about one.
pub(super) fn ask(
    socket: &Socket,
    question: SockDiagMessage,
    flags: u16,
    mut told: impl FnMut(SockDiagMessage),
) -> io::Result<()> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    let mut message = NetlinkMessage::new(header, question.into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    // A list ends at a socket that fits into no packet, without a word.
    let mut packet = Vec::with_capacity(PACKET);
    loop {
        packet.clear();
        socket.recv(&mut packet, 0)?;
        let mut rest = packet.as_slice();
        while !rest.is_empty() {
            let length = NetlinkBuffer::new_checked(rest).map_err(io::Error::other)?.length() as usize;
            match NetlinkMessage::<SockDiagMessage>::deserialize(rest).map(|m| m.payload) {
                Ok(NetlinkPayload::InnerMessage(answer)) => {
                    told(answer);
                    if flags & NLM_F_DUMP == 0 {
                        return Ok(());
                    }
                }
                Ok(NetlinkPayload::Done(_)) => return Ok(()),
                Ok(NetlinkPayload::Error(error)) => return Err(error.to_io()),
                // A socket whose name cannot be decoded must not hide all others.
                Ok(_) | Err(_) => {}
            }
            // Messages are aligned to four bytes, NLMSG_ALIGN().
            rest = rest.get(length.next_multiple_of(4).max(16)..).unwrap_or_default();
        }
        if flags & NLM_F_DUMP == 0 {
            return Err(io::Error::other("sock_diag gave an answer that is none"));
        }
    }
}

/// The user who made the far end of a TCP connection of ours, if that is a socket of our network namespace. One look-up in
/// the kernel's table, however many connections there are. Not every kernel answers (`CONFIG_INET_DIAG`): whoever must be sure
/// reads the whole table ([`super::far_end_of`]).
pub fn user_of_far_end(near: SocketAddr, far: SocketAddr) -> Option<u32> {
    let mut socket_id = if far.is_ipv4() { SocketId::new_v4() } else { SocketId::new_v6() };
    (socket_id.source_address, socket_id.source_port) = (far.ip(), far.port());
    (socket_id.destination_address, socket_id.destination_port) = (near.ip(), near.port());
    socket_id.cookie = [0xff; 8];
    let question = InetRequest {
        family: if far.is_ipv4() { AF_INET } else { AF_INET6 },
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::empty(),
        states: StateFlags::all(),
        socket_id,
    };
    let mut user = None;
    ask(&open().ok()?, SockDiagMessage::InetRequest(question), 0, |told| {
        // Where there is no such connection, the kernel tells of who listens at that port.
        if let SockDiagMessage::InetResponse(found) = told
            && found.header.socket_id.destination_port == near.port()
        {
            user = Some(found.header.uid);
        }
    })
    .ok()?;
    user
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn who_has_the_far_end_is_known() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (near, far) = (client.peer_addr().unwrap(), client.local_addr().unwrap());
            let us = rustix::process::getuid().as_raw();
            assert_eq!(user_of_far_end(near, far), Some(us), "{address}");
            // Somebody listens there, and has no such connection.
            assert_eq!(user_of_far_end(far, near), Some(us), "it waits to be accepted");
            assert_eq!(user_of_far_end(SocketAddr::new(far.ip(), 1), near), None);
        }
    }
}
