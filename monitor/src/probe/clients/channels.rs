//! Channels that somebody made beside the wires: pairs of unix sockets without names, and connections of a server to its
//! living owner.

use std::{collections::HashSet, io};

use orphand_core::recognise::container_client;

use super::Found;
use crate::host::{UnixSocket, UnixSockets};

impl Found<'_> {
    /// Those of these sockets, each with its peer, that somebody may use although neither end listened. The peer may be
    /// a process of those that are inspected, which the server let go. The standard streams are wires, or are asked about
    /// elsewhere. A pair whose other end an unused sibling has was inherited by accident.
    pub(super) fn channels(
        &self,
        asked: &mut UnixSockets,
        sockets: &[UnixSocket],
    ) -> io::Result<Vec<(u64, u64)>> {
        let mut channels = Vec::new();
        for socket in sockets.iter().filter(|socket| !self.standard.contains(&socket.inode)) {
            let Some(peer) = socket.peer.filter(|peer| *peer != 0) else { continue };
            let to_host = self.beside.hosts.contains(&peer);
            let may_be = to_host || (socket.name.is_none() && !self.works_for_a_container(socket.inode));
            if may_be && (to_host || asked.find(peer)?.is_some_and(|peer| peer.name.is_none())) {
                channels.push((socket.inode, peer));
            }
        }
        let strange = |peer: &u64| !self.owners.contains_key(peer) && !self.beside.hosts.contains(peer);
        let strangers: HashSet<u64> = channels.iter().map(|(_, peer)| *peer).filter(strange).collect();
        if !strangers.is_empty() {
            let unused = (self.beside.siblings)(&strangers);
            channels.retain(|(_, peer)| !unused.contains(peer));
        }
        Ok(channels)
    }

    /// Whether only clients of containers have this socket. What they are joined with belongs to the container, and
    /// they get no signal. A name that merely sounds like one (`mcp-server-docker`) is none.
    fn works_for_a_container(&self, inode: u64) -> bool {
        let image = |at: &usize| Some(self.proc.identified(*self.processes.get(*at)?).ok()??.image());
        self.owners(inode).iter().all(|at| image(at).is_some_and(|image| container_client(&image).is_some()))
    }
}

#[cfg(test)]
pub(super) mod tests;
