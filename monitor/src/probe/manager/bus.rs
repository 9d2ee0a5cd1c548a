//! The D-Bus conversation with a service manager.

use std::{
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use tokio::net::{self, unix::OwnedReadHalf};
use zbus::{
    Connection,
    connection::{
        Builder,
        socket::{BoxedSplit, ReadHalf, Split},
    },
    zvariant::{OwnedObjectPath, OwnedValue},
};

use super::{ManagerError, PATIENCE, Question};
use crate::os::own;
use orphand_core::model::UnitProperties;

const SYSTEMD: &str = "org.freedesktop.systemd1";
const MANAGER_PATH: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const UNIT: &str = "org.freedesktop.systemd1.Unit";
const SERVICE: &str = "org.freedesktop.systemd1.Service";

/// Asks the manager at `socket`. The descriptor may be one opened with `O_PATH`.
pub(super) fn ask(socket: impl AsFd, question: &Question) -> Result<UnitProperties, ManagerError> {
    let stream = reach(socket, question)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| ManagerError::refused(&error))?;
    let said = runtime.block_on(async {
        let stream = net::UnixStream::from_std(stream).map_err(|error| ManagerError::refused(&error))?;
        if let Some(manager) = question.manager {
            // The peer is the process that called listen(2). Containers that share /run have the socket of
            // one manager in common.
            let found =
                stream.peer_cred().map_err(|error| ManagerError::refused(&error))?.pid().unwrap_or_default();
            if u32::try_from(found) != Ok(manager) {
                let what = format!("at {} not its manager answers, but process {found}", question.path);
                let advice = "ask it with `systemctl show`, where it runs";
                return Err(ManagerError::Other(format!("{what}: {advice}")));
            }
        }
        match tokio::time::timeout(PATIENCE, talk(stream, question)).await {
            Ok(said) => said.map_err(|error| ManagerError::refused(&error)),
            Err(_) => Err(ManagerError::Silent(question.path.clone())),
        }
    });
    said?.ok_or(ManagerError::NoUnit)
}

/// Connects without waiting. A listener whose queue is full counts as silent.
fn reach(socket: impl AsFd, question: &Question) -> Result<UnixStream, ManagerError> {
    let failed = |why: io::Error| match why.kind() {
        io::ErrorKind::WouldBlock => ManagerError::Silent(question.path.clone()),
        _ => ManagerError::unreachable(&question.path, &why),
    };
    // This /proc link leads to the file that was opened, even if its path leads elsewhere now.
    let link = own::path_of(&socket.as_fd());
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).and_then(|stream| {
        connect(&stream, &SocketAddrUnix::new(link)?)?;
        Ok(stream)
    });
    let stream = stream.map_err(|errno| failed(errno.into()))?;
    Ok(stream.into())
}

/// The properties of the unit; `None` if there is no such unit.
async fn talk(stream: net::UnixStream, question: &Question) -> zbus::Result<Option<UnitProperties>> {
    let own = question.manager.is_some();
    let builder = if own {
        let (read, write) = stream.into_split();
        let halves: BoxedSplit = Split::new(Box::new(Unnamed(read)), Box::new(write));
        Builder::socket(halves).p2p()
    } else {
        Builder::unix_stream(stream)
    };
    let connection = builder.user_id(question.uid).build().await?;
    let destination = (!own).then_some(SYSTEMD);
    // As `systemctl show` does: the manager reads a unit that is not in memory, and starts nothing.
    let name = (question.unit.as_str(),);
    let reply = connection.call_method(destination, MANAGER_PATH, Some(MANAGER), "LoadUnit", &name).await?;
    let path: OwnedObjectPath = reply.body().deserialize()?;
    let unit = Unit { connection, destination, path };
    if unit.property::<String>(UNIT, "LoadState").await? == "not-found" {
        return Ok(None);
    }
    let stop: u64 = unit.property(SERVICE, "TimeoutStopUSec").await?;
    Ok(Some(UnitProperties {
        main_pid: unit.property(SERVICE, "MainPID").await?,
        kill_mode: unit.property(SERVICE, "KillMode").await?,
        restart: unit.property(SERVICE, "Restart").await?,
        // `USEC_INFINITY`
        timeout_stop_ms: Some(stop).filter(|stop| *stop != u64::MAX).map(|stop| stop / 1000),
        delegate: unit.property(SERVICE, "Delegate").await?,
        fragment: unit.property(UNIT, "FragmentPath").await?,
    }))
}

/// The data that comes from a manager's own socket. The manager names itself there by its well-known name
/// (`sd_bus_set_sender()`). zbus expects a unique name, which begins with a colon, and panics otherwise.
#[derive(Debug)]
struct Unnamed(OwnedReadHalf);

/// The header field `SENDER`, a string of 24 bytes: as the socket sends it, and as zbus accepts it.
const SENDER: [&[u8]; 2] =
    [b"\x07\x01s\0\x18\0\0\0org.freedesktop.systemd1\0", b"\x07\x01s\0\x18\0\0\0:rg.freedesktop.systemd1\0"];

#[async_trait::async_trait]
impl ReadHalf for Unnamed {
    async fn recvmsg(&mut self, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
        let (length, descriptors) = self.0.recvmsg(buffer).await?;
        // A message is written in one call and read in two, first 16 bytes and then the rest. So a read never
        // splits the field.
        let [theirs, ours] = SENDER;
        if let Some(got) = buffer.get_mut(..length)
            && let Some(at) = got.windows(theirs.len()).position(|bytes| bytes == theirs)
            && let Some(field) = got.get_mut(at..at + ours.len())
        {
            field.copy_from_slice(ours);
        }
        Ok((length, descriptors))
    }

    /// Always true: the handshake then ends with a line from the other side. Otherwise our first message
    /// follows `BEGIN` at once. A manager that reads both together answers only when it receives something
    /// more.
    fn can_pass_unix_fd(&self) -> bool {
        true
    }
}

struct Unit {
    connection: Connection,
    destination: Option<&'static str>,
    path: OwnedObjectPath,
}

impl Unit {
    async fn property<T>(&self, interface: &str, name: &str) -> zbus::Result<T>
    where
        T: TryFrom<OwnedValue>,
        zbus::Error: From<T::Error>,
    {
        let properties = Some("org.freedesktop.DBus.Properties");
        let asked = (interface, name);
        let reply = self
            .connection
            .call_method(self.destination, self.path.as_ref(), properties, "Get", &asked)
            .await?;
        let value: OwnedValue = reply.body().deserialize()?;
        Ok(T::try_from(value)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sender_is_where_it_is_looked_for() {
        let message = zbus::message::Message::method_call("/", "Get").unwrap();
        let message = message.sender(":rg.freedesktop.systemd1").unwrap().build(&()).unwrap();
        let [theirs, ours] = SENDER;
        assert!(message.data().bytes().windows(ours.len()).any(|bytes| bytes == ours));
        assert_eq!(theirs.len(), ours.len());
    }
}
