//! A log as a trace for `orphand replay`: what a broken law is looked at with.

use std::{error::Error, fs, path::PathBuf};

use monitor::{
    model::Input,
    source::trace::{FORMAT, Header, TraceWriter},
};

use crate::{host::Host, log::Given};

/// Writes all that the engine was told to a file of this name; tells which.
pub fn write(host: &Host, name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("laws");
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{name}.trace"));
    let header = Header {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: "model".to_owned(),
        realtime_offset_ns: 0,
        policy: host.policy.clone(),
        ourselves: host.settings.ourselves.clone(),
    };
    let mut writer = TraceWriter::create(&path, &header)?;
    for (at, given) in &host.log.given {
        match given {
            Given::Input(input) => writer.record(*at, input),
            Given::Timeout => writer.record(*at, &Input::Timeout),
        }
    }
    writer.flush();
    Ok(path)
}
