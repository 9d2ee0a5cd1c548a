//! Messages of D-Bus, as far as questions to a service manager need them: calls with strings, replies with one value. Pure.
//!
//! <https://dbus.freedesktop.org/doc/dbus-specification.html#message-protocol>. Any bytes give a reply or nothing. A well-kept
//! library does much more; it refuses the well-known name by which a manager calls itself at its own socket.

/// What a call is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    /// The well-known name of who is called, behind a bus.
    pub destination: Option<&'a str>,
    pub path: &'a str,
    pub interface: &'a str,
    pub member: &'a str,
    /// The arguments, all strings.
    pub arguments: &'a [&'a str],
}

/// A value of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A string, or the path of an object.
    Text(String),
    /// A number without a sign; a boolean is 0 or 1.
    Number(u64),
    /// Of a type that nobody asks for, or none.
    Other,
}

/// What comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// The answer to the call with this serial number; its first value.
    Value(u32, Value),
    /// The refusal of that call: the name of the error, and what is said about it.
    Error(u32, String),
    /// Something else, such as a signal.
    Other,
}

const CALL: u8 = 1;
const RETURN: u8 = 2;
const ERROR: u8 = 3;
/// The part of a message that tells how long it is.
pub(super) const PREFIX: usize = 16;
/// The order of bytes, as a message names it: that of this machine.
const ORDER: u8 = if cfg!(target_endian = "big") { b'B' } else { b'l' };

const PATH: u8 = 1;
const INTERFACE: u8 = 2;
const MEMBER: u8 = 3;
const ERROR_NAME: u8 = 4;
const REPLY_SERIAL: u8 = 5;
const DESTINATION: u8 = 6;
const SIGNATURE: u8 = 8;

/// The bytes of a call.
pub(super) fn call(serial: u32, call: &Call<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    for argument in call.arguments {
        string(&mut body, argument);
    }
    let mut fields = Vec::new();
    let named = [(PATH, "o", call.path), (INTERFACE, "s", call.interface), (MEMBER, "s", call.member)];
    let destination = call.destination.map(|name| (DESTINATION, "s", name));
    for (code, kind, text) in named.into_iter().chain(destination) {
        field(&mut fields, code, kind);
        string(&mut fields, text);
    }
    if !call.arguments.is_empty() {
        field(&mut fields, SIGNATURE, "g");
        signature(&mut fields, &"s".repeat(call.arguments.len()));
    }
    let mut message = vec![ORDER, CALL, 0, 1];
    for number in [length(&body), serial, length(&fields)] {
        message.extend(number.to_ne_bytes());
    }
    // The fields begin at a multiple of eight, as their padding assumes.
    message.extend(fields);
    pad(&mut message, 8);
    message.extend(body);
    message
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

fn pad(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}

fn field(bytes: &mut Vec<u8>, code: u8, kind: &str) {
    pad(bytes, 8);
    bytes.push(code);
    signature(bytes, kind);
}

fn string(bytes: &mut Vec<u8>, text: &str) {
    pad(bytes, 4);
    bytes.extend(length(text.as_bytes()).to_ne_bytes());
    bytes.extend(text.as_bytes());
    bytes.push(0);
}

/// At most 255 characters; here it is a handful.
fn signature(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
    bytes.extend(text.as_bytes());
    bytes.push(0);
}

/// The length of the whole message that begins so.
pub(super) fn total(prefix: &[u8]) -> Option<usize> {
    let mut reader = Reader { bytes: prefix, at: 4 };
    let body = usize::try_from(reader.number()?).ok()?;
    reader.at = 12;
    let fields = usize::try_from(reader.number()?).ok()?;
    let head = PREFIX.checked_add(fields)?.checked_next_multiple_of(8)?;
    (prefix.first() == Some(&ORDER)).then(|| head.checked_add(body)).flatten()
}

/// What a whole message says; nothing if it is none.
pub(super) fn reply(message: &[u8]) -> Option<Reply> {
    let kind = *message.get(1)?;
    let mut reader = Reader { bytes: message, at: 12 };
    let end = PREFIX.checked_add(usize::try_from(reader.number()?).ok()?)?;
    let (mut serial, mut error, mut types) = (None, String::new(), String::new());
    while reader.at < end {
        reader.align(8);
        let code = reader.byte()?;
        let shape = reader.signature()?;
        match (code, reader.value(&shape)?) {
            (REPLY_SERIAL, Value::Number(number)) => serial = u32::try_from(number).ok(),
            (ERROR_NAME, Value::Text(name)) => error = name,
            (SIGNATURE, Value::Text(text)) => types = text,
            _ => {}
        }
    }
    reader.at = end.checked_next_multiple_of(8)?;
    match (kind, serial) {
        (RETURN, Some(serial)) => {
            let value = if types.is_empty() { Value::Other } else { reader.value(&types)? };
            Some(Reply::Value(serial, value))
        }
        (ERROR, Some(serial)) => {
            if types.starts_with('s')
                && let Value::Text(said) = reader.value(&types)?
            {
                error = format!("{error}: {said}");
            }
            Some(Reply::Error(serial, error))
        }
        _ => Some(Reply::Other),
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<u32> {
        self.align(4);
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }

    /// Text of this length and the zero behind it.
    fn text(&mut self, length: usize) -> Option<String> {
        let text = std::str::from_utf8(self.take(length)?).ok()?.to_owned();
        (self.byte()? == 0).then_some(text)
    }

    fn signature(&mut self) -> Option<String> {
        let length = self.byte()?;
        self.text(length.into())
    }

    /// The first value of these types.
    fn value(&mut self, types: &str) -> Option<Value> {
        Some(match types.as_bytes().first()? {
            b's' | b'o' => {
                let length = usize::try_from(self.number()?).ok()?;
                Value::Text(self.text(length)?)
            }
            b'g' => Value::Text(self.signature()?),
            b'u' | b'b' => Value::Number(self.number()?.into()),
            b't' => {
                self.align(8);
                Value::Number(u64::from_ne_bytes(self.take(8)?.try_into().ok()?))
            }
            b'v' => {
                let inner = self.signature()?;
                // A value in a value in a value is nothing that is asked for.
                if inner.starts_with('v') { Value::Other } else { self.value(&inner)? }
            }
            _ => Value::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zbus::message::Message;

    use super::*;

    const GET: Call<'_> = Call {
        destination: Some("org.freedesktop.systemd1"),
        path: "/org/freedesktop/systemd1/unit/bot_2eservice",
        interface: "org.freedesktop.DBus.Properties",
        member: "Get",
        arguments: &["org.freedesktop.systemd1.Service", "KillMode"],
    };

    fn bytes(message: &Message) -> Vec<u8> {
        message.data().bytes().to_vec()
    }

    /// As long as what another library writes; that it is read, the tests of the conversation show.
    #[test]
    fn a_call_is_what_it_says() {
        for one in [GET, Call { destination: None, arguments: &[], member: "Hello", ..GET }] {
            let written = call(7, &one);
            assert_eq!(total(&written), Some(written.len()));
            let built = Message::method_call(one.path, one.member).unwrap().interface(one.interface).unwrap();
            let built = one.destination.iter().fold(built, |built, name| built.destination(*name).unwrap());
            let built = match one.arguments {
                [first, second] => built.build(&(first, second)),
                _ => built.build(&()),
            };
            let built = bytes(&built.unwrap());
            assert_eq!(built.len(), written.len());
            assert_eq!(total(&built), Some(built.len()));
        }
    }

    /// What another library writes we read.
    #[test]
    fn replies_are_read() {
        let asked = Message::method_call("/", "Get").unwrap().build(&()).unwrap();
        let serial = asked.primary_header().serial_num().get();
        let header = asked.header();
        let answer = |value: zbus::zvariant::Value<'_>| {
            let built = Message::method_return(&header).unwrap().build(&value).unwrap();
            reply(&bytes(&built))
        };
        for (given, found) in [
            ("process".into(), Value::Text("process".to_owned())),
            (7_u32.into(), Value::Number(7)),
            (u64::MAX.into(), Value::Number(u64::MAX)),
            (true.into(), Value::Number(1)),
            (zbus::zvariant::Value::new(7_i16), Value::Other),
        ] {
            assert_eq!(answer(given), Some(Reply::Value(serial, found)));
        }
        let path = zbus::zvariant::ObjectPath::try_from("/unit").unwrap();
        let built = Message::method_return(&header).unwrap().build(&path).unwrap();
        assert_eq!(reply(&bytes(&built)), Some(Reply::Value(serial, Value::Text("/unit".to_owned()))));
        let built = Message::error(&header, "org.x.No").unwrap().build(&("not for you",)).unwrap();
        assert_eq!(reply(&bytes(&built)), Some(Reply::Error(serial, "org.x.No: not for you".to_owned())));
        let built = Message::signal("/", "org.x.Y", "Z").unwrap().build(&("s",)).unwrap();
        assert_eq!(reply(&bytes(&built)), Some(Reply::Other));
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_reply_or_nothing(mut bytes in prop::collection::vec(any::<u8>(), 0..96), at in 0_usize..96) {
            let _ = (total(&bytes), reply(&bytes));
            let whole = call(1, &GET);
            bytes.extend(whole.get(at..).unwrap_or_default());
            let _ = (total(&bytes), reply(&bytes));
        }
    }
}
