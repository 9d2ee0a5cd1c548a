//! Recognises the client of a container engine that works for a container: `docker run`, `podman exec`.
//!
//! Such a client is one half of a server, and the container is the other half. Signals reach the client alone: it
//! ends, and the container lives on. So a client is never signalled. A command line that is not understood counts
//! as that of such a client.

use super::{
    known_programs::EXEMPT,
    program::{command_name, option_value, skip_options, words},
    runner::{container_options, container_variables, is_interactive},
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

/// What is known of the container that a process is the client of; `None` for any other process.
pub fn container_client(image: &Image) -> Option<Container> {
    let words = words(image);
    let (head, args) = without_interpreter(&words).split_first()?;
    let known = |name: &str| CLIENTS.iter().find(|(client, _)| *client == name).map(|(_, engine)| *engine);
    let engine = known(command_name(head)).or_else(|| known(base(without_deleted(&image.exe))))?;
    let (_, rest) = container_options(args);
    let rest = rest.strip_prefix(&["container"]).unwrap_or(rest);
    let unknown = || describe(engine, None, None, false);
    match rest {
        // The gateway is a program of its own. It starts its containers by clients below it.
        ["mcp", ..] => None,
        ["run", run @ ..] => {
            let (options, rest) = container_options(run);
            let name = option_value(options, &["--name"]);
            Some(describe(engine, name, rest.first().copied(), true))
        }
        ["start", start @ ..] => {
            Some(describe(engine, skip_options(start, START_VALUED).first().copied(), None, true))
        }
        // The container was there before, and others use it.
        ["attach", attach @ ..] => {
            Some(describe(engine, skip_options(attach, START_VALUED).first().copied(), None, false))
        }
        ["exec", exec @ ..] => {
            Some(describe(engine, container_options(exec).1.first().copied(), None, false))
        }
        [] if image.argv_truncated => Some(unknown()),
        // `docker compose -f FILE run SERVICE`, and options that are not known.
        _ => args.iter().any(|word| ATTACHED.contains(word)).then(unknown),
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
    let (_, rest) = container_options(words.get(1..)?);
    let rest = rest.strip_prefix(&["container"]).unwrap_or(rest);
    let feeds = match rest {
        ["run", run @ ..] => is_interactive(container_options(run).0),
        ["start", start @ ..] => {
            let operands = skip_options(start, START_VALUED);
            let options = start.get(..start.len() - operands.len()).unwrap_or_default();
            options.iter().any(feeds_started) && matches!(operands, [id] if is_id(id))
        }
        _ => false,
    };
    feeds.then(|| container_client(image)).flatten()
}

/// Whether this option of `start` passes the standard input on.
fn feeds_started(option: &&str) -> bool {
    match option.strip_prefix("--") {
        Some(long) => matches!(long, "interactive" | "interactive=true"),
        None => option.strip_prefix('-').is_some_and(|letters| matches!(letters, "i" | "ai" | "ia")),
    }
}

/// Whether a word is the whole id of a container.
fn is_id(word: &str) -> bool {
    word.len() == 64 && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// What the client of a container (`run`, `exec`) hands on to it in this environment variable: an entry for each option
/// that names the variable, without a value where it hands its own on.
pub fn handed_on_by_client(image: &Image, variable: &str) -> Vec<Option<String>> {
    let words = words(image);
    if container_client(image).is_none() {
        return Vec::new();
    }
    let (_, rest) = container_options(words.get(1..).unwrap_or_default());
    let rest = rest.strip_prefix(&["container"]).unwrap_or(rest);
    let ["run" | "exec", options @ ..] = rest else { return Vec::new() };
    let named = container_variables(container_options(options).0).into_iter();
    named
        .filter_map(|word| match word.split_once('=') {
            Some((name, value)) => (name == variable).then(|| Some(value.to_owned())),
            None => (word == variable).then_some(None),
        })
        .collect()
}

/// The container, with the command that a person can run. `own`: the container was started by the client.
/// Only plain names become part of the command, because somebody else may have chosen them.
fn describe(engine: &str, name: Option<&str>, image: Option<&str>, own: bool) -> Container {
    let name = name.filter(|name| is_plain(name, "_.-"));
    let image = image.filter(|image| is_plain(image, "_.-/:@"));
    let id = name.filter(|name| is_id(name));
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
        server: None,
        command,
        memory_bytes: None,
        setting: None,
    }
}

/// Whether a text begins with a letter or digit and has only letters, digits and these signs.
fn is_plain(text: &str, signs: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.len() <= 255
        && text.chars().all(|c| c.is_ascii_alphanumeric() || signs.contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(line: &str) -> Option<Container> {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let exe = format!("/usr/bin/{}", argv[0]);
        container_client(&Image { exe, argv, argv_truncated: false })
    }

    fn command(line: &str) -> Option<String> {
        client(line).map(|container| container.command)
    }

    #[test]
    fn clients_and_what_a_person_can_run() {
        for (line, expected) in [
            ("docker run -i --rm mcp/fetch", "docker ps --filter ancestor=mcp/fetch"),
            ("docker run -i --rm --name box -e A=1 mcp/fetch --x", "docker stop box"),
            ("docker run -i --name=box localhost:5000/x:1@sha256:ab", "docker stop box"),
            ("docker --context c container run -i img", "docker ps --filter ancestor=img"),
            ("podman run -i --rm docker.io/mcp/time", "podman ps --filter ancestor=docker.io/mcp/time"),
            ("podman --remote run -i mcp/time", "podman ps"),
            ("nerdctl run -i mcp/time", "nerdctl ps --filter ancestor=mcp/time"),
            ("docker exec -i box mcp-server-foo", "docker top box"),
            ("docker exec -i -w /app box node x.js", "docker top box"),
            ("docker attach --detach-keys x box", "docker top box"),
            ("docker start -ai box", "docker stop box"),
            ("docker start -a box", "docker stop box"),
            ("docker start -ai box other", "docker stop box"),
            ("docker compose -f a.yml run --rm svc", "docker ps"),
            ("docker-compose compose run svc", "docker ps"),
            ("docker compose run -T --rm svc", "docker ps"),
            ("docker-compose run -T svc", "docker ps"),
            ("python3 /usr/bin/docker-compose -f a.yml run -T svc", "docker ps"),
            ("python3.11 -I /usr/bin/podman-compose run -T svc", "podman ps"),
            ("podman-compose run -T svc", "podman ps"),
            ("podman compose run -T svc", "podman ps"),
            ("docker run -i --name $(reboot) ;reboot", "docker ps"),
        ] {
            assert_eq!(command(line).as_deref(), Some(expected), "{line}");
        }
        let known = client("docker run -i --rm --name box mcp/fetch").unwrap();
        assert_eq!((known.name.as_deref(), known.image.as_deref()), (Some("box"), Some("mcp/fetch")));
    }

    #[test]
    fn a_container_that_was_made_before() {
        let id = "0a".repeat(32);
        let started = |line: &str| {
            let argv = line.split(' ').map(str::to_owned).collect();
            let image = Image { exe: "/usr/bin/docker".to_owned(), argv, argv_truncated: false };
            started_container(&image)
        };
        for line in ["docker start --attach --interactive ID", "docker --host h container start -ai ID"] {
            let known = started(&line.replace("ID", &id)).unwrap();
            assert_eq!((known.id.as_ref(), known.name), (Some(&id), None), "{line}");
            assert_eq!(known.command, "docker stop 0a0a0a0a0a0a");
        }
        let guest = client(&format!("docker exec -i {id} sh")).unwrap();
        assert_eq!((guest.id.as_ref(), guest.name), (Some(&id), None));
        assert_eq!(guest.command, "docker top 0a0a0a0a0a0a");
        // No standard input; a name; a part of an id; two containers; containers that were started before.
        for line in [
            "docker start --attach ID",
            "docker start -ai box",
            "docker start -ai 0a0a0a0a0a0a",
            "docker start -i ID ID",
            "docker start -i",
            "docker attach ID",
            "docker exec -i ID sh",
        ] {
            assert_eq!(started(&line.replace("ID", &id)), None, "{line}");
        }
    }

    #[test]
    fn what_works_through_another_client() {
        let through = |line: &str| {
            let argv = line.split(' ').map(str::to_owned).collect();
            works_through_client(&Image {
                exe: "/usr/bin/python3.11".to_owned(),
                argv,
                argv_truncated: false,
            })
        };
        assert!(through("/usr/bin/python3 /usr/bin/docker-compose -f a.yml run --rm -T svc"));
        assert!(through("python3 /usr/bin/podman-compose run -T svc"));
        for line in [
            "python3 /usr/bin/docker-compose exec -T svc sh",
            "docker run -i img",
            "docker compose run svc",
            "python3 run.py docker-compose run",
        ] {
            assert!(!through(line), "{line}");
        }
    }

    #[test]
    fn what_is_handed_on_in_a_variable() {
        let of = |line: &str| {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            handed_on_by_client(&Image { exe: argv[0].clone(), argv, argv_truncated: false }, "S")
        };
        let a = || Some("a".to_owned());
        for line in [
            "docker run -i -e S=a img",
            "docker run --rm -ie S=a img",
            "docker run -eS=a -i img",
            "docker run -i --env=S=a -e T=b img",
            "docker --context c container run -i --env S=a img -e S=c",
            "podman exec -i -e S=a box server",
        ] {
            assert_eq!(of(line), [a()], "{line}");
        }
        assert_eq!(of("docker run -i -e S img"), [None]);
        assert_eq!(of("docker run -i -e S=a -e S img"), [a(), None]);
        assert_eq!(of("docker run -i -e S=a=b img"), [Some("a=b".to_owned())]);
        for line in [
            "docker run -i img -e S=a",
            "docker run -i --label -e -v S=a img",
            "docker run -i -e SS=a img",
            "docker run -i -e s=a img",
            "docker start -e S=a box",
            "node run -e S=a img",
        ] {
            assert_eq!(of(line), [], "{line}");
        }
    }

    #[test]
    fn other_commands_and_programs() {
        for line in [
            "docker build -t mcp/foo .",
            "docker pull mcp/foo",
            "docker logs -f box",
            "docker mcp gateway run",
            "docker",
            "dockerd run",
            "docker-compose ps",
            "python3 podman-compose ps",
            "python3 run.py docker-compose run svc",
            "node /usr/bin/docker-compose run svc",
            "node docker.js run",
            "grep docker run",
        ] {
            assert_eq!(client(line), None, "{line}");
        }
    }

    #[test]
    fn what_works_for_podman_itself() {
        let works = |line: &str| {
            let argv = line.split(' ').map(str::to_owned).collect();
            works_for_podman(&Image { exe: "/usr/bin/podman".to_owned(), argv, argv_truncated: false })
        };
        assert!(works("/usr/bin/podman --log-level=info system service"));
        assert!(works("/usr/bin/podman --root /x --runtime runc container cleanup --rm 0a0a"));
        for line in ["podman run -i service", "podman exec -i box cleanup", "docker system service", "podman"]
        {
            assert!(!works(line), "{line}");
        }
    }

    #[test]
    fn a_name_or_a_file_tells_the_client() {
        let image = |exe: &str, argv: &[&str], argv_truncated| Image {
            exe: exe.to_owned(),
            argv: argv.iter().map(ToString::to_string).collect(),
            argv_truncated,
        };
        assert!(container_client(&image("/usr/bin/docker", &["mcp", "run", "-i", "x"], false)).is_some());
        assert!(container_client(&image("/opt/docker (deleted)", &["x", "run", "x"], false)).is_some());
        assert!(container_client(&image("/usr/bin/docker", &["docker"], true)).is_some());
        assert!(container_client(&image("", &[], false)).is_none());
    }
}
