//! The manual page orphand.toml(5), generated from the table of options.

use std::{io, io::Write};

use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use crate::config::{
    DEFAULT_PATH,
    options::{self, Key},
};

pub(super) const NAME: &str = "orphand.toml.5";

const DESCRIPTION: [&str; 5] = [
    "The configuration of orphand(1) is TOML. None is needed: every key has a default, or may be absent.",
    "/etc/orphand/config.toml is read first, then /etc/orphand/conf.d/*.toml in the order of the bytes of their names; with \
     --config FILE, FILE and conf.d/*.toml beside it. Either may be absent, but a FILE that was named must be there. Names that \
     begin with a dot or do not end in .toml are passed over. A later file beats an earlier one key by key; the tables of a list, \
     such as [[agent]], are added to those before. The flags of the command line beat all files.",
    "An unknown key, a value that cannot be, and a file that cannot be read are mistakes, and orphand does not start. orphand \
     config check reports all of them, with file, line and column; orphand config show --origin prints the effective values and \
     where they came from.",
    "As root, or with capabilities, orphand refuses a file that others could change: every directory and link on the way to it, \
     and conf.d itself, must belong to root or the user it runs as, and be writable by nobody else.",
    "A duration is written like \"500ms\", \"10s\", \"5m\" or \"1h 30m\".",
];

const RULES: [&str; 2] = [
    "A rule says what a program is to orphand. It matches if each of its keys matches. In a pattern * stands for any text, ? for any \
     character. Of the rules in the tables of one name the first that matches counts; of several tables the first in this order. \
     All come before the built-in rules.",
    "The kernel side looks for file names: a rule whose program has wildcards is noticed below agents, behind interpreters and \
     launchers, and at the start of the daemon, not for a binary that anybody starts.",
];

pub(super) fn page(out: &mut dyn Write) -> io::Result<()> {
    let mut roff = Roff::new();
    let source = concat!("orphand ", env!("CARGO_PKG_VERSION"));
    // No date, because it would change with every build.
    roff.control("TH", ["orphand.toml", "5", "\"\"", source, "orphand"]);
    roff.control("SH", ["NAME"]);
    roff.text([roman("orphand.toml - the configuration of orphand")]);
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([italic(DEFAULT_PATH), roman(", "), italic("/etc/orphand/conf.d/*.toml")]);
    roff.control("SH", ["DESCRIPTION"]);
    paragraphs(&DESCRIPTION, &mut roff);
    roff.control("SH", ["KEYS"]);
    paragraphs(&[&options::top().about], &mut roff);
    options::top().keys.iter().for_each(|one| key(one, &mut roff));
    for section in options::tables() {
        roff.control("SH", [section.header().as_str()]);
        paragraphs(&[&section.about], &mut roff);
        if !section.is_rules {
            section.keys.iter().for_each(|one| key(one, &mut roff));
        }
        roff.text([roman("For example:")]);
        example(&section.example(), &mut roff);
    }
    if let Some(rules) = options::tables().iter().find(|section| section.is_rules) {
        roff.control("SH", ["RULES"]);
        paragraphs(&RULES, &mut roff);
        rules.keys.iter().for_each(|one| key(one, &mut roff));
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text([
        bold("orphand"),
        roman("(1), "),
        bold("orphand-config-check"),
        roman("(1), "),
        bold("orphand-run"),
        roman("(1)"),
    ]);
    roff.to_writer(out)
}

fn paragraphs(texts: &[&str], roff: &mut Roff) {
    for text in texts {
        roff.control("PP", []);
        roff.text([roman(*text)]);
    }
}

fn key(key: &Key, roff: &mut Roff) {
    roff.control("TP", []);
    roff.text([bold(&*key.name)]);
    roff.text([roman(format!("{} Value: {}.", key.about, key.value))]);
    roff.control("br", []);
    let mut words: Vec<Inline> = Vec::new();
    if let Some(default) = &key.default {
        words.extend([roman("Default: "), bold(&**default), roman(". ")]);
    }
    words.extend([roman("For example: "), bold(key.example())]);
    roff.text(words);
}

fn example(lines: &str, roff: &mut Roff) {
    roff.control("PP", []);
    roff.control("RS", ["4"]);
    roff.control("nf", []);
    for line in lines.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff.control("RE", []);
}
