//! Shows of a command line what is known to be harmless, and masks everything else.
//!
//! Harmless are the name of the program, of its script, package or image, the names of options, paths whose parts a
//! person has named, numbers, addresses without users and queries, and some hundred words (`words`). Any other value is
//! `***`, whatever it is; so is any value, harmless or not, behind a name that announces a secret. An argument of many
//! words is masked as a whole, unless it is a title or the script of a shell, which are command lines again.
//!
//! Pure and total. Invariants, each with a property test: nothing that was masked is in the output; the number of
//! arguments stays; twice is the same as once; the time is linear; the name of the program stays.
//!
//! Recognition and judgement read what a process was really started with. Whatever leaves the core ([`Image`] when it is
//! written, `ProcessView`) goes through here.
//!
//! [`Image`]: super::Image

mod harmless;
mod words;

pub use self::harmless::components as path;

use std::mem;

use serde::{Serializer, ser::SerializeSeq as _};

pub const MASK: &str = "***";

/// How Python starts a fork server: its descriptors follow, by which a replay knows it.
pub const FORK_SERVER: &str = "from multiprocessing.forkserver import main; main(";

/// Whether a value of this argument may have been masked.
pub fn is_masked(argument: &str) -> bool {
    argument.contains(MASK)
}

/// The arguments as they may be shown.
pub fn argv(arguments: &[String]) -> Vec<String> {
    let mut line = Line::default();
    let shown = |(at, argument): (usize, &String)| line.argument(at == 0, argument);
    arguments.iter().enumerate().map(shown).collect()
}

/// Writes arguments as they may be shown.
pub(super) fn serialize<S: Serializer>(arguments: &[String], to: S) -> Result<S::Ok, S::Error> {
    let mut list = to.serialize_seq(Some(arguments.len()))?;
    for argument in argv(arguments) {
        list.serialize_element(&argument)?;
    }
    list.end()
}

/// What the words so far say about the next one.
#[derive(Debug, Default)]
struct Line {
    /// These are the words of one argument. Where a value ends is not certain then.
    within_argument: bool,
    /// A name has announced a secret.
    announced: bool,
    /// So many programs, packages or containers are named soon.
    programs: u8,
    /// The program is the client of a container engine.
    engine: bool,
    /// These are the options of a shell.
    shell: bool,
    /// A container is named soon, perhaps by the number that its engine has given to it.
    names_container: bool,
    before: Before,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Before {
    /// One that takes no value.
    #[default]
    Word,
    /// An option that may take one.
    Option,
    Letter,
    /// The same; its value is a script.
    Script,
    /// The same; its value is the name of a container, which everybody is told who shall stop it.
    Container,
}

impl Line {
    fn argument(&mut self, first: bool, text: &str) -> String {
        if first {
            let name = text.split(char::is_whitespace).next().unwrap_or_default();
            self.programs = u8::from(words::is_carrier(name) || name.starts_with('/') && text.contains(' '));
            self.engine = words::is_engine(name);
            self.shell = words::is_shell(name);
            let title = text.get(name.len()..).unwrap_or_default();
            let inner = Self { within_argument: true, programs: self.programs, ..Self::default() };
            return if title.trim().is_empty() {
                text.to_owned()
            } else {
                format!("{name}{}", inner.text(title))
            };
        }
        if self.before != Before::Script {
            return self.word(text);
        }
        if text == "--" && self.shell {
            return text.to_owned();
        }
        self.before = Before::Word;
        if let Some(numbers) = text.strip_prefix(FORK_SERVER) {
            let end =
                numbers.find(|c: char| !c.is_ascii_digit() && !", ".contains(c)).unwrap_or(numbers.len());
            return format!("{FORK_SERVER}{}{MASK}", numbers.get(..end).unwrap_or_default());
        }
        let inner = Self { within_argument: true, programs: 1, ..Self::default() };
        inner.text(text).trim_start().to_owned()
    }

    /// Shows a command line within an argument, each word behind a blank.
    fn text(mut self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        for word in split(text) {
            let (word, end) = word.strip_suffix(';').map_or((word, ""), |word| (word, ";"));
            let word = self.word(word);
            // How many words were masked says something, too.
            if word != MASK || !shown.ends_with(" ***") {
                shown.push(' ');
                shown.push_str(&word);
            }
            shown.push_str(end);
            if !end.is_empty() && !self.announced {
                self.programs = 1;
            }
        }
        shown
    }

    fn word(&mut self, word: &str) -> String {
        let before = mem::take(&mut self.before);
        self.shell = words::is_shell(word) || (self.shell && word.starts_with(['-', '+']));
        let most_digits = if matches!(before, Before::Letter | Before::Script) { 5 } else { 8 };
        if words::OPERATORS.contains(&word) {
            (self.programs, self.announced) = (1, false);
            return word.to_owned();
        }
        let is_letter =
            |rest: &str| rest.is_empty() || matches!(rest.as_bytes(), [b] if b.is_ascii_alphabetic());
        let is_option = word.starts_with("--") || word.strip_prefix('-').is_some_and(is_letter);
        if self.announced && !is_option && !word.is_empty() {
            // `Authorization: Bearer abc`, in one argument or in three
            let continues = |word: &str| word.ends_with([':', ';', ',', '=']) || word == "Bearer";
            self.announced = self.within_argument || continues(word);
            return MASK.to_owned();
        }
        if word.is_empty() || word == MASK || before == Before::Container && harmless::is_container(word) {
            return word.to_owned();
        }
        self.announced = false;
        if word.starts_with('-') {
            return self.option(word);
        }
        // As programs of Windows take it: `/key:VALUE`.
        let switch = word.strip_prefix('/').and_then(|word| word.split_once(':'));
        if let Some((name, _)) = switch.filter(|(name, _)| is_variable(name) && words::announces(name)) {
            return format!("/{name}:{MASK}");
        }
        let assignment =
            word.split_once('=').filter(|(name, value)| is_variable(name) && !value.starts_with('='));
        if let Some((name, value)) = assignment {
            return format!("{name}={}", value_of(name, value));
        }
        let is_container =
            |word: &str| harmless::is_digest(word) || self.engine && harmless::is_container(word);
        let names_container = self.names_container
            && (before == Before::Word && is_container(word) || harmless::is_digest(word));
        self.names_container &= before != Before::Word && !names_container;
        let place = harmless::place(word);
        let program = place.or_else(|| (self.programs > 0).then(|| harmless::package(word)).flatten());
        let known = names_container || words::is_known(word) || harmless::is_number(word, most_digits);
        // A container may be called like a secret: its program follows.
        let may_announce = program.is_none() && !names_container && !word.contains('/');
        self.announced = may_announce && words::announces(word);
        self.names_container |=
            matches!(word, "start" | "attach") || self.engine && word == "exec" && !names_container;
        let shown = known.then(|| word.to_owned()).or(program);
        if let Some(shown) = &shown {
            self.programs = match word {
                // `docker exec box server`
                "exec" => 2,
                // By what is shown: an address may end like a program, and not be shown to its end.
                _ if words::is_starter(shown) => 1,
                _ if before != Before::Word || harmless::is_number(word, most_digits) => self.programs,
                _ => self.programs.saturating_sub(1),
            };
        }
        shown.unwrap_or_else(|| MASK.to_owned())
    }

    fn option(&mut self, word: &str) -> String {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let long = name.strip_prefix("--").or_else(|| name.strip_prefix("-D").filter(|_| value.is_some()));
        let is_name = long.map_or_else(
            || words::is_short_option(name) && value.is_none(),
            |long| long.is_empty() || is_variable(long),
        );
        // `python -mMODULE`
        let module = name.strip_prefix("-m").filter(|_| self.programs > 0 && value.is_none());
        if !is_name && module.is_none_or(|module| !is_variable(module)) {
            // `-pSECRET`
            let letter = word
                .get(..2)
                .filter(|letter| letter.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-'));
            return format!("{}{MASK}", letter.unwrap_or("-"));
        }
        let is_container = self.engine && name == "--name";
        if let Some(value) = value {
            let known = is_container && harmless::is_container(value);
            return if known { word.to_owned() } else { format!("{name}={}", value_of(name, value)) };
        }
        let is_attaching = |option: &str| {
            let is_cluster = |letters: &str| letters.bytes().all(|byte| b"adit".contains(&byte));
            matches!(option, "--attach" | "--detach" | "--interactive" | "--tty")
                || option.strip_prefix('-').is_some_and(is_cluster)
        };
        self.before = match name {
            _ if is_container => Before::Container,
            _ if self.engine && is_attaching(name) => Before::Word,
            _ if words::takes_script(name, self.shell) => Before::Script,
            _ if words::FLAGS.contains(&name) => Before::Word,
            _ if name.len() == 2 => Before::Letter,
            _ => Before::Option,
        };
        self.announced = words::announces(name);
        self.programs = self.programs.max(words::NAMING.contains(&name).into());
        name.to_owned()
    }
}

fn value_of(name: &str, value: &str) -> String {
    let program = || words::NAMING.contains(&name).then(|| harmless::package(value)).flatten();
    let known = || (words::is_known(value) || harmless::is_number(value, 8)).then(|| value.to_owned());
    match value {
        "" => String::new(),
        _ if words::announces(name) => MASK.to_owned(),
        _ => known().or_else(program).or_else(|| harmless::place(value)).unwrap_or_else(|| MASK.to_owned()),
    }
}

/// Whether this may be the name of a variable or of an option.
fn is_variable(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_first) && harmless::is_name(name) && !name.contains(['~', '@', ',', '+'])
}

/// Splits a command line at blanks outside quotes.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let (mut quote, mut escaped) = (None, false);
    let words = text.split(move |c: char| {
        let before = mem::take(&mut escaped);
        match (quote, c) {
            _ if before => {}
            (_, '\\') => escaped = true,
            (None, '"' | '\'' | '`') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, _) => return c.is_whitespace(),
            _ => {}
        }
        false
    });
    words.filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests;
