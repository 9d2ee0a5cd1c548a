//! A log as a trace for `orphand replay`: what a broken law is looked at with.

use std::{error::Error, fs, io::Write as _, path::PathBuf};

use orphand_core::model::{TRACE_FORMAT, TraceEntry, TraceHeader};

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
        policy: host.first_policy.clone(),
        ourselves: host.truth.ourselves.clone(),
    };
    let mut file = fs::File::create(&path)?;
    writeln!(file, "{}", serde_json::to_string(&header)?)?;
    for (at, given) in &host.log.given {
        writeln!(file, "{}", serde_json::to_string(&TraceEntry { at: *at, input: given.clone() })?)?;
    }
    Ok(path)
}
