//! Tells what the first message on a standard input is.
//!
//! A program that is taken for an MCP server may later be ended, so only what no other protocol says counts as a
//! message of MCP. The Agent Client Protocol and the language server protocol also begin with `initialize` in
//! JSON-RPC: the first numbers its versions, and the second sends a header before each message. MCP sends one
//! message a line, and names its versions by their date.
//!
//! Pure and total over any bytes. The time is linear in their number, and the parser limits their nesting.

use jiff::civil::Date;
use serde::{Deserialize as _, de::IgnoredAny};
use serde_json::{Deserializer, Map, Value};

use crate::model::{FirstMessage, text::is_hostile};

/// The rule of a server that is recognised by its first message, or by settings that declare it.
pub const PROTOCOL: &str = "protocol";

/// What .NET and others may write before the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Begins the names that the protocol reserves in `_meta`.
const OWN_NAMES: &str = "io.modelcontextprotocol/";
/// Requests that only MCP knows and that need no parameters. One of them comes first if the server has read the
/// messages before it.
const REQUESTS: &[&str] =
    &["server/discover", "tools/list", "resources/list", "resources/templates/list", "prompts/list"];
/// Names in the messages of JSON-RPC, and of other protocols over pipes (DAP, tsserver).
const MESSAGE: &[&str] = &["command", "id", "jsonrpc", "method", "seq", "type"];
/// The most characters of a client's name.
const NAME_MAX: usize = 64;

/// What the first message in `bytes` is, which are the first that wait on a standard input. `all`: no more bytes
/// wait there. A message of which only the beginning is there is [`FirstMessage::Nothing`].
pub fn first_message(bytes: &[u8], all: bool) -> FirstMessage {
    let more = if all { FirstMessage::Nothing } else { FirstMessage::Other };
    if bytes.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(bytes) {
        return more;
    }
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let bytes = bytes.trim_ascii_start();
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    match bytes.first() {
        None => more,
        Some(b'{' | b'[') if line.len() < bytes.len() => whole_line(line),
        Some(b'{' | b'[') if is_beginning(line) => match whole_line(line) {
            // Whole without the end of its line: nothing need follow.
            FirstMessage::Hook if all => FirstMessage::Hook,
            _ => more,
        },
        Some(_) => FirstMessage::Other,
    }
}

/// Whether bytes that follow can make one JSON value of this.
fn is_beginning(line: &[u8]) -> bool {
    let is_open = |line: &[u8]| {
        let mut parser = Deserializer::from_slice(line);
        match IgnoredAny::deserialize(&mut parser) {
            Ok(_) => parser.end().is_ok(),
            Err(error) => error.is_eof(),
        }
    };
    // The parser calls a number that ends in the middle invalid.
    let cut = || {
        let end =
            line.iter().rposition(|byte| !matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
        line.get(..=end?).filter(|kept| kept.len() < line.len())
    };
    is_open(line) || cut().is_some_and(is_open)
}

fn whole_line(line: &[u8]) -> FirstMessage {
    match serde_json::from_slice(line) {
        Ok(Value::Object(message)) => told(&message),
        // A batch, which one revision of the protocol had.
        Ok(Value::Array(batch)) => {
            let mut all = batch.iter().map(|message| message.as_object().map_or(FirstMessage::Other, told));
            all.find(|message| *message != FirstMessage::Other).unwrap_or(FirstMessage::Other)
        }
        _ => FirstMessage::Other,
    }
}

fn told(message: &Map<String, Value>) -> FirstMessage {
    let empty = Map::new();
    let params = match message.get("params") {
        None => &empty,
        Some(Value::Object(params)) => params,
        Some(_) => return FirstMessage::Other,
    };
    let text = |name: &str| message.get(name).and_then(Value::as_str);
    match (text("jsonrpc"), text("method")) {
        (Some("2.0"), Some(method)) if is_mcp(message, method, params) => {
            FirstMessage::Mcp { client: client(params) }
        }
        // What agents write to their hooks is an object of names of their own, and no message of any protocol.
        (None, None) if !message.is_empty() && !MESSAGE.iter().any(|name| message.contains_key(*name)) => {
            FirstMessage::Hook
        }
        _ => FirstMessage::Other,
    }
}

fn is_mcp(message: &Map<String, Value>, method: &str, params: &Map<String, Value>) -> bool {
    if meta(params).is_some_and(|meta| meta.keys().any(|name| name.starts_with(OWN_NAMES))) {
        return true;
    }
    let is_request = matches!(message.get("id"), Some(Value::String(_) | Value::Number(_)));
    let is = |name: &str| params.get(name).is_some_and(Value::is_object);
    let text = |name: &str| params.get(name).and_then(Value::as_str);
    match method {
        "notifications/initialized" => !message.contains_key("id"),
        "initialize" => {
            is_request
                && text("protocolVersion").is_some_and(is_version)
                && (is("capabilities") || is("clientInfo"))
        }
        "tools/call" => is_request && text("name").is_some(),
        method => is_request && REQUESTS.contains(&method),
    }
}

/// Whether it names a revision of the protocol: `2025-06-18`, or `DRAFT-2026-v1`.
fn is_version(version: &str) -> bool {
    let is_year = |year: i16| (2024..=2099).contains(&year);
    match version.strip_prefix("DRAFT-").map(|draft| draft.split_once("-v")) {
        Some(draft) => draft
            .is_some_and(|(year, number)| year.parse().is_ok_and(is_year) && number.parse::<u8>().is_ok()),
        None => version.len() == 10 && version.parse::<Date>().is_ok_and(|date| is_year(date.year())),
    }
}

fn meta(params: &Map<String, Value>) -> Option<&Map<String, Value>> {
    params.get("_meta")?.as_object()
}

/// The name that the client gives itself: with `initialize` in the parameters, in later revisions in `_meta` of each
/// request.
fn client(params: &Map<String, Value>) -> Option<String> {
    let info =
        params.get("clientInfo").or_else(|| meta(params)?.get("io.modelcontextprotocol/clientInfo"))?;
    harmless(info.get("name")?.as_str()?)
}

/// A name that somebody else chose, bounded and without characters that a terminal may act on; `None` if nothing is
/// left of it.
pub fn harmless(name: &str) -> Option<String> {
    let name: String = name.chars().filter(|c| !is_hostile(*c)).take(NAME_MAX).collect();
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests;
