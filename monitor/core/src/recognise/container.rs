//! The command lines of container clients: the program of `docker run -i IMAGE` and `docker exec -i BOX COMMAND`, and
//! which container a client works for.
//!
//! Such a client is one half of a server, and the container is the other half. Signals reach the client alone: it
//! ends, and the container lives on. So a client is never signalled. A command line that is not understood counts
//! as that of such a client.

use super::{
    carriers::option_value,
    known_programs::EXEMPT,
    program::{Carrier, Program, command_name, words},
    text::{base, without_deleted},
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
    options: &'w [&'w str],
    operands: &'w [&'w str],
}

impl<'w> Command<'w> {
    /// The command in the arguments of a client; its verb is empty if there is none.
    fn parse(args: &'w [&'w str]) -> Self {
        let (_, rest) = split_options(args, takes_next);
        let words = rest.strip_prefix(&["container"]).unwrap_or(rest);
        let (verb, rest) = words.split_first().map_or(("", words), |(verb, rest)| (*verb, rest));
        let of_start = |option: &str| START_VALUED.contains(&option);
        let is_start = matches!(verb, "start" | "attach");
        let (options, operands) =
            if is_start { split_options(rest, of_start) } else { split_options(rest, takes_next) };
        Self { words, verb, options, operands }
    }

    /// Whether it hands its standard input on. Without that the container has none.
    fn is_interactive(&self) -> bool {
        let is_flag = |letter: &char| LETTERS.contains(*letter) || (self.verb == "start" && *letter == 'a');
        self.options.iter().any(|option| match option.strip_prefix("--") {
            Some(long) => matches!(long, "interactive" | "interactive=true"),
            None => {
                option.strip_prefix('-').is_some_and(|all| all.chars().take_while(is_flag).any(|l| l == 'i'))
            }
        })
    }
}

/// Splits the leading options from the rest. `takes_next`: whether the value of an option is the next word.
fn split_options<'w>(
    args: &'w [&'w str],
    takes_next: impl Fn(&str) -> bool,
) -> (&'w [&'w str], &'w [&'w str]) {
    let mut rest = args;
    while let [word, behind @ ..] = rest
        && word.starts_with('-')
        && word.len() > 1
    {
        rest = if takes_next(word) { behind.get(1..).unwrap_or_default() } else { behind };
        if *word == "--" {
            break;
        }
    }
    (args.get(..args.len() - rest.len()).unwrap_or_default(), rest)
}

/// Whether the value of this option of `run` or `exec` is the next word.
fn takes_next(option: &str) -> bool {
    if let Some(long) = option.strip_prefix("--") {
        return !long.is_empty() && !long.contains('=') && !FLAGS.contains(&option);
    }
    // `-it`, `-eNAME=value`, `-ie NAME`: it is if the first letter that takes one is the last.
    let valued = option.trim_start_matches('-').trim_start_matches(|letter| LETTERS.contains(letter));
    valued.chars().count() == 1
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
    let engine = known(command_name(head)).or_else(|| known(base(without_deleted(&image.exe))))?;
    let Command { words, verb, options, operands } = Command::parse(args);
    let first = operands.first().copied();
    match verb {
        // The gateway is a program of its own. It starts its containers by clients below it.
        "mcp" => None,
        "run" => Some(describe(engine, option_value(options, &["--name"]), first, true)),
        "start" => Some(describe(engine, first, None, true)),
        // The container was there before, and others use it.
        "attach" | "exec" => Some(describe(engine, first, None, false)),
        // `docker compose -f FILE run SERVICE`, and options that are not known.
        _ => {
            let is_attached = args.iter().any(|word| ATTACHED.contains(word));
            let is_cut = words.is_empty() && image.argv_truncated;
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
    EXEMPT.contains(&base(without_deleted(&image.exe)))
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
    let mut rest = command.options;
    if container_client(image).is_none() || !matches!(command.verb, "run" | "exec") {
        rest = &[];
    }
    let mut found = Vec::new();
    while let [word, behind @ ..] = rest {
        let value = match word.strip_prefix("--") {
            Some("env") => behind.first().copied(),
            Some(long) => long.strip_prefix("env="),
            None => {
                let letters =
                    word.trim_start_matches('-').trim_start_matches(|letter| LETTERS.contains(letter));
                match letters.strip_prefix('e') {
                    Some("") => behind.first().copied(),
                    own => own.map(|own| own.strip_prefix('=').unwrap_or(own)),
                }
            }
        };
        match value.map(|value| value.split_once('=').map_or((value, None), |(name, own)| (name, Some(own))))
        {
            Some((name, own)) if name == variable => found.push(own.map(str::to_owned)),
            _ => {}
        }
        rest = if takes_next(word) { behind.get(1..).unwrap_or_default() } else { behind };
    }
    found
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
