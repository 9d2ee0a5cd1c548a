use super::*;

/// By the specification. zbus takes it.
const CALL: [&[u8]; 7] = [
    // Order, type, flags, version; length of the body, serial, length of the fields.
    b"l\x01\0\x01\x0e\0\0\0\x07\0\0\0\x48\0\0\0",
    b"\x01\x01o\0\x02\0\0\0/a\0\0\0\0\0\0",
    b"\x02\x01s\0\x07\0\0\0org.a.B\0",
    b"\x03\x01s\0\x02\0\0\0Go\0\0\0\0\0\0",
    b"\x06\x01s\0\x05\0\0\0org.a\0\0\0",
    b"\x08\x01g\0\x02ss\0",
    b"\x02\0\0\0ab\0\0\x01\0\0\0c\0",
];

fn answer(message: &[u8]) -> io::Result<Option<(u32, Said)>> {
    let (prefix, rest) = message.split_first_chunk().unwrap();
    let head = Head::parse(prefix)?;
    assert_eq!(head.rest(), rest.len());
    head.answer(rest)
}

/// An answer to call 7.
fn message(kind: u8, fields: &[u8], body: &[u8]) -> Vec<u8> {
    message_to(7, kind, fields, body)
}

/// An answer to a call, with these fields behind the number of the call.
pub(in super::super) fn message_to(serial: u32, kind: u8, fields: &[u8], body: &[u8]) -> Vec<u8> {
    let mut all = b"\x05\x01u\0".to_vec();
    all.extend(serial.to_le_bytes());
    all.extend(fields);
    let mut message = vec![b'l', kind, 0, 1];
    for number in [body.len(), 1, all.len()] {
        message.extend(u32::try_from(number).unwrap().to_le_bytes());
    }
    message.extend(all);
    message.resize(message.len().next_multiple_of(8), 0);
    message.extend(body);
    message
}

#[test]
fn a_call_is_written_as_others_write_it() {
    let (destination, arguments) = (Some("org.a"), &["ab", "c"][..]);
    let call = Call { destination, path: "/a", interface: "org.a.B", member: "Go", arguments };
    assert_eq!(call.message(7), CALL.concat());
    // A call is no answer.
    assert_eq!(answer(&CALL.concat()).unwrap(), None);
}

#[test]
fn values_of_every_type_that_is_asked_for() {
    let said = |signature: &[u8], body: &[u8]| {
        let fields = [&b"\x08\x01g\0"[..], signature].concat();
        answer(&message(METHOD_RETURN, &fields, body)).unwrap().unwrap()
    };
    let text = |text: &str| (7, Said::Value(Some(Value::Text(text.to_owned()))));
    assert_eq!(said(b"\x01o\0", b"\x02\0\0\0/a\0"), text("/a"));
    assert_eq!(said(b"\x01v\0", b"\x01s\0\0\x02\0\0\0no\0"), text("no"));
    let number = |number| (7, Said::Value(Some(Value::Number(number))));
    assert_eq!(said(b"\x01v\0", b"\x01u\0\0\x01\x02\0\0"), number(0x201));
    assert_eq!(said(b"\x01v\0", b"\x01t\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff"), number(u64::MAX));
    assert_eq!(said(b"\x01v\0", b"\x01b\0\0\x01\0\0\0"), (7, Said::Value(Some(Value::Flag(true)))));
    // A structure, and nothing.
    assert_eq!(said(b"\x01v\0", b"\x04(st)\0\0"), (7, Said::Value(None)));
    assert_eq!(answer(&message(METHOD_RETURN, b"", b"")).unwrap(), Some((7, Said::Value(None))));
}

#[test]
fn an_error_says_its_name_and_its_text() {
    let name = b"\x04\x01s\0\x03\0\0\0a.B\0";
    let error = |fields: &[u8], body: &[u8]| answer(&message(ERROR, fields, body)).unwrap();
    assert_eq!(error(name, b""), Some((7, Said::Error("a.B".to_owned()))));
    let with_text = [&name[..], b"\0\0\0\0\x08\x01g\0\x01s\0"].concat();
    assert_eq!(error(&with_text, b"\x02\0\0\0no\0"), Some((7, Said::Error("a.B: no".to_owned()))));
    assert_eq!(error(b"", b""), Some((7, Said::Error("an error without a name".to_owned()))));
}

#[test]
fn the_other_order_of_bytes_is_read() {
    let message =
        b"B\x02\0\x01\0\0\0\x04\0\0\0\x01\0\0\0\x0f\x05\x01u\0\0\0\0\x07\x08\x01g\0\x01u\0\0\0\0\x01\x02";
    assert_eq!(answer(message).unwrap(), Some((7, Said::Value(Some(Value::Number(0x102))))));
}

/// Whatever is cut off or changed, there is an end: an answer or an error.
#[test]
fn what_is_not_dbus_is_an_error() {
    let whole = message(METHOD_RETURN, b"\x08\x01g\0\x01v\0", b"\x01s\0\0\x02\0\0\0no\0");
    let (prefix, rest) = whole.split_first_chunk().unwrap();
    let head = Head::parse(prefix).unwrap();
    for end in 0..rest.len() {
        assert!(head.answer(&rest[..end]).is_err(), "{end}");
    }
    for at in 0..whole.len() {
        for byte in [0, 1, 0x7f, 0xff] {
            let mut other = whole.clone();
            other[at] = byte;
            let (prefix, rest) = other.split_first_chunk().unwrap();
            if let Ok(head) = Head::parse(prefix) {
                assert!(head.rest() <= LONGEST + 8);
                let _ = head.answer(rest);
            }
        }
    }
    let mut long = *prefix;
    long[6] = 2;
    assert!(Head::parse(&long).is_err());
}
