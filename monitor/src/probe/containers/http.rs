//! One request to an engine over its unix socket. HTTP/1.0: the reply ends with the connection and has no chunks.

use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
};

/// The longest reply that is read, in bytes: a list of thousands of containers.
const LONGEST: u64 = 8 << 20;

/// Makes a request; gives the status and the body. The caller limits the time.
pub(super) fn call(socket: impl AsRef<Path>, method: &str, path: &str) -> Result<(u16, Vec<u8>), String> {
    let said = |error: std::io::Error| format!("cannot talk to the engine: {error}");
    let mut stream = UnixStream::connect(socket).map_err(said)?;
    let request = format!("{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(said)?;
    let mut reply = Vec::new();
    stream.take(LONGEST + 1).read_to_end(&mut reply).map_err(said)?;
    parse(&reply)
}

/// Splits a reply into status and body.
fn parse(reply: &[u8]) -> Result<(u16, Vec<u8>), String> {
    if reply.len() as u64 > LONGEST {
        return Err("the engine's reply is too long".to_owned());
    }
    let wrong = || "the engine's reply is no HTTP".to_owned();
    let end = reply.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(wrong)?;
    let head = std::str::from_utf8(reply.get(..end).unwrap_or_default()).map_err(|_| wrong())?;
    let mut lines = head.split("\r\n");
    let status = lines.next().filter(|line| line.starts_with("HTTP/1.")).ok_or_else(wrong)?;
    let status = status.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
    let body = reply.get(end + 4..).unwrap_or_default().to_vec();
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { return Err(wrong()) };
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err("the engine's reply has chunks that were not asked for".to_owned());
        }
        if name.eq_ignore_ascii_case("content-length") && value.trim().parse() != Ok(body.len()) {
            return Err("the engine's reply is not complete".to_owned());
        }
    }
    Ok((status, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies() {
        let of = |text: &str| parse(text.as_bytes());
        assert_eq!(of("HTTP/1.0 200 OK\r\nServer: x\r\n\r\n[]"), Ok((200, b"[]".to_vec())));
        assert_eq!(of("HTTP/1.1 204 No Content\r\n\r\n"), Ok((204, Vec::new())));
        assert_eq!(of("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n[]"), Ok((200, b"[]".to_vec())));
        for wrong in [
            "",
            "HTTP/1.0 200 OK\r\n",
            "220 ftp\r\n\r\n",
            "HTTP/1.0 ok\r\n\r\n",
            "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n[]",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        assert!(parse(&vec![b'x'; 9 << 20]).is_err());
    }
}
