//! Who has the far end of a connection, where that is a process of this host: before a password is sent to it.
//!
//! While the registry is down, any local user may listen at its port. The kernel's table of TCP sockets tells the user of
//! the far end of this very connection, once a process has accepted it. Invariant: a connection to a loopback address, or
//! from an address to itself, is trusted only if the table says that a process of a trusted user has accepted it. Another
//! host is as trustworthy as the network to it: nothing is asked then.

use std::{io, net::SocketAddr, time::Duration};

use rustix::process::geteuid;
use tokio::{
    net::TcpStream,
    time::{Instant, sleep},
};

use super::trouble::Trouble;
use crate::{host::far_end_of, os::beside};

/// How long the far end may take to accept the connection.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks.
const GLANCE: Duration = Duration::from_millis(10);
/// Users below this number are services of the system: `UID_MIN` in login.defs(5).
const FIRST_PERSON: u32 = 1000;

/// Whether this user may be told the password: root, a service of the system, orphand's own user, or the configured one.
fn is_trusted(user: u32, configured: Option<u32>) -> bool {
    user < FIRST_PERSON || user == geteuid().as_raw() || Some(user) == configured
}

/// An error unless the far end of this connection may be told the password.
pub(super) async fn check(stream: &TcpStream, configured: Option<u32>) -> Result<(), Trouble> {
    let (near, far) = (address(stream.local_addr())?, address(stream.peer_addr())?);
    if !far.ip().is_loopback() && far.ip() != near.ip() {
        return Ok(());
    }
    let begun = Instant::now();
    loop {
        // The table may be long.
        let found = beside(move || far_end_of(near, far));
        match found.await.and_then(|found| found.map_err(io::Error::other)) {
            Ok(Some(user)) if is_trusted(user, configured) => return Ok(()),
            Ok(Some(user)) => return Err(Trouble::Stranger(user)),
            Ok(None) if begun.elapsed() < PATIENCE => sleep(GLANCE).await,
            Ok(None) => return Err(Trouble::Nobody),
            Err(error) => return Err(Trouble::Connect(error)),
        }
    }
}

/// An IPv4 address that an IPv6 socket shows is an IPv4 address.
fn address(of: io::Result<SocketAddr>) -> Result<SocketAddr, Trouble> {
    let address = of.map_err(Trouble::Connect)?;
    Ok(SocketAddr::new(address.ip().to_canonical(), address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getuid;
    use tokio::net::TcpListener;

    #[test]
    fn people_are_trusted_by_configuration_only() {
        let us = geteuid().as_raw();
        let person = if us == 4242 { 4243 } else { 4242 };
        assert!(is_trusted(0, None) && is_trusted(999, None) && is_trusted(us, None));
        assert!(!is_trusted(person, None) && !is_trusted(person, Some(person + 7)));
        assert!(is_trusted(person, Some(person)));
    }

    #[tokio::test]
    async fn only_who_has_accepted_the_connection_has_its_far_end() {
        for place in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(place).await.unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let ends = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
            assert_eq!(far_end_of(ends.0, ends.1).unwrap(), None, "nobody has accepted it");
            let _far = listener.accept().await.unwrap();
            assert_eq!(far_end_of(ends.0, ends.1).unwrap(), Some(getuid().as_raw()));
            check(&stream, None).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_far_end_that_nobody_accepts_is_a_stranger() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let trouble = check(&stream, None).await.unwrap_err();
        assert!(trouble.to_string().starts_with("no process of this host is seen"), "{trouble}");
    }
}
