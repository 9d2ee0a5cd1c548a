//! The web page: the document, and what it is told of the host.
//!
//! Invariant: nothing here has a process number, a path, an argument, or a user. It is for whoever can reach the
//! address, so it has what the metrics have, and the names of programs that everybody sees in the process list.
//! Everything is bounded, whatever users start.

mod happening;
mod names;
mod past;
mod snapshot;

use std::fmt::Write as _;

use self::names::Keys;
pub use self::{happening::Happening, past::Range, snapshot::Snapshot};
use super::wall_clock::WallClock;

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

#[derive(Debug)]
pub struct Page {
    wall: WallClock,
    keys: Keys,
}

impl Page {
    pub fn new(wall: WallClock) -> Self {
        Self { wall, keys: Keys::default() }
    }
}

/// The document. Its style and script have this nonce, 16 random bytes.
pub fn document(nonce: [u8; 16]) -> (String, String) {
    let nonce = nonce.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    let page = HTML.replace("{nonce}", &nonce).replace("{style}", STYLE).replace("{script}", SCRIPT);
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    );
    (page, policy)
}

#[cfg(test)]
mod tests;
