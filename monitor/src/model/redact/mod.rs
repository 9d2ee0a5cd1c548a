//! Secrets in command lines, made unreadable before anybody sees them.
//!
//! Pure and total. Invariants, each a property test: as many arguments come out as went in; twice is the
//! same as once; the time is linear in the length; the program position (`argv[0]`, a script, a package)
//! stays as it was, so that recognition does not depend on redaction. The shape stays readable:
//! `--token ***`, `API_KEY=***`, `postgres://me:***@db/x`.
//!
//! An argument may be a whole command line: npm and many servers overwrite their argv with a title, and a
//! shell's `-c` has a script. So words within an argument are looked at like arguments.
//!
//! Used by whoever makes an `Image` from outside: the decoder of kernel records and the reader of /proc.

mod key;
mod shape;
mod tool;
mod url;
mod word;

use std::mem;

use tool::Style;
use word::{
    find_close, is_program, is_run, is_scheme, is_value, mask_behind_scheme, mask_if_any, split_first,
    split_while,
};

/// What stands for a secret.
const MASK: &str = "***";

/// The arguments with their secrets replaced by `***`.
pub fn argv(argv: Vec<String>) -> Vec<String> {
    let mut redactor = Redactor::default();
    argv.into_iter().enumerate().map(|(n, argument)| redactor.argument(n == 0, &argument)).collect()
}

/// What the words so far say about the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expect {
    #[default]
    Nothing,
    /// It is a secret, unless it is an option or a program.
    Secret,
    /// It is `KEY=VALUE` or `Name: value` (after `-e`, `-H`).
    Pair,
    /// It is `user:password` (curl).
    UserPassword,
    /// It is a shell script (after `-c`).
    Script,
    /// It goes on with a secret until this quote, which is escaped by a backslash or not.
    Quoted { quote: char, escaped: bool },
}

#[derive(Debug, Default)]
struct Redactor {
    expect: Expect,
    /// The tool named last.
    tool: Option<&'static str>,
    /// Whether the present argument is a command line, where `;`, `&` and `|` end a word.
    command: bool,
}

impl Redactor {
    fn argument(&mut self, first: bool, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let expect = mem::take(&mut self.expect);
        self.command = first || expect == Expect::Script;
        match expect {
            Expect::Secret if is_program(text) => return text.to_owned(),
            Expect::Secret if is_value(text) => {
                if is_scheme(text) {
                    self.expect = Expect::Secret;
                    return text.to_owned();
                }
                mask_behind_scheme(text, &mut out);
                return out;
            }
            Expect::UserPassword if is_value(text) => {
                word::mask_password(text, &mut out);
                return out;
            }
            _ => {}
        }
        if let Some((head, _)) = text.split_once("PRIVATE KEY-----") {
            return format!("{head}PRIVATE KEY-----{MASK}");
        }
        if !self.command && self.whole_pair(text, expect == Expect::Pair, &mut out) {
            return out;
        }
        let mut rest = text;
        if first {
            // The program's own name is never a secret.
            let (name, tail) = split_while(text, |c| !c.is_whitespace());
            out.push_str(name);
            self.remember_tool(name);
            rest = tail;
        } else if expect == Expect::Pair {
            self.expect = expect;
        }
        self.words(rest, &mut out);
        if let Expect::Quoted { .. } = self.expect {
            self.expect = Expect::Nothing;
        }
        out
    }

    /// An argument that is `KEY=VALUE` (or `Name: value`) as a whole: its value may have blanks in it.
    fn whole_pair(&mut self, text: &str, header: bool, out: &mut String) -> bool {
        let (name, tail) = split_while(text, is_run);
        let separators: &[char] = if header { &['=', ':'] } else { &['='] };
        if name.is_empty() || !tail.starts_with(separators) || !key::is_secret(name) {
            return false;
        }
        let (separator, value) = split_first(tail);
        let (blank, value) = split_while(value, char::is_whitespace);
        out.push_str(name);
        out.push_str(separator);
        out.push_str(blank);
        if is_scheme(value) {
            self.expect = Expect::Secret;
            out.push_str(value);
        } else {
            mask_behind_scheme(value, out);
        }
        true
    }

    fn words(&mut self, text: &str, out: &mut String) {
        let mut rest = text;
        while !rest.is_empty() {
            let (blank, tail) = split_while(rest, char::is_whitespace);
            let (word, tail) = split_while(tail, |c| !c.is_whitespace());
            if !matches!(self.expect, Expect::Quoted { .. }) {
                out.push_str(blank);
            }
            if !word.is_empty() {
                self.word(word, out);
            }
            rest = tail;
        }
    }

    fn word(&mut self, word: &str, out: &mut String) {
        let expect = mem::take(&mut self.expect);
        match expect {
            Expect::Quoted { quote, escaped } => match find_close(word, quote, escaped) {
                Some(end) => return self.inner(word.split_at(end).1, Some('*'), false, out),
                None => return self.expect = expect,
            },
            Expect::Secret if is_program(word) => return out.push_str(word),
            Expect::Secret if is_value(word) => {
                if is_scheme(word) {
                    self.expect = Expect::Secret;
                    return out.push_str(word);
                }
                let stop = Stop::after(None, self.command);
                let tail = self.mask(word, stop, out);
                return self.inner(tail, Some('*'), false, out);
            }
            Expect::UserPassword if is_value(word) => return word::mask_password(word, out),
            _ => {}
        }
        self.remember_tool(word);
        if self.short_option(word, out) {
            return;
        }
        self.inner(word, None, expect == Expect::Pair, out);
        if self.expect == Expect::Nothing {
            self.expect = what_option_expects(word);
        }
    }

    /// A part of a word: pairs, URLs and the shapes of well-known tokens, wherever they begin.
    fn inner(&mut self, text: &str, before: Option<char>, header: bool, out: &mut String) {
        let (mut rest, mut before) = (text, before);
        while !rest.is_empty() {
            let (run, after) = split_while(rest, is_run);
            if run.is_empty() {
                let (other, tail) = split_first(rest);
                out.push_str(other);
                before = other.chars().next();
                rest = tail;
                continue;
            }
            let separator = separator(after, before, header || key::is_header(run));
            if let Some(separator) = separator
                && begins_key(before)
                && key::is_secret(run)
            {
                out.push_str(run);
                out.push_str(separator);
                let value = after.strip_prefix(separator).unwrap_or_default();
                if is_scheme(value) || (value.is_empty() && separator.ends_with(':')) {
                    out.push_str(value);
                    self.expect = Expect::Secret;
                    return;
                }
                let stop = if separator.len() > 1 { Stop::List } else { Stop::after(before, self.command) };
                rest = self.mask(value, stop, out);
                before = Some('*');
            } else if let Some(authority) = after.strip_prefix("://") {
                out.push_str(run);
                out.push_str("://");
                rest = url::mask_userinfo(run, authority, out);
                before = Some('/');
            } else {
                if run == "Bearer" && after.is_empty() {
                    self.expect = Expect::Secret;
                }
                (rest, before) = shape::mask(rest, run, before, out);
            }
        }
    }

    /// Masks the value that `text` begins with and returns what follows it.
    fn mask<'a>(&mut self, text: &'a str, stop: Stop, out: &mut String) -> &'a str {
        let (escape, body) = split_while(text, |c| c == '\\');
        let Some(quote) = body.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            let (value, tail) = match stop {
                // A quote at the very end closes something that began before.
                Stop::Word => text.split_at(text.trim_end_matches(['"', '\'']).len()),
                _ => split_while(text, |c| !stop.at(c)),
            };
            if let (Stop::Quote(quote), "") = (stop, tail) {
                self.expect = Expect::Quoted { quote, escaped: false };
                out.push_str(MASK);
            } else {
                mask_if_any(value, out);
            }
            return tail;
        };
        let escaped = !escape.is_empty();
        out.push_str(escape);
        out.push(quote);
        let (_, value) = split_first(body);
        if let Some(end) = find_close(value, quote, escaped) {
            let (value, tail) = value.split_at(end);
            mask_if_any(value, out);
            tail
        } else {
            out.push_str(MASK);
            self.expect = Expect::Quoted { quote, escaped };
            ""
        }
    }

    fn remember_tool(&mut self, word: &str) {
        self.tool = tool::find(word).or(self.tool);
    }

    /// A short option of a tool; whether `word` was one and is written.
    fn short_option(&mut self, word: &str, out: &mut String) -> bool {
        let Some((option, attached, style)) = self.tool.and_then(|tool| tool::option(tool, word)) else {
            return false;
        };
        match (style, attached.is_empty()) {
            (Style::Attached | Style::Either, false) => {
                out.push_str(option);
                out.push_str(MASK);
            }
            (Style::UserPassword, false) => {
                out.push_str(option);
                word::mask_password(attached, out);
            }
            (Style::Separate | Style::Either, true) => {
                out.push_str(word);
                self.expect = Expect::Secret;
            }
            (Style::UserPassword, true) => {
                out.push_str(word);
                self.expect = Expect::UserPassword;
            }
            (Style::Attached, true) | (Style::Separate, false) => return false,
        }
        true
    }
}

/// Where an unquoted value ends: that depends on what its key stands in.
#[derive(Clone, Copy, Debug)]
enum Stop {
    Word,
    Command,
    Query,
    List,
    Quote(char),
}

impl Stop {
    /// For a key that follows `before`.
    fn after(before: Option<char>, command: bool) -> Self {
        match before {
            Some('?' | '&') => Self::Query,
            Some('{' | '[' | '(' | ',') => Self::List,
            Some(quote @ ('"' | '\'')) => Self::Quote(quote),
            _ if command => Self::Command,
            _ => Self::Word,
        }
    }

    const fn at(self, c: char) -> bool {
        match self {
            Self::Word => false,
            Self::Command => matches!(c, ';' | '&' | '|' | ')' | '`'),
            Self::Query => matches!(c, '&' | '#' | '"' | '\''),
            Self::List => matches!(c, ',' | '}' | ']' | ')' | '"' | '\''),
            Self::Quote(quote) => c == quote,
        }
    }
}

/// What the word after this option is.
fn what_option_expects(word: &str) -> Expect {
    let word = word.trim_start_matches(['"', '\'']);
    match word {
        "-e" | "--env" | "-H" | "--header" | "--headers" => Expect::Pair,
        _ if !word.starts_with('-') || word.contains('=') => Expect::Nothing,
        _ if is_script_option(word) => Expect::Script,
        _ if key::takes_secret(word) => Expect::Secret,
        _ => Expect::Nothing,
    }
}

/// `-c`, `-lc`, `-exc`: a shell's script follows.
fn is_script_option(word: &str) -> bool {
    let flags = word.strip_prefix('-').unwrap_or_default();
    flags.ends_with('c') && flags.len() <= 4 && flags.bytes().all(|b| b.is_ascii_lowercase())
}

/// What separates the key of a pair from its value: `=`, `":`, `:` of a header.
fn separator(after: &str, before: Option<char>, header: bool) -> Option<&str> {
    let bare = split_while(after, |c| c == '\\').1;
    let quoted = bare.starts_with(['"', '\'']) && before.is_some_and(|c| matches!(c, '"' | '\''));
    let tail = if quoted { split_first(bare).1 } else { after };
    let (mark, value) = split_first(tail);
    let is_separator = match mark {
        "=" => true,
        // `name:tag` is an image, `auth:dev` a script of npm, `http://` a URL.
        ":" => !value.starts_with('/') && (quoted || header || value.is_empty()),
        _ => false,
    };
    is_separator.then(|| after.split_at(after.len() - value.len()).0)
}

/// Whether a key may begin behind this character. Not behind `/`: that is a path.
const fn begins_key(before: Option<char>) -> bool {
    matches!(
        before,
        None | Some('"' | '\'' | '{' | '[' | '(' | ',' | ';' | '&' | '|' | '?' | '$' | '=' | '#' | '`')
    )
}

#[cfg(test)]
mod tests;
