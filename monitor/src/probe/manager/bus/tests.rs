//! A manager that answers one connection, for the tests of those who ask one.

use std::{os::unix::net::UnixListener, path::Path, thread};

use super::*;

/// The unit that exists.
pub(in super::super) const KNOWN: &str = "bot.service";

/// Listens there and answers one connection as a manager does, which names itself by its well-known name. The thread ends
/// with the connection.
pub(in super::super) fn manager(at: &Path) -> thread::JoinHandle<()> {
    let listener = UnixListener::bind(at).unwrap();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut peer = Bus::new(stream);
        // Whoever gives up closes the connection.
        let _ = serve(&mut peer);
    })
}

fn serve(peer: &mut Bus) -> io::Result<()> {
    let expected = login(rustix::process::getuid().as_raw());
    if peer.receive(expected.len())? != expected.as_bytes() {
        return peer.send(b"REJECTED EXTERNAL\r\n");
    }
    peer.send(b"OK 0123456789abcdef0123456789abcdef\r\n")?;
    let mut state = "loaded";
    for serial in 1.. {
        let (_, mut asked) = peer.message()?;
        let (kind, signature, body) = match (asked.string()?.as_str(), asked.string().as_deref()) {
            // An array is read as one string here.
            (states, Err(_)) if states.contains("deactivating") => (RETURN, "a(ssssssouso)", list()),
            (KNOWN, Err(_)) => (RETURN, "o", put("/known")),
            ("odd.service", Err(_)) => (ERROR, "s", put("not\nfor you")),
            (_, Err(_)) => {
                state = "not-found";
                (RETURN, "o", put("/other"))
            }
            (_, Ok("LoadState")) => (RETURN, "v", variant("s", &put(state))),
            (_, Ok("FragmentPath")) => (RETURN, "v", variant("s", &put("/etc/systemd/system/bot.service"))),
            (_, Ok("MainPID")) => (RETURN, "v", variant("u", &7_u32.to_ne_bytes())),
            (_, Ok("KillMode")) => (RETURN, "v", variant("s", &put("process"))),
            (_, Ok("Restart")) => (RETURN, "v", variant("s", &put("always"))),
            (_, Ok("TimeoutStopUSec")) => (RETURN, "v", variant("t", &[0xff; 8])),
            (_, Ok("Delegate")) => (RETURN, "v", variant("b", &1_u32.to_ne_bytes())),
            (_, Ok(other)) => panic!("{other} is asked"),
        };
        let mut fields = Vec::new();
        put_field(&mut fields, 5, "u");
        fields.extend(u32::to_ne_bytes(serial));
        put_field(&mut fields, 7, "s");
        put_string(&mut fields, SYSTEMD);
        put_field(&mut fields, 8, "g");
        put_signature(&mut fields, signature);
        peer.send(&message(4, serial, &[], b""))?;
        peer.send(&message(kind, serial, &fields, &body))?;
    }
    Ok(())
}

/// Two units that are being stopped.
fn list() -> Vec<u8> {
    let mut units = Vec::new();
    for (name, job) in [(KNOWN, "stop"), ("session-2.scope", "")] {
        units.resize(units.len().next_multiple_of(8), 0);
        for text in [name, "A bot", "loaded", "deactivating", "stop-sigterm", "", "/known"] {
            put_string(&mut units, text);
        }
        units.resize(units.len().next_multiple_of(4), 0);
        units.extend(7_u32.to_ne_bytes());
        put_string(&mut units, job);
        put_string(&mut units, "/job");
    }
    // The first one begins at a multiple of eight.
    [size(&units).to_vec(), vec![0; 4], units].concat()
}

fn put(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_string(&mut bytes, text);
    bytes
}

/// `value` begins as if it were alone: at the next multiple of its size.
fn variant(kind: &str, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_signature(&mut bytes, kind);
    bytes.resize(bytes.len().next_multiple_of(if kind == "t" { 8 } else { 4 }), 0);
    bytes.extend(value);
    bytes
}

#[test]
fn foreign_bytes_are_an_error_and_no_panic() {
    let whole = call(1, ["x", "/x", "i", "m"], "ss", &["a", "b"]);
    for length in 0..=whole.len() {
        for byte in [0, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            if let Some(at) = bytes.get_mut(length) {
                *at = byte;
            }
            bytes.truncate(length.max(8));
            let (ours, theirs) = UnixStream::pair().unwrap();
            let mut peer = Bus::new(theirs);
            peer.send(&bytes).unwrap();
            drop(peer);
            let mut bus = Bus::new(ours);
            if let Ok((_, mut body)) = bus.message() {
                let _ = (body.string(), body.u64(), body.signature(), body.units());
            }
        }
    }
}
