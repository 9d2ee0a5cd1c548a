//! The JSON Schema of the events and of every `--json`, from the types that are written and their doc comments.
//!
//! It is open: a later version may add fields. The tests take it as closed.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use super::{
    events,
    source::{Field, Sources, Type},
};

/// The whole schema: the root is an event, `$defs` has an entry for each verb.
pub fn all(sources: &Sources) -> Result<String> {
    let mut schema = Schema { sources, defs: BTreeMap::new() };
    let event = schema.events()?;
    schema.defs.insert("event".to_owned(), event);
    schema.verbs()?;
    let Schema { defs, .. } = schema;
    Ok(serde_json::to_string_pretty(&json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "orphand: an event; `$defs` has what each verb prints with --json",
        "$ref": "#/$defs/event",
        "$defs": defs,
    }))?)
}

struct Schema<'a> {
    sources: &'a Sources,
    defs: BTreeMap<String, Value>,
}

#[derive(Default)]
struct Object {
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl Object {
    fn add(&mut self, name: &str, value: Value, always: bool) {
        self.required.extend((always && !self.properties.contains_key(name)).then(|| name.to_owned()));
        // Two variants may have a field of this name.
        let value = match self.properties.remove(name) {
            Some(other) if other != value => json!({ "anyOf": [other, value] }),
            _ => value,
        };
        self.properties.insert(name.to_owned(), value);
    }

    fn done(self) -> Value {
        json!({ "type": "object", "properties": self.properties, "required": self.required })
    }
}

fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

impl Schema<'_> {
    fn events(&mut self) -> Result<Value> {
        let mut all = Vec::new();
        for item in self.sources.variants("Notice")? {
            let mut object = Object::default();
            object.add("event", json!({ "const": item.name }), true);
            object.add("seq", json!({ "type": "integer", "minimum": 1 }), true);
            object.add("time", time(), true);
            object.add("boot_ns", json!({ "type": "integer", "minimum": 0 }), true);
            let next = self.value("NextStep")?;
            object.add("next", next, false);
            self.fields(&item.fields, &mut object, true)?;
            let mut event = object.done();
            describe(&mut event, &item.about);
            all.push(json!({ "$ref": format!("#/$defs/event_{}", item.name) }));
            self.defs.insert(format!("event_{}", item.name), event);
        }
        Ok(json!({ "oneOf": all }))
    }

    fn verbs(&mut self) -> Result<()> {
        let totals = self.value("Totals")?;
        let source = json!({ "enum": ["daemon", "proc", "store"] });
        let mut add = |verb: &str, of: &str, more: &[(&str, Value)]| -> Result<()> {
            let mut object = Object::default();
            self.fields(&self.sources.fields(of)?, &mut object, true)?;
            for (name, value) in more {
                object.add(name, value.clone(), true);
            }
            self.defs.insert(verb.to_owned(), object.done());
            Ok(())
        };
        add("ps", "Report", &[("source", source.clone()), ("totals", totals.clone())])?;
        add("status", "Status", &[("totals", totals)])?;
        add("history", "History", &[("source", source)])?;
        for (verb, of) in [("mode", "Decided"), ("reload", "Reloaded"), ("doctor", "Checkup")] {
            add(verb, of, &[])?;
        }
        for (verb, fields) in [
            (
                "reap",
                &[("planned", "Vec<PlanItem>"), ("ended", "Vec<String>"), ("stayed", "Vec<PlanItem>")][..],
            ),
            ("release", &[("servers", "Vec<Released>")]),
            (
                "leaks",
                &[("since", "Option<Timestamp>"), ("until", "Option<Timestamp>"), ("leaks", "Vec<Leak>")],
            ),
        ] {
            let object = self.object(fields)?.done();
            self.defs.insert(verb.to_owned(), object);
        }
        self.explain()
    }

    /// An object that has all of these fields of these types.
    fn object(&mut self, fields: &[(&str, &str)]) -> Result<Object> {
        let mut object = Object::default();
        for (name, of) in fields {
            object.add(name, self.value(of)?, true);
        }
        Ok(object)
    }

    /// What `explain` prints is put together, and no type.
    fn explain(&mut self) -> Result<()> {
        let reason = json!({ "type": "object" });
        let reasons = json!({ "type": "array", "items": reason });
        let mut one = self.object(&[
            ("id", "String"),
            ("process", "ProcessView"),
            ("taken_for", "TakenFor"),
            ("state", "String"),
            ("name", "String"),
            ("rule", "Option<String>"),
            ("recognised_by", "Option<String>"),
            ("agent", "Option<AgentView>"),
            ("servers", "u64"),
            ("server", "Option<ServerView>"),
            ("owner", "Option<AgentView>"),
            ("owner_exited", "Option<Timestamp>"),
            ("cause", "Option<String>"),
            ("since", "Option<Timestamp>"),
            ("says", "Vec<String>"),
            ("reached_by", "Vec<ReachedBy>"),
            ("guarded_by", "Vec<ReachedBy>"),
            ("keeps", "Vec<Kept>"),
            ("listens", "Vec<String>"),
            ("locks", "Vec<String>"),
            ("rss_bytes", "Option<u64>"),
            ("pss_bytes", "Option<u64>"),
            ("commands", "Vec<String>"),
            ("started", "Timestamp"),
        ])?;
        for name in ["evidence", "doubts", "guards", "creators"] {
            one.add(name, reasons.clone(), true);
        }
        one.add("nothing", json!({ "type": ["object", "null"] }), true);
        let next = self.object(&[
            ("step", "Option<NextStep>"),
            ("at", "Option<Timestamp>"),
            ("in_ms", "Option<u64>"),
            ("says", "Vec<String>"),
        ])?;
        one.add("next", next.done(), true);
        let mut ended = self.object(&[("server", "PastOrphan")])?;
        ended.add("ended_by", json!({ "enum": ["orphand", null] }), true);
        let mut all = Object::default();
        all.add("source", json!({ "enum": ["daemon", "proc"] }), true);
        all.add("blind", self.value("Vec<String>")?, true);
        all.add("explained", json!({ "type": "array", "items": one.done() }), true);
        all.add("more", self.value("bool")?, true);
        all.add("ended", json!({ "type": "array", "items": ended.done() }), true);
        self.defs.insert("explain".to_owned(), all.done());
        Ok(())
    }

    fn fields(&mut self, fields: &[Field], object: &mut Object, always: bool) -> Result<()> {
        for Field { name, kind, about, may_be_absent, inline, .. } in fields {
            if *inline {
                self.inline(kind, object, always)?;
                continue;
            }
            let mut value = self.value(kind).with_context(|| name.clone())?;
            describe(&mut value, about);
            object.add(name, value, always && !may_be_absent);
            // What [`WallClock::tell_times`] adds.
            let told = if name == "start" { Some("started") } else { name.strip_suffix("_boot_ns") };
            if let Some(told) = told {
                object.add(told, time(), false);
            }
        }
        Ok(())
    }

    /// Fields that stand in place of a field.
    fn inline(&mut self, kind: &str, object: &mut Object, always: bool) -> Result<()> {
        match self.sources.get(kind)? {
            Type::Object(fields) => self.fields(&fields, object, always),
            Type::Variants(variants, tag) => {
                let names: Vec<&String> = variants.iter().map(|item| &item.name).collect();
                let tag = tag.context("an inline enumeration has a tag")?;
                object.add(&tag, json!({ "enum": names }), always);
                variants.iter().try_for_each(|item| self.fields(&item.fields, object, false))
            }
        }
    }

    /// A type of Rust as it is written in JSON.
    fn value(&mut self, kind: &str) -> Result<Value> {
        let inner = |prefix: &str| kind.strip_prefix(prefix).and_then(|rest| rest.strip_suffix('>'));
        if let Some(inner) = inner("Option<") {
            return Ok(json!({ "anyOf": [self.value(inner)?, { "type": "null" }] }));
        }
        if let Some(inner) = inner("Vec<") {
            return Ok(json!({ "type": "array", "items": self.value(inner)? }));
        }
        if let Some(inner) = inner("Box<") {
            return self.value(inner);
        }
        if let Some((_, of)) = inner("BTreeMap<").and_then(|inner| inner.split_once(", ")) {
            return Ok(json!({ "type": "object", "additionalProperties": self.value(of)? }));
        }
        Ok(match kind {
            "String" | "PathBuf" => json!({ "type": "string" }),
            "bool" => json!({ "type": "boolean" }),
            "f64" => json!({ "type": "number" }),
            "i32" => json!({ "type": "integer" }),
            "u8" | "u32" | "u64" | "usize" | "BootTime" | "super::BootTime" => {
                json!({ "type": "integer", "minimum": 0 })
            }
            "Timestamp" => time(),
            "Evidence" | "Doubt" | "Guard" => {
                let words = events::words();
                let all = words.iter().find(|(title, _)| title.starts_with(kind));
                let names = all.map(|(_, all)| all.iter().map(|one| one.name).collect::<Vec<_>>());
                self.defs.insert(kind.to_owned(), json!({ "enum": names }));
                json!({ "$ref": format!("#/$defs/{kind}") })
            }
            "(String, u32)" => json!({ "type": "array" }),
            _ => {
                self.define(kind)?;
                json!({ "$ref": format!("#/$defs/{kind}") })
            }
        })
    }

    fn define(&mut self, kind: &str) -> Result<()> {
        if self.defs.contains_key(kind) {
            return Ok(());
        }
        self.defs.insert(kind.to_owned(), Value::Null);
        let value = match self.sources.get(kind)? {
            Type::Object(fields) => {
                let mut object = Object::default();
                self.fields(&fields, &mut object, true).with_context(|| kind.to_owned())?;
                object.done()
            }
            Type::Variants(variants, _) => {
                json!({ "enum": variants.iter().map(|item| &item.name).collect::<Vec<_>>() })
            }
        };
        self.defs.insert(kind.to_owned(), value);
        Ok(())
    }
}

/// Says what an object is.
fn describe(value: &mut Value, about: &str) {
    if let Some(fields) = value.as_object_mut() {
        fields.insert("description".to_owned(), json!(about));
    }
}
