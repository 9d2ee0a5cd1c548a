//! Masks secrets in command lines before anybody sees them.
//!
//! Pure and total. Invariants, each checked by a property test: the number of arguments stays the same; the
//! function is idempotent; the time is linear in the length; the program position (`argv[0]`, a script, a
//! package) is never changed, so that recognition does not depend on redaction. The shape stays readable:
//! `--token ***`, `API_KEY=***`, `postgres://me:***@db/x`.
//!
//! Masked are: values that a name announces (`key`), tokens with a service's prefix (`services`), passwords
//! and secret paths in URLs (`url`), short options of some tools (`tool`). Words that only look random are
//! not masked: hashes of commits and images, UUIDs. Users need them to identify things; a UUID that is a key
//! is masked if its name says so.
//!
//! An argument may contain a whole command line: npm and many servers overwrite their argv with a title, and
//! the argument of a shell's `-c` is a script. So the words within an argument are treated like arguments.
//!
//! Every producer of an `Image` calls this: the decoder of kernel records and the reader of /proc.

mod key;
mod options;
mod services;
mod shape;
mod stop;
mod tool;
mod url;
mod word;

use std::mem;

use options::{mask_login, what_option_expects};
use stop::{Stop, begins_key, comma_separated, separator};
use tool::{Style, Tool};
use word::{
    find_close, is_program, is_run, is_scheme, is_value, mask_behind_scheme, mask_if_any, split_first,
    split_while,
};

/// Replaces a secret.
const MASK: &str = "***";

/// Whether a secret of this argument may have been masked.
pub fn is_masked(argument: &str) -> bool {
    argument.contains(MASK)
}

/// The limit on passes over a command line.
const PASSES: usize = 8;

/// Replaces secrets in the arguments by `***`. `truncated`: the kernel cut the last argument, perhaps in the
/// middle of a secret.
///
/// The function is idempotent, so that the replay of a recording gives the same result. A mask may change how
/// the text around it is read; therefore an argument with a mask is processed until nothing changes.
pub fn argv(mut argv: Vec<String>, truncated: bool) -> Vec<String> {
    for _ in 0..PASSES {
        let shown = pass(&argv, truncated);
        if shown == argv {
            break;
        }
        argv = shown;
    }
    argv
}

fn pass(argv: &[String], truncated: bool) -> Vec<String> {
    let mut redactor = Redactor::default();
    let last = argv.len().saturating_sub(1);
    let redact = |(n, argument): (usize, &String)| {
        redactor.cut = truncated && n == last;
        redactor.argument(n == 0, argument)
    };
    argv.iter().enumerate().map(redact).collect()
}

/// What the words so far say about the next word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Expect {
    #[default]
    Nothing,
    /// The secret that this name announces, unless the word is an option or a program.
    Secret(String),
    /// `KEY=VALUE` or `Name: value` (after `-e`, `-H`).
    Pair,
    /// `user:password` (after this option of a tool).
    Login(Style),
    /// A shell script (after `-c`).
    Script,
    /// The value of a header, up to this quote if there is one.
    Header(Option<char>),
    /// The rest of a cookie, for as long as words end with `;`.
    Cookie,
    /// The rest of a secret up to this quote, which is escaped by a backslash or not.
    Quoted { quote: char, escaped: bool },
}

#[derive(Debug, Default)]
struct Redactor {
    expect: Expect,
    /// The tool that was named last.
    tool: Option<Tool>,
    /// Whether the argument is a command line, in which `;`, `&` and `|` end a word.
    command: bool,
    /// Whether the kernel cut the argument.
    cut: bool,
    /// Whether the string before was the name of a secret, as in JSON `"name":"TOKEN","value":"abc"`.
    named: bool,
}

impl Redactor {
    fn argument(&mut self, first: bool, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let expect = mem::take(&mut self.expect);
        self.command = first || expect == Expect::Script;
        match &expect {
            Expect::Secret(_) if is_program(text) => return text.to_owned(),
            Expect::Secret(name) if is_value(text) => {
                if is_scheme(text) {
                    self.expect = expect;
                    return text.to_owned();
                }
                if !key::is_plain(name, text) {
                    mask_behind_scheme(text, &mut out);
                    return out;
                }
            }
            Expect::Login(style) if is_value(text) && mask_login(*style, text, &mut out) => return out,
            _ => {}
        }
        // After the first line of an armoured private key, everything is the key.
        let (text, key) = text.split_at(word::end_of_armour(text));
        self.cut &= key.is_empty();
        self.shown(first, text, expect, &mut out);
        if !key.is_empty() {
            self.expect = Expect::Nothing;
            if out.ends_with("PRIVATE KEY") {
                let rest = key.strip_prefix(" BLOCK").unwrap_or(key);
                let rest = key.len() - rest.trim_start_matches('-').len();
                out.push_str(key.split_at(rest).0);
                mask_if_any(key.split_at(rest).1, &mut out);
            } else if !out.ends_with(MASK) {
                out.push_str(MASK);
            }
        }
        out
    }

    /// Handles an argument that is not a secret as a whole.
    fn shown(&mut self, first: bool, text: &str, expect: Expect, out: &mut String) {
        if !self.command && self.whole_pair(text, expect == Expect::Pair, out) {
            return;
        }
        let mut rest = text;
        if first {
            // The name of the program is never a secret.
            let (name, tail) = split_while(text, |c| !c.is_whitespace());
            out.push_str(name);
            self.remember_tool(name);
            rest = tail;
        } else if matches!(expect, Expect::Pair | Expect::Header(_) | Expect::Cookie) {
            self.expect = expect;
        }
        self.words(rest, out);
        if let Expect::Quoted { .. } | Expect::Header(Some(_)) = self.expect {
            self.expect = Expect::Nothing;
        }
    }

    /// Handles an argument that is `KEY=VALUE` or `Name: value` as a whole; its value may contain blanks.
    fn whole_pair(&mut self, text: &str, header: bool, out: &mut String) -> bool {
        const OPTIONS: [&str; 3] = ["--header=", "--headers=", "-H"];
        let option = OPTIONS.into_iter().find(|option| text.starts_with(option)).unwrap_or_default();
        let (option, pair) = text.split_at(option.len());
        let (name, tail) = split_while(pair, is_run);
        let header = header || !option.is_empty() || key::is_header(name);
        let separators: &[char] = if header { &['=', ':'] } else { &['='] };
        if name.is_empty() || !tail.starts_with(separators) || !key::is_secret(name) {
            return false;
        }
        let (separator, value) = split_first(tail);
        let (blank, value) = split_while(value, char::is_whitespace);
        // npm's registry settings have `:` and later `=`.
        if key::is_plain(name, value) || value.starts_with(['/', '=']) && separator == ":" {
            return false;
        }
        out.push_str(option);
        out.push_str(name);
        out.push_str(separator);
        out.push_str(blank);
        if is_scheme(value) {
            self.expect = Expect::Secret(name.to_owned());
            out.push_str(value);
        } else if value.is_empty() && separator == ":" {
            self.expect = Expect::Header(None);
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
                self.word(word, self.cut && tail.is_empty(), out);
                self.expect_assigned(word, tail);
            }
            rest = tail;
        }
    }

    /// Handles `TOKEN = abc`, as in TOML: a separate `=`, then a secret.
    fn expect_assigned(&mut self, word: &str, tail: &str) {
        let name = word.trim_matches(['"', '\'', '{', ',', '(']);
        let is_name = !name.is_empty() && name.chars().all(is_run);
        let next = split_while(tail.trim_start(), |c| !c.is_whitespace()).0;
        if self.expect == Expect::Nothing
            && is_name
            && matches!(next, "=" | "=>" | ":" | ":=")
            && key::is_secret(name)
        {
            self.expect = Expect::Secret(name.to_owned());
        }
    }

    fn word(&mut self, word: &str, cut: bool, out: &mut String) {
        let expect = mem::take(&mut self.expect);
        match &expect {
            Expect::Quoted { quote, escaped } => match find_close(word, *quote, *escaped) {
                Some(end) => return self.inner(word.split_at(end).1, Some('*'), false, cut, out),
                None => return self.expect = expect,
            },
            Expect::Secret(_) | Expect::Header(_) if matches!(word, "=" | "=>" | ":" | ":=") => {
                self.expect = expect;
                return out.push_str(word);
            }
            Expect::Header(quote) => {
                if is_scheme(word) {
                    self.expect = expect;
                    return out.push_str(word);
                }
                if let Some(quote) = *quote {
                    out.push_str(MASK);
                    self.expect = Expect::Quoted { quote, escaped: false };
                    return self.word(word, cut, out);
                }
                if is_value(word) {
                    return self.mask_word(word, cut, out);
                }
            }
            Expect::Cookie if is_value(word) => {
                self.mask_word(word, cut, out);
                if word.ends_with(';') {
                    self.expect = Expect::Cookie;
                }
                return;
            }
            Expect::Secret(_) if is_program(word) => return out.push_str(word),
            Expect::Secret(name) if is_value(word) => {
                if is_scheme(word) {
                    self.expect = expect;
                    return out.push_str(word);
                }
                if !key::is_plain(name, word) {
                    return self.mask_word(word, cut, out);
                }
            }
            Expect::Login(style) if is_value(word) && mask_login(*style, word, out) => return,
            _ => {}
        }
        self.remember_tool(word);
        if self.short_option(word, out) {
            return;
        }
        self.inner(word, None, expect == Expect::Pair, cut, out);
        if self.expect == Expect::Nothing {
            self.expect = what_option_expects(word);
        }
    }

    fn mask_word(&mut self, word: &str, cut: bool, out: &mut String) {
        let stop = Stop::after(None, self.command);
        let tail = self.mask(word, stop, out);
        self.inner(tail, Some('*'), false, cut, out);
    }

    /// Masks pairs, URLs and tokens of known shape within a word, wherever they begin.
    fn inner(&mut self, text: &str, before: Option<char>, header: bool, cut: bool, out: &mut String) {
        let (mut rest, mut before, mut header) = (text, before, header);
        while !rest.is_empty() {
            let (run, after) = split_while(rest, is_run);
            if run.is_empty() {
                let (other, tail) = split_first(rest);
                out.push_str(other);
                before = other.chars().next();
                rest = tail;
                continue;
            }
            if let Some(separator) = separator(after, before, header || key::is_header(run))
                && begins_key(before)
                && let value = after.strip_prefix(separator).unwrap_or_default()
                && (key::is_secret(run)
                    || (matches!(before, Some('?' | '&')) && key::is_secret_in_query(run, value))
                    || (run == "value" && mem::take(&mut self.named)))
                && !key::is_plain(run, Stop::after(before, self.command).value(value))
            {
                out.push_str(run);
                out.push_str(separator);
                if value.is_empty() && separator.ends_with(':') {
                    // `"Name: value"`; not `"name": ..`, in which the quote is closed.
                    let quote = before.filter(|c| matches!(c, '"' | '\'') && separator == ":");
                    self.expect = match quote {
                        None if separator != ":" => Expect::Secret(run.to_owned()),
                        Some(_) => Expect::Header(quote),
                        None if key::is_cookie(run) => Expect::Cookie,
                        None => Expect::Header(None),
                    };
                    return;
                }
                if is_scheme(value) {
                    out.push_str(value);
                    self.expect = Expect::Secret(run.to_owned());
                    return;
                }
                let stop = if separator.len() > 1 { Stop::List } else { Stop::after(before, self.command) };
                rest = self.mask(value, stop, out);
                before = Some('*');
                // After the value of a header a new word begins.
                header = false;
            } else if let Some(separator) = comma_separated(after, before)
                && run.starts_with('-')
                && key::takes_secret(run)
            {
                // A JSON list of arguments: `"--token","abc"`.
                out.push_str(run);
                out.push_str(separator);
                rest = self.mask(after.strip_prefix(separator).unwrap_or_default(), Stop::List, out);
                before = Some('*');
            } else if let Some(authority) = after.strip_prefix("://") {
                out.push_str(run);
                out.push_str("://");
                rest = url::mask(run, authority, cut, out);
                before = Some('/');
            } else if after.starts_with('/') && url::is_known(run) {
                rest = url::mask_path(rest, cut, out);
                before = Some('/');
            } else if begins_key(before)
                && let Some(password) = after.strip_prefix(':')
                && let Some(length) = word::password_before_host(run, password, cut)
            {
                out.push_str(run);
                out.push(':');
                out.push_str(MASK);
                rest = password.split_at(length).1;
                before = Some('*');
            } else {
                // `{"name":"TOKEN","value":"abc"}`.
                self.named |= comma_separated(after, before).is_some() && key::is_secret(run);
                if run == "Bearer" && after.is_empty() {
                    self.expect = Expect::Secret(run.to_owned());
                }
                (rest, before) = shape::mask(rest, run, before, cut, out);
            }
        }
    }

    /// Masks the value at the start of `text` and returns the rest.
    fn mask<'a>(&mut self, text: &'a str, stop: Stop, out: &mut String) -> &'a str {
        let (escape, body) = split_while(text, |c| c == '\\');
        let Some(quote) = body.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            let (value, tail) = stop.split(text);
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
}

#[cfg(test)]
mod tests;
