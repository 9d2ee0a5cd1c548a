//! What people write: the configuration, command lines, headers, settings of agents, first messages.
#![expect(clippy::unwrap_used, reason = "a target that cannot be set up has to fail")]

use std::{path::Path, thread};

use orphand::{config::Config, sink::metrics::Exposition};
use orphand_core::{
    model::redact,
    recognise::{Declarations, Notation, first_message, harmless},
};

/// A configuration. What is valid is valid again as it is shown, and the same.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(config) = Config::parse(text, Path::new("fuzzed.toml")) {
        let shown = config.render();
        let again = Config::parse(&shown, Path::new("shown.toml"));
        assert_eq!(again.ok().as_ref(), Some(&config), "shown as {shown}");
        let _ = (config.rules(), config.policy());
    }
}

/// The arguments of a process, which end with NUL. As many come out, and twice is the same as once.
pub fn redact(bytes: &[u8]) {
    let argv: Vec<String> =
        bytes.split(|b| *b == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let once = redact::argv(&argv);
    assert_eq!(once.len(), argv.len());
    assert_eq!(redact::argv(&once), once, "from {argv:?}");
}

/// What a scraper says it accepts.
pub fn accept(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Exposition::of_accept(text).content_type();
    }
}

/// Runs on a stack of this size, as the daemon or its helper does.
fn on_a_stack(bytes: usize, work: impl FnOnce() + Send) {
    thread::scope(|scope| {
        thread::Builder::new().stack_size(bytes).spawn_scoped(scope, work).unwrap().join().unwrap();
    });
}

/// A file of settings, in both notations. What an entry is called may be shown.
pub fn settings(bytes: &[u8]) {
    on_a_stack(Notation::STACK, || {
        for notation in [Notation::Json, Notation::Toml, Notation::Told] {
            if let Some(name) = Declarations::of(bytes, notation).name_of(&["x".to_owned()]) {
                assert_eq!(harmless(name).as_deref(), Some(name));
            }
        }
    });
}

/// A first message, whole and cut short, on a stack that is half of the daemon's.
pub fn message(bytes: &[u8]) {
    on_a_stack(256 << 10, || {
        let _ = (first_message(bytes, true), first_message(bytes, false));
    });
}
