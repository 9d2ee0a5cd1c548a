//! A log as a trace for `orphand replay`: what a broken law is looked at with.

use std::{error::Error, fs, io::Write as _, path::PathBuf};

use orphand_core::{
    engine::Settings,
    model::{Policy, TRACE_FORMAT, TraceEntry, TraceHeader},
};

use crate::host::Host;

/// Writes all that the engine was told to a file of this name; tells which.
pub fn write(host: &Host, name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("laws");
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{name}.trace"));
    let header = TraceHeader {
        format: TRACE_FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: "model".to_owned(),
        realtime_offset_ns: 0,
        policy: host.policy.clone(),
        ourselves: host.settings.ourselves.clone(),
    };
    let mut file = fs::File::create(&path)?;
    writeln!(file, "{}", serde_json::to_string(&header)?)?;
    for (at, given) in &host.log.given {
        writeln!(file, "{}", serde_json::to_string(&TraceEntry { at: *at, input: given.clone() })?)?;
    }
    Ok(path)
}

/// What settings say, as an engine is told.
pub fn policy(settings: &Settings) -> Policy {
    let Settings {
        mode,
        found,
        grace,
        abandoned_grace,
        work_grace,
        term_timeout,
        other_uids,
        recognise_protocol,
        ..
    } = *settings;
    Policy {
        mode,
        found,
        grace,
        abandoned_grace,
        work_grace,
        term_timeout,
        other_uids,
        recognise_protocol,
        decided_by: settings.decided_by.clone(),
        rules: settings.rules.source(),
        alerts: settings.alerts.clone(),
        sessions: settings.sessions.clone(),
        engines: settings.engines.clone(),
    }
}
