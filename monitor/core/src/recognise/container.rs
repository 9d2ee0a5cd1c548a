//! The command lines of container clients: the program of `docker run -i IMAGE` and `docker exec -i BOX COMMAND`, and
//! which container a client works for.
//!
//! Such a client is one half of a server, and the container is the other half. Signals reach the client alone: it
//! ends, and the container lives on. So a client is never signalled. A command line that is not understood counts
//! as that of such a client.

use super::{
    known_programs::EXEMPT,
    program::{Carrier, Program, command_name, words},
    text::{base, exe_name},
};
use crate::model::{Container, Image};

/// Clients, and the engine that each talks to.
const CLIENTS: &[(&str, &str)] = &[
    ("docker", "docker"),
    ("docker-compose", "docker"),
    ("finch", "finch"),
    ("nerdctl", "nerdctl"),
    ("podman", "podman"),
    ("podman-compose", "podman"),
    ("podman-remote", "podman"),
];

/// Clients that are Python scripts.
const SCRIPTS: &[&str] = &["docker-compose", "podman-compose"];

/// Commands during which the client passes the streams of a container on.
const ATTACHED: &[&str] = &["attach", "exec", "run", "start", "up"];

/// The options of `start` and `attach` that take a value.
const START_VALUED: &[&str] = &["--checkpoint", "--checkpoint-dir", "--detach-keys"];

/// Options of `run` and `exec` that take no value; all others take one.
#[rustfmt::skip]
const FLAGS: &[&str] = &[
    "--rm", "--init", "--interactive", "--tty", "--detach", "--privileged", "--read-only", "--no-healthcheck",
    "--publish-all", "--quiet", "--sig-proxy", "--oom-kill-disable", "--disable-content-trust", "--replace", "--no-hosts",
    "--rmi", "--tls-verify", "--env-host", "--http-proxy", "--systemd", "--use-api-socket", "--debug", "--tls", "--tlsverify",
    "--help", "--version",
];
/// Short options of both that take no value.
const LETTERS: &str = "itdPqD";

/// A command of a client: `docker --context c container run -i IMAGE x`.
struct Command<'w> {
    /// From the verb on.
    words: &'w [&'w str],
    verb: &'w str,
    options: Options<'w>,
    operands: &'w [&'w str],
}

/// Options without their dashes, each with its value if it has one.
type Options<'w> = Vec<(&'w str, Option<&'w str>)>;

impl<'w> Command<'w> {
    /// The command in the arguments of a client; its verb is empty if there is none.
    fn parse(args: &'w [&'w str]) -> Self {
        let (_, rest) = leading_options(args, false);
        let words = rest.strip_prefix(&["container"]).unwrap_or(rest);
        let (verb, rest) = words.split_first().map_or(("", words), |(verb, rest)| (*verb, rest));
        let (options, operands) = leading_options(rest, matches!(verb, "start" | "attach"));
        Self { words, verb, options, operands }
    }

    /// Whether it hands its standard input on. Without that the container has none.
    fn is_interactive(&self) -> bool {
        let is_it = |option: &(&str, Option<&str>)| {
            matches!(option, ("i" | "interactive", None) | ("interactive", Some("true")))
        };
        self.options.iter().any(is_it)
    }

    fn values(&self, names: &[&str]) -> impl Iterator<Item = &'w str> {
        self.options.iter().filter(|(name, _)| names.contains(name)).filter_map(|(_, value)| *value)
    }
}

/// Splits the leading options from the rest. `of_start`: they are those of `start` or `attach`, few of which take a value.
fn leading_options<'w>(args: &'w [&'w str], of_start: bool) -> (Options<'w>, &'w [&'w str]) {
    let (mut found, mut rest) = (Options::new(), args);
    while let [word, behind @ ..] = rest
        && word.starts_with('-')
        && word.len() > 1
    {
        rest = behind;
        let (name, value) = match word.strip_prefix("--") {
            Some("") => break,
            Some(long) => long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value))),
            // `-it`, `-eNAME=value`, `-ie NAME`: the first letter that takes a value is the last.
            None => {
                let letters = word.trim_start_matches('-');
                let is_flag = |letter: char| LETTERS.contains(letter) || (of_start && letter == 'a');
                let last = letters.trim_start_matches(is_flag);
                let flags = letters.strip_suffix(last).unwrap_or_default();
                found.extend(flags.contains('i').then_some(("i", None)));
                let (name, value) = last.split_at(last.chars().next().map_or(0, char::len_utf8));
                (name, (!value.is_empty()).then(|| value.strip_prefix('=').unwrap_or(value)))
            }
        };
        let is_flag = value.is_some() || name.is_empty() || FLAGS.contains(word);
        if if of_start { START_VALUED.contains(word) } else { !is_flag } {
            found.push((name, rest.first().copied()));
            rest = rest.get(1..).unwrap_or_default();
        } else {
            found.push((name, value));
        }
    }
    (found, rest)
}

/// The program of the client `head`: an image, or what is run in a container.
pub(super) fn program<'w>(head: &'w str, args: &'w [&'w str], depth: u8) -> Program<'w> {
    let command = Command::parse(args);
    match (command.verb, command.operands) {
        ("run", [image, behind @ ..]) if command.is_interactive() => {
            let reference = image.split('@').next().unwrap_or(image);
            // a colon after the last slash begins the tag; a colon before it begins a port
            let tag = reference.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(_, tag)| tag);
            let path =
                tag.and_then(|tag| reference.strip_suffix(tag)?.strip_suffix(':')).unwrap_or(reference);
            Program {
                name: base(path),
                path,
                package: None,
                ..Program::new(Carrier::Container, path, behind)
            }
        }
        ("exec", [_container, line @ ..]) if command.is_interactive() => {
            Program::inner(line, depth).unwrap_or(Program::new(Carrier::Wrapper, head, args))
        }
        ("mcp", _) => Program::new(Carrier::Container, head, command.words),
        _ => Program::new(Carrier::Wrapper, head, args),
    }
}

/// What is known of the container that a process is the client of; `None` for any other process.
pub fn container_client(image: &Image) -> Option<Container> {
    let words = words(image);
    let (head, args) = without_interpreter(&words).split_first()?;
    let known = |name: &str| CLIENTS.iter().find(|(client, _)| *client == name).map(|(_, engine)| *engine);
    let engine = known(command_name(head)).or_else(|| known(exe_name(image)))?;
    let command = Command::parse(args);
    let first = command.operands.first().copied();
    match command.verb {
        // The gateway is a program of its own. It starts its containers by clients below it.
        "mcp" => None,
        "run" => Some(describe(engine, command.values(&["name"]).next(), first, true)),
        "start" => Some(describe(engine, first, None, true)),
        // The container was there before, and others use it.
        "attach" | "exec" => Some(describe(engine, first, None, false)),
        // `docker compose -f FILE run SERVICE`, and options that are not known.
        _ => {
            let is_attached = args.iter().any(|word| ATTACHED.contains(word));
            let is_cut = command.words.is_empty() && image.argv_truncated;
            (is_attached || is_cut).then(|| describe(engine, None, None, false))
        }
    }
}

/// The words from the client on, if that is a Python script.
fn without_interpreter<'w>(words: &'w [&'w str]) -> &'w [&'w str] {
    let [head, args @ ..] = words else { return words };
    let script = args.iter().position(|word| !word.starts_with('-'));
    let script = script.filter(|_| command_name(head).starts_with("python")).and_then(|at| args.get(at..));
    script.filter(|found| found.first().is_some_and(|one| SCRIPTS.contains(&base(one)))).unwrap_or(words)
}

/// Whether a process works for podman itself: it serves podman's interface, or tidies up after a container. It is not
/// attached to a container for anybody.
pub fn works_for_podman(image: &Image) -> bool {
    let words = words(image);
    let is_podman = words.first().is_some_and(|head| command_name(head) == "podman");
    let is_such = |pair: &[&str]| matches!(pair, ["system", "service"] | ["container", "cleanup"]);
    is_podman && words.windows(2).any(is_such)
}

/// Whether a process passes on what a client on another host, or of another user, says to the engine here: nobody tells
/// which container that is about.
pub fn forwards_to_engine(image: &Image) -> bool {
    words(image).windows(2).any(|pair| matches!(pair, ["system", "dial-stdio"]))
}

/// Whether a process is podman's conmon: it holds the streams of a container, and its child is the first process there.
pub fn keeps_container(image: &Image) -> bool {
    EXEMPT.contains(&exe_name(image))
}

/// Whether a process has another client below it that is attached for it: `docker-compose run` starts `docker start`,
/// and `podman-compose run` starts `podman run`.
pub fn works_through_client(image: &Image) -> bool {
    let words = words(image);
    let [head, args @ ..] = without_interpreter(&words) else { return false };
    SCRIPTS.contains(&command_name(head)) && args.contains(&"run")
}

/// What is known of the container that a process started and feeds: `run` or `start` with a standard input. `None` for
/// any other process. A container that was there before is known by its whole id only, as docker-compose gives it:
/// its name may be that of another one by now.
pub fn started_container(image: &Image) -> Option<Container> {
    let words = words(image);
    let command = Command::parse(words.get(1..).unwrap_or_default());
    let is_known = match command.verb {
        "run" => true,
        "start" => matches!(command.operands, [id] if is_container_id(id)),
        _ => false,
    };
    (is_known && command.is_interactive()).then(|| container_client(image)).flatten()
}

/// Whether a word is the whole id of a container.
pub fn is_container_id(word: &str) -> bool {
    word.len() == 64 && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// What the client of a container (`run`, `exec`) hands on to it in this environment variable: an entry for each option
/// that names the variable, without a value where it hands its own on.
pub fn handed_on_by_client(image: &Image, variable: &str) -> Vec<Option<String>> {
    let words = words(image);
    let command = Command::parse(words.get(1..).unwrap_or_default());
    if container_client(image).is_none() || !matches!(command.verb, "run" | "exec") {
        return Vec::new();
    }
    let entries = command.values(&["env", "e"]);
    let entries =
        entries.map(|entry| entry.split_once('=').map_or((entry, None), |(name, own)| (name, Some(own))));
    entries.filter(|(name, _)| *name == variable).map(|(_, own)| own.map(str::to_owned)).collect()
}

/// The container, with the command that a person can run. `own`: the container was started by the client.
/// Only plain names become part of the command, because somebody else may have chosen them.
fn describe(engine: &str, name: Option<&str>, image: Option<&str>, own: bool) -> Container {
    let name = name.filter(|name| is_plain(name, "_.-"));
    let image = image.filter(|image| is_plain(image, "_.-/:@"));
    let id = name.filter(|name| is_container_id(name));
    let short = id.and_then(|id| id.get(..12));
    let command = match (short.or(name), image) {
        (Some(name), _) if own => format!("{engine} stop {name}"),
        (Some(name), _) => format!("{engine} top {name}"),
        (None, Some(image)) => format!("{engine} ps --filter ancestor={image}"),
        (None, None) => format!("{engine} ps"),
    };
    Container {
        engine: engine.to_owned(),
        id: id.map(str::to_owned),
        name: name.filter(|_| id.is_none()).map(str::to_owned),
        image: image.map(str::to_owned),
        command,
        ..Container::default()
    }
}

/// Whether a text begins with a letter or digit and has only letters, digits and these signs.
fn is_plain(text: &str, signs: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.len() <= 255
        && text.chars().all(|c| c.is_ascii_alphanumeric() || signs.contains(c))
}

#[cfg(test)]
mod tests;
