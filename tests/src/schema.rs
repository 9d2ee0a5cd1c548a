//! Holds what orphand prints against its schema, `docs/schema.json`. The schema is open; here it is closed: a field that
//! it does not have is an error. Only what the schema uses of JSON Schema is known, and anything else is an error, too.

use std::{ffi::OsStr, sync::OnceLock};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// The verbs with a schema.
const VERBS: [&str; 9] =
    ["ps", "status", "history", "explain", "reap", "release", "reload", "doctor", "mode"];

static SCHEMA: OnceLock<Value> = OnceLock::new();

/// Checks a value: that of an `event`, or what a verb prints with `--json`, by the name in `$defs`.
pub fn check(name: &str, value: &Value) -> Result<()> {
    let read = || serde_json::from_str(include_str!("../../docs/schema.json")).unwrap_or_default();
    let schema = SCHEMA.get_or_init(read).pointer(&format!("/$defs/{name}"));
    let schema = schema.with_context(|| format!("the schema has no {name}"))?;
    holds(schema, value).with_context(|| format!("not as the schema says of {name}: {value}"))
}

/// Checks what orphand printed for these arguments, if they are those of a verb with `--json`. What is no JSON is left to
/// the caller.
pub fn check_printed<'a>(args: impl Iterator<Item = &'a OsStr>, printed: &[u8]) -> Result<()> {
    let args: Vec<_> = args.filter_map(OsStr::to_str).collect();
    let verb = args.iter().find_map(|arg| match *arg {
        "history" if args.contains(&"--leaks") => Some("leaks"),
        "pause" | "resume" => Some("mode"),
        _ => VERBS.into_iter().find(|verb| verb == arg),
    });
    match (verb, serde_json::from_slice(printed)) {
        (Some(verb), Ok(value)) if args.contains(&"--json") => check(verb, &value),
        _ => Ok(()),
    }
}

fn holds(schema: &Value, value: &Value) -> Result<()> {
    for (word, rule) in schema.as_object().context("a schema is an object")? {
        let list = || rule.as_array().into_iter().flatten();
        match word.as_str() {
            "description" | "required" => {}
            "$ref" => {
                let name =
                    rule.as_str().and_then(|path| path.strip_prefix("#/$defs/")).context("a reference")?;
                // The root was read, or nothing would refer to anything.
                let all = SCHEMA.get().and_then(|all| all.get("$defs"));
                holds(all.and_then(|all| all.get(name)).context("what it refers to")?, value)
                    .context(name.to_owned())?;
            }
            "const" => ensure!(rule == value, "it is {value}, not {rule}"),
            "enum" => ensure!(list().any(|one| one == value), "{value} is none of {rule}"),
            "type" => {
                ensure!(rule == value_type(value) || is_type(rule, value), "{value} is not of type {rule}");
            }
            "minimum" => ensure!(value.as_f64() >= rule.as_f64(), "{value} is less than {rule}"),
            "format" => ensure!(value.as_str().is_some_and(is_time), "{value} is no time of RFC 3339"),
            "anyOf" | "oneOf" => one_of(list(), value)?,
            "items" => {
                for one in value.as_array().into_iter().flatten() {
                    holds(rule, one)?;
                }
            }
            "additionalProperties" => {
                for (name, one) in value.as_object().into_iter().flatten() {
                    holds(rule, one).with_context(|| name.clone())?;
                }
            }
            "properties" => fields(schema, value)?,
            _ => bail!("`{word}` is not known here"),
        }
    }
    Ok(())
}

/// One of several holds. What is said of the one with the right name, or else of the last, is the error.
fn one_of<'a>(all: impl Iterator<Item = &'a Value>, value: &Value) -> Result<()> {
    let mut last = None;
    for one in all {
        let name = one["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/event_"));
        match holds(one, value) {
            Ok(()) => return Ok(()),
            Err(error) if name.is_some_and(|name| value["event"] == name) => return Err(error),
            Err(error) => last = Some(error),
        }
    }
    Err(last.context("nothing is allowed")?)
}

fn fields(schema: &Value, value: &Value) -> Result<()> {
    let known = schema["properties"].as_object().context("properties")?;
    for (name, one) in value.as_object().into_iter().flatten() {
        let field = known.get(name).with_context(|| format!("the schema has no field {name}"))?;
        holds(field, one).with_context(|| name.clone())?;
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        ensure!(value.get(name.as_str().unwrap_or_default()).is_some(), "the field {name} is missing");
    }
    Ok(())
}

fn value_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_type(rule: &Value, value: &Value) -> bool {
    let is = |one: &Value| one == value_type(value) || (one == "number" && value.is_number());
    is(rule) || rule.as_array().is_some_and(|all| all.iter().any(is))
}

/// `2026-11-21T03:18:39.460647Z`, the second's fraction being optional.
fn is_time(text: &str) -> bool {
    let form = |at: usize, c: char| match at {
        4 | 7 => c == '-',
        10 => c == 'T',
        13 | 16 => c == ':',
        19 => c == '.' || c == 'Z',
        _ => c.is_ascii_digit() || (c == 'Z' && at + 1 == text.len()),
    };
    text.len() >= 20 && text.ends_with('Z') && text.chars().enumerate().all(|(at, c)| form(at, c))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_in_the_schema_is_found() {
        let lost = || {
            let records = json!({ "fork": 1, "exec": 0, "exit": 0, "setsid": 0, "member": 0 });
            json!({ "event": "lost", "seq": 1, "time": "2026-11-21T03:18:39.460647Z", "boot_ns": 5, "records": records })
        };
        check("event", &lost()).unwrap();
        let changes: [fn(&mut Value); 6] = [
            |event| event["more"] = json!(1),
            |event| event["time"] = json!("yesterday"),
            |event| event["boot_ns"] = json!(-5),
            |event| event["records"]["fork"] = json!("1"),
            |event| event["event"] = json!("found"),
            |event| drop(event.as_object_mut().unwrap().remove("records")),
        ];
        for change in changes {
            let mut event = lost();
            change(&mut event);
            assert!(check("event", &event).is_err(), "{event}");
        }
        assert!(check("no such verb", &json!({})).is_err());
    }
}
