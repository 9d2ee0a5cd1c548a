//! What orphand reads from others, as functions over any bytes. None may panic, hang or take memory without bound, whatever the bytes
//! are; where something holds for what they give, that is checked, too.

mod host;
mod text;
mod wire;

/// A reader and its name.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What it is called, and its folder in the corpus.
    pub name: &'static str,
    /// Reads these bytes.
    pub run: fn(&[u8]),
    /// Bytes that it makes sense to try at most.
    pub longest: usize,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "ring", run: wire::ring, longest: 4096 },
    Target { name: "ends", run: wire::ends, longest: 4096 },
    Target { name: "btf", run: wire::btf, longest: 8192 },
    Target { name: "control", run: wire::control, longest: 4096 },
    Target { name: "trace", run: wire::trace, longest: 16384 },
    Target { name: "config", run: text::config, longest: 4096 },
    Target { name: "redact", run: text::redact, longest: 2048 },
    Target { name: "settings", run: text::settings, longest: 16384 },
    Target { name: "message", run: text::message, longest: 65536 },
    Target { name: "accept", run: text::accept, longest: 512 },
    Target { name: "stat", run: host::stat, longest: 1024 },
    Target { name: "cgroup", run: host::cgroup, longest: 1024 },
    Target { name: "process", run: host::process, longest: 4096 },
    Target { name: "net", run: host::net, longest: 4096 },
];
