//! The messages to the service manager: ready, reloading, stopping, alive (`sd_notify(3)`, `Type=notify`).
//!
//! Invariant: a service manager that does not read its socket delays nothing: what it has no room for is dropped, and at worst
//! the watchdog restarts the daemon. Without `NOTIFY_SOCKET` nothing is sent, without `WATCHDOG_USEC` nobody is woken.

use std::{
    env,
    ffi::{OsStr, OsString},
    io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            ffi::OsStrExt as _,
            net::{SocketAddr, UnixDatagram},
        },
    },
    time::Duration,
};

use sd_notify::NotifyState;

use orphand_core::model::BootTime;

/// The environment variable with the service manager's socket: a path, or an abstract name after an `@`.
const SOCKET: &str = "NOTIFY_SOCKET";

/// The connection to the service manager, if one started the daemon and expects messages.
#[derive(Debug, Default)]
pub struct Notify {
    socket: Option<OsString>,
    watchdog: Option<Watchdog>,
}

#[derive(Debug)]
struct Watchdog {
    /// The time between two messages: half of the time that the service manager allows.
    period: Duration,
    due: BootTime,
}

impl Notify {
    /// Reads the environment variables. The first message to the watchdog is due at once.
    pub fn from_environment(now: BootTime) -> Self {
        Self::new(env::var_os(SOCKET), sd_notify::watchdog_enabled(), now)
    }

    fn new(socket: Option<OsString>, limit: Option<Duration>, now: BootTime) -> Self {
        let socket = socket.filter(|name| !name.is_empty());
        let watchdog = limit.filter(|limit| socket.is_some() && !limit.is_zero());
        Self { socket, watchdog: watchdog.map(|limit| Watchdog { period: limit / 2, due: now }) }
    }

    /// Reports that the daemon watches. This also ends a reload.
    pub fn ready(&self, status: &str) {
        self.tell(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// [`Notify::ready`] reports the end. `Type=notify-reload` requires the time.
    pub fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.tell(&[NotifyState::Reloading, now]),
            Err(_) => self.tell(&[NotifyState::Reloading]),
        }
    }

    pub fn stopping(&self) {
        self.tell(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
    }

    pub fn due(&self) -> Option<BootTime> {
        self.watchdog.as_ref().map(|watchdog| watchdog.due)
    }

    pub fn is_due(&self, now: BootTime) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    /// Sends a message to the watchdog. Only for the daemon's main loop, because the message proves that the loop runs.
    pub fn alive(&mut self, now: BootTime, status: &str) {
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.due = now + watchdog.period;
        }
        self.tell(&[NotifyState::Watchdog, NotifyState::Status(status)]);
    }

    fn tell(&self, states: &[NotifyState<'_>]) {
        let Some(socket) = &self.socket else { return };
        let lines: Vec<String> = states.iter().map(ToString::to_string).collect();
        let message = format!("{}\n", lines.join("\n"));
        if let Err(error) = send(socket, message.as_bytes()) {
            tracing::warn!("cannot tell the service manager at {}: {error}", socket.display());
        }
    }
}

fn send(socket: &OsStr, message: &[u8]) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let line = UnixDatagram::unbound()?;
    line.set_nonblocking(true)?;
    line.send_to_addr(message, &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen() -> (UnixDatagram, OsString) {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("orphand-test-{}-{number}", std::process::id());
        let line = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        line.set_nonblocking(true).unwrap();
        (line, format!("@{name}").into())
    }

    fn heard(line: &UnixDatagram) -> Option<String> {
        let mut message = [0; 512];
        let length = line.recv(&mut message).ok()?;
        Some(String::from_utf8(message[..length].to_vec()).unwrap())
    }

    const LIMIT: Duration = Duration::from_secs(30);

    #[test]
    fn what_is_told() {
        let (line, name) = listen();
        let notify = Notify::new(Some(name), None, BootTime(1));
        notify.ready("watching");
        assert_eq!(heard(&line).unwrap(), "READY=1\nSTATUS=watching\n");
        notify.reloading();
        let told = heard(&line).unwrap();
        assert!(told.starts_with("RELOADING=1\nMONOTONIC_USEC=") && told.ends_with('\n'), "{told}");
        notify.stopping();
        assert_eq!(heard(&line).unwrap(), "STOPPING=1\nSTATUS=stopping\n");
    }

    #[test]
    fn a_sign_of_life_comes_when_it_is_due_and_not_before() {
        let (line, name) = listen();
        let start = BootTime(1_000);
        let mut notify = Notify::new(Some(name), Some(LIMIT), start);
        assert!(notify.is_due(start));
        notify.alive(start, "one");
        assert_eq!(heard(&line).unwrap(), "WATCHDOG=1\nSTATUS=one\n");
        assert_eq!(notify.due(), Some(start + LIMIT / 2));
        assert!(!notify.is_due(start + LIMIT / 3) && notify.is_due(start + LIMIT));
        notify.alive(start + LIMIT, "two");
        assert!(heard(&line).unwrap().contains("two"));
        assert_eq!(notify.due(), Some(start + LIMIT + LIMIT / 2), "from now on, not from when it was due");
    }

    #[test]
    fn nobody_is_woken_without_a_watchdog() {
        let (_line, name) = listen();
        for (socket, limit) in
            [(None, Some(LIMIT)), (Some(OsString::new()), Some(LIMIT)), (Some(name.clone()), None)]
        {
            assert_eq!(Notify::new(socket, limit, BootTime(1)).due(), None);
        }
        assert!(Notify::new(Some(name), Some(LIMIT), BootTime(1)).due().is_some());
    }

    #[test]
    fn a_manager_that_does_not_read_delays_nobody() {
        let (_line, name) = listen();
        let notify = Notify::new(Some(name), None, BootTime(1));
        // More messages than a datagram socket can queue.
        for _ in 0..5_000 {
            notify.ready("again");
        }
        Notify::new(Some("@orphand-test-nobody".into()), None, BootTime(1)).ready("to nobody");
    }
}
