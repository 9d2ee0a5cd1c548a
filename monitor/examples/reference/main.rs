//! The reference parts of the documentation, from the code: `cargo xtask docs` puts them into the pages, `cargo xtask check reference`
//! compares them.
//!
//! Each part is printed between two comments, `<!-- NAME:begin -->` and `<!-- NAME:end -->`, as Markdown.

mod commands;
mod configuration;
mod events;
mod metrics;
mod schema;
mod source;

use textwrap::{Options, WordSplitter, wrap};

fn main() -> anyhow::Result<()> {
    let sources = source::Sources::read()?;
    let parts = [
        ("commands", commands::all()),
        ("configuration", configuration::keys()),
        ("reasons", events::reasons()),
        ("events", events::all(&sources)?),
        ("metrics", metrics::series()),
        ("schema", schema::all(&sources)?),
    ];
    for (name, text) in parts {
        println!("<!-- {name}:begin -->\n{}\n<!-- {name}:end -->", text.trim());
    }
    Ok(())
}

/// Prose in lines of fewer than 120 columns.
fn prose(text: &str) -> String {
    wrapped(text, "")
}

/// An item of a list.
fn item(text: &str) -> String {
    wrapped(&format!("- {text}"), "  ")
}

fn wrapped(text: &str, indent: &str) -> String {
    let options = Options::new(116).subsequent_indent(indent).word_splitter(WordSplitter::NoHyphenation);
    wrap(text, options.break_words(false)).join("\n") + "\n"
}
