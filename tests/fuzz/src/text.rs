//! What people write: the configuration, command lines, headers.

use std::path::Path;

use orphand::{config::Config, sink::metrics::Exposition};
use orphand_core::model::redact;

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

/// The arguments of a process, which end with NUL; the first byte says whether the kernel cut them. As many come out, and twice is the
/// same as once.
pub fn redact(bytes: &[u8]) {
    let Some((cut, bytes)) = bytes.split_first() else { return };
    let cut = cut & 1 != 0;
    let argv: Vec<String> =
        bytes.split(|b| *b == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let once = redact::argv(argv.clone(), cut);
    assert_eq!(once.len(), argv.len());
    assert_eq!(redact::argv(once.clone(), cut), once, "from {argv:?}");
}

/// What a scraper says it accepts.
pub fn accept(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Exposition::of_accept(text).content_type();
    }
}
