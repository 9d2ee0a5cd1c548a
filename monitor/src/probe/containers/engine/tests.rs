use std::{os::unix::net::UnixListener, thread};

use serde_json::json;

use super::*;

fn read(change: &dyn Fn(&mut Value)) -> Option<Found> {
    let mut told = json!({
        "Id": "0a".repeat(32), "Name": "/box", "ExecIDs": null, "Created": "1970-01-01T00:00:01.25Z",
        "State": { "Running": true, "Paused": false, "Pid": 4711 },
        "Config": { "Image": "mcp/fetch", "OpenStdin": true, "StdinOnce": true, "Tty": false },
        "NetworkSettings": { "Ports": { "80/tcp": null } },
    });
    change(&mut told);
    Found::read(&told)
}

/// What is told with another value at this place.
fn with(pointer: &str, value: impl Into<Value>) -> Option<Found> {
    let value = value.into();
    read(&|told| {
        let (above, name) = pointer.rsplit_once('/').unwrap();
        told.pointer_mut(above).unwrap()[name] = value.clone();
    })
}

#[test]
fn what_is_told_of_a_container() {
    let plain = read(&|_| {}).unwrap();
    assert_eq!((plain.name.as_str(), plain.image.as_str(), plain.pid), ("box", "mcp/fetch", 4711));
    assert_eq!((plain.shared, plain.server.clone(), plain.created), (false, None, Some(1_250_000_000)));
    assert!(plain.is_fed(false) && plain.is_still(&plain, false));
    for (pointer, value) in [
        ("/ExecIDs", json!(["x"])),
        ("/ExecIDs", json!("x")),
        ("/NetworkSettings/Ports", json!({ "80/tcp": [{ "HostIp": "0.0.0.0", "HostPort": "8080" }] })),
        ("/NetworkSettings/Ports", json!(7)),
    ] {
        let shared = with(pointer, value).unwrap();
        assert!(shared.shared && !shared.is_still(&plain, false), "{pointer}");
    }
    for (pointer, value) in
        [("/State/Running", json!(false)), ("/State/Running", json!("yes")), ("/Id", json!("../../x"))]
    {
        assert_eq!(with(pointer, value), None, "{pointer}");
    }
    for (pointer, value) in [
        ("/State/Paused", json!(true)),
        ("/State/Paused", json!("no")),
        ("/State/Restarting", json!(true)),
        ("/State/Pid", json!(1)),
        ("/Config/OpenStdin", json!(false)),
        ("/Config/Tty", json!(true)),
    ] {
        assert!(!with(pointer, value).unwrap().is_fed(true), "{pointer}");
    }
    let by_podman = with("/Config/StdinOnce", json!(false)).unwrap();
    assert!(by_podman.is_fed(true) && !by_podman.is_fed(false));
    for (name, server) in [
        (json!("fetch"), Some("fetch".to_owned())),
        (json!("x".repeat(1000)), Some("x".repeat(64))),
        (json!(7), None),
    ] {
        assert_eq!(with("/Config/Labels", json!({ "docker-mcp-name": name })).unwrap().server, server);
    }
    let made = |time| with("/Created", time).unwrap().created;
    assert_eq!(made(json!("1970-01-01T01:00:01.25+01:00")), Some(1_250_000_000));
    assert_eq!((made(json!("yesterday")), made(Value::Null)), (None, None));
    assert_eq!(Found::read(&json!({})), None);
}

#[test]
fn what_has_ended() {
    let id = "0a".repeat(32);
    for (state, ended) in [
        (json!({ "Running": false }), true),
        (json!({ "Running": true }), false),
        (json!({ "Running": false, "Restarting": true }), false),
        (json!({}), false),
    ] {
        assert_eq!(has_ended(&json!({ "Id": id, "State": state }), &id), ended, "{state}");
        assert!(!has_ended(&json!({ "Id": "0b".repeat(32), "State": state }), &id));
    }
}

#[test]
fn which_of_the_list_fit() {
    let listed: Vec<Listed> = parse((
        200,
        br#"[{"Id":"x","Names":["/box"],"Image":"docker.io/mcp/fetch:latest","Created":100,"Ports":[]}]"#
            .to_vec(),
    ))
    .unwrap();
    let [listed] = <[Listed; 1]>::try_from(listed).unwrap();
    assert!(listed.fits(None, Some("mcp/fetch"), 200));
    assert!(!listed.fits(None, Some("mcp/time"), 99) && !listed.fits(None, None, 99));
    // By name at any time after the client.
    assert!(listed.fits(Some("box"), Some("other"), 10));
    assert!(!listed.fits(Some("box"), None, 101) && !listed.fits(Some("bo"), None, 10));
    for (status, wrong) in [(500, "[]"), (200, "{}"), (200, "[")] {
        assert!(parse::<Vec<Listed>>((status, wrong.as_bytes().to_vec())).is_err());
    }
}

#[test]
fn replies() {
    let of = |text: &str| split(text.as_bytes());
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
    assert!(split(&vec![b'x'; 9 << 20]).is_err());
}

/// What the helper answers of an engine that gives this reply.
fn told(reply: Vec<u8>) -> Result<Value, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("docker.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let engine = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut piece = [0; 64];
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0, "{request:?}");
            request.extend_from_slice(&piece[..read]);
        }
        assert!(request.starts_with(b"GET /version HTTP/1.0\r\n"));
        stream.write_all(&reply).unwrap();
    });
    let said = answer(path.to_str().unwrap(), &Question::Version);
    engine.join().unwrap();
    said
}

#[test]
fn an_engine_tells_its_version_or_is_no_engine() {
    let version = |api: &str| serde_json::json!({ "ApiVersion": api, "Version": "26.1.5" });
    let tells = |api: &str| {
        format!(
            "HTTP/1.0 200 OK\r\nA: b\r\n\r\n{{\"Version\":\"26.1.5\",\"ApiVersion\":\"{api}\",\"Os\":\"linux\"}}"
        )
    };
    assert_eq!(told(tells("1.45").into_bytes()), Ok(version("1.45")));
    assert_eq!(told(tells(&"1".repeat(1 << 20)).into_bytes()), Ok(version(&"1".repeat(64))));
    for reply in [
        &b""[..],
        b"SSH-2.0\r\n\r\n{}",
        b"HTTP/1.0 403 Forbidden\r\n\r\n{\"Version\":\"1\",\"ApiVersion\":\"1\"}",
        b"HTTP/1.0 200 OK\r\n\r\n[]",
    ] {
        assert!(told(reply.to_vec()).is_err());
    }
}
