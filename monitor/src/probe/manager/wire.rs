//! Messages of D-Bus (specification 0.43, "Marshaling" and "Message Protocol"), as far as questions about a unit need them: calls
//! with strings, answers whose first value is a plain one. Pure.
//!
//! Invariant: whatever bytes come, they become an answer or an error, and no more is read of them than [`LONGEST`].

use std::io;

/// The bytes of a message with which every message begins.
pub(super) const PREFIX: usize = 16;

/// No answer to our questions is nearly as long.
const LONGEST: usize = 64 * 1024;

const LITTLE: u8 = b'l';
const BIG: u8 = b'B';
const VERSION: u8 = 1;

/// Types of messages.
const METHOD_CALL: u8 = 1;
const METHOD_RETURN: u8 = 2;
const ERROR: u8 = 3;

/// Fields of a header.
const PATH: u8 = 1;
const INTERFACE: u8 = 2;
const MEMBER: u8 = 3;
const ERROR_NAME: u8 = 4;
const REPLY_SERIAL: u8 = 5;
const DESTINATION: u8 = 6;
const SIGNATURE: u8 = 8;

/// A call of a method.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    /// The name on the bus, where there is a bus.
    pub destination: Option<&'a str>,
    pub path: &'a str,
    pub interface: &'a str,
    pub member: &'a str,
    pub arguments: &'a [&'a str],
}

impl Call<'_> {
    /// The message. `serial` is its number on this connection, and not 0.
    pub(super) fn message(&self, serial: u32) -> Vec<u8> {
        let mut body = Vec::new();
        for argument in self.arguments {
            string(&mut body, argument);
        }
        let mut fields = Vec::new();
        for (code, kind, value) in [
            (PATH, b'o', Some(self.path)),
            (INTERFACE, b's', Some(self.interface)),
            (MEMBER, b's', Some(self.member)),
            (DESTINATION, b's', self.destination),
        ] {
            let Some(value) = value else { continue };
            pad(&mut fields, 8);
            fields.extend([code, 1, kind, 0]);
            string(&mut fields, value);
        }
        if !self.arguments.is_empty() {
            pad(&mut fields, 8);
            fields.extend([SIGNATURE, 1, b'g', 0]);
            fields.push(u8::try_from(self.arguments.len()).unwrap_or(u8::MAX));
            fields.extend(self.arguments.iter().map(|_| b's'));
            fields.push(0);
        }
        let mut message = vec![LITTLE, METHOD_CALL, 0, VERSION];
        for number in [length(&body), serial, length(&fields)] {
            message.extend(number.to_le_bytes());
        }
        message.extend(fields);
        pad(&mut message, 8);
        message.extend(body);
        message
    }
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

fn pad(message: &mut Vec<u8>, alignment: usize) {
    message.resize(message.len().next_multiple_of(alignment), 0);
}

fn string(message: &mut Vec<u8>, text: &str) {
    pad(message, 4);
    message.extend(length(text.as_bytes()).to_le_bytes());
    message.extend(text.as_bytes());
    message.push(0);
}

/// A value of a type that units have properties of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A string or an object's path.
    Text(String),
    /// An unsigned number of 32 or 64 bits.
    Number(u64),
    /// A boolean.
    Flag(bool),
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The first value; none if there is none, or one of another type.
    Value(Option<Value>),
    /// It did not work: the error's name, and its text if there is one.
    Error(String),
}

/// The beginning of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    kind: u8,
    big: bool,
    fields: usize,
    body: usize,
}

impl Head {
    /// Of the first bytes of a message.
    pub(super) fn parse(prefix: &[u8; PREFIX]) -> io::Result<Self> {
        let [order, kind, _, version, rest @ ..] = *prefix;
        if ![LITTLE, BIG].contains(&order) || version != VERSION {
            return Err(odd());
        }
        let mut rest = Reader { bytes: &rest, at: 0, big: order == BIG };
        let (body, _serial, fields) = (rest.number()?, rest.number()?, rest.number()?);
        let head = Self { kind, big: order == BIG, fields: fields as usize, body: body as usize };
        if head.fields.saturating_add(head.body) > LONGEST { Err(odd()) } else { Ok(head) }
    }

    /// How many bytes follow.
    pub(super) fn rest(&self) -> usize {
        self.fields.next_multiple_of(8) + self.body
    }

    /// What follows, if it is an answer: to which call, and what it says.
    pub(super) fn answer(&self, rest: &[u8]) -> io::Result<Option<(u32, Said)>> {
        let (fields, body) = rest.split_at_checked(self.fields.next_multiple_of(8)).ok_or_else(odd)?;
        let fields = fields.get(..self.fields).ok_or_else(odd)?;
        let mut fields = Reader { bytes: fields, at: 0, big: self.big };
        let (mut to, mut error, mut types) = (None, None, Vec::new());
        while fields.at < self.fields {
            fields.align(8);
            let code = fields.byte()?;
            let kind = fields.signature()?.to_vec();
            match (code, fields.value(&kind)?) {
                (REPLY_SERIAL, Some(Value::Number(serial))) => to = u32::try_from(serial).ok(),
                (ERROR_NAME, Some(Value::Text(name))) => error = Some(name),
                (SIGNATURE, Some(Value::Text(text))) => types = text.into_bytes(),
                _ => {}
            }
        }
        let Some(to) = to else { return Ok(None) };
        let mut body = Reader { bytes: body, at: 0, big: self.big };
        let first = types.get(..1).map_or(Ok(None), |first| body.value(first))?;
        match (self.kind, error) {
            (METHOD_RETURN, _) => Ok(Some((to, Said::Value(first)))),
            (ERROR, name) => {
                let name = name.unwrap_or_else(|| "an error without a name".to_owned());
                let text = match first {
                    Some(Value::Text(text)) => format!("{name}: {text}"),
                    _ => name,
                };
                Ok(Some((to, Said::Error(text))))
            }
            _ => Ok(None),
        }
    }
}

fn odd() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "what it sends is not D-Bus, or far too long")
}

/// Reads values one after the other. The first byte is aligned to eight.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    big: bool,
}

impl<'a> Reader<'a> {
    fn align(&mut self, alignment: usize) {
        self.at = self.at.next_multiple_of(alignment);
    }

    fn take(&mut self, length: usize) -> io::Result<&'a [u8]> {
        let end = self.at.checked_add(length).ok_or_else(odd)?;
        let taken = self.bytes.get(self.at..end).ok_or_else(odd)?;
        self.at = end;
        Ok(taken)
    }

    fn byte(&mut self) -> io::Result<u8> {
        self.take(1)?.first().copied().ok_or_else(odd)
    }

    fn number(&mut self) -> io::Result<u32> {
        self.align(4);
        let bytes = self.take(4)?.try_into().map_err(|_| odd())?;
        Ok(if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn long(&mut self) -> io::Result<u64> {
        self.align(8);
        let bytes = self.take(8)?.try_into().map_err(|_| odd())?;
        Ok(if self.big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// So many bytes, and the zero behind them.
    fn ended(&mut self, length: usize) -> io::Result<&'a [u8]> {
        let text = self.take(length)?;
        if self.byte()? == 0 { Ok(text) } else { Err(odd()) }
    }

    fn signature(&mut self) -> io::Result<&'a [u8]> {
        let length = self.byte()?;
        self.ended(length.into())
    }

    /// A value of this type; none if it is a type that no answer to us has: what follows then cannot be read.
    fn value(&mut self, kind: &[u8]) -> io::Result<Option<Value>> {
        let kind = if kind == b"v" { self.signature()? } else { kind };
        Ok(Some(match kind {
            b"s" | b"o" => {
                let length = self.number()? as usize;
                Value::Text(String::from_utf8_lossy(self.ended(length)?).into_owned())
            }
            b"g" => Value::Text(String::from_utf8_lossy(self.signature()?).into_owned()),
            b"u" => Value::Number(self.number()?.into()),
            b"t" => Value::Number(self.long()?),
            b"b" => Value::Flag(self.number()? != 0),
            _ => {
                self.at = self.bytes.len();
                return Ok(None);
            }
        }))
    }
}

#[cfg(test)]
pub(super) mod tests;
