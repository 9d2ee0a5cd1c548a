//! What a process is there for: a shell that takes a person's commands, a debugger, a browser, what opens something for a
//! person, a program that was told to serve others over the network, one of Python's fork servers.
//!
//! Fork servers (`multiprocessing`, its default on Linux from Python 3.14 on): a program that starts its workers
//! through one calls it by short connections to a named unix socket, which leave no trace of who called.
//! The name is random, in a private directory, and only the program and its workers know it. Each of these has the write
//! end of a pipe that the fork server reads (the fork server ends with the last of them), and hands it over with every
//! call. So whoever has that end is who may use the fork server, instead of whoever may have connected.

use super::{
    carriers::Row,
    known_programs::{BROWSERS, DEBUGGERS, OPENERS, SHELLS, SPAWN_HELPERS, SPAWN_SERVERS, contains},
    program::{Carrier, command_name, words},
    text::{base, exe_name, without_deleted},
};
use crate::model::{Image, redact};

pub fn is_browser(name: &str) -> bool {
    contains(BROWSERS, name)
}

/// Whether somebody chose this port: who looks for a free one is given one of those that the system gives out (ip(7),
/// `ip_local_port_range`).
pub fn is_chosen(port: u16) -> bool {
    const FIRST_DRAWN: u16 = 32768;
    (1..FIRST_DRAWN).contains(&port)
}

/// Whether it is a browser at a port that somebody chose, whom others ask there, too (`--remote-debugging-port=9222`).
pub fn is_at_a_chosen_port(image: &Image) -> bool {
    image.argv.iter().enumerate().any(|(at, word)| {
        let next = image.argv.get(at + 1).map(String::as_str);
        let value = word.strip_prefix("--remote-debugging-port");
        let port = value.and_then(|value| value.strip_prefix('=').or(next));
        port.is_some_and(|port| port.parse().is_ok_and(is_chosen))
    })
}

/// Whether a browser is told that a program will drive it (by `DevTools`, `WebDriver` or Playwright). A command line that was cut may
/// say so.
pub fn is_told_to_be_driven(image: &Image) -> bool {
    const OPTIONS: [&str; 6] =
        ["enable-automation", "headless", "inspector-pipe", "juggler", "marionette", "remote-debugging-"];
    let options = image.argv.iter().filter(|word| word.starts_with('-'));
    let mut options = options.map(|word| word.trim_start_matches('-'));
    image.argv_truncated || options.any(|word| OPTIONS.iter().any(|option| word.starts_with(option)))
}

/// Whether a runtime starts other programs by it.
pub fn is_spawn_helper(image: &Image) -> bool {
    contains(SPAWN_HELPERS, exe_name(image))
}

/// Whether it starts programs for others, on wires that these have made: whoever holds the other ends is their owner.
pub fn is_spawn_server(image: &Image) -> bool {
    contains(SPAWN_SERVERS, exe_name(image))
}

/// Whether it opens a file or an address for a person, in whatever program the desktop has for it.
pub fn is_opener(image: &Image) -> bool {
    let opens = |word: &String| contains(OPENERS, base(word));
    match &*image.argv {
        [head, ..] if opens(head) => true,
        // Most are shell scripts.
        [head, second, ..] => {
            contains(SHELLS, base(head)) && opens(second) || base(head) == "gio" && second == "open"
        }
        _ => false,
    }
}

/// Whether it has what it runs in its place ignore SIGHUP: nohup(1), that of busybox as well.
pub fn is_nohup(image: &Image) -> bool {
    image.argv.iter().take(2).any(|word| base(word) == "nohup")
}

/// Whether it is a shell without a command and without a script: it waits for what a person types, or for a program that it
/// started. Some shells work commands off themselves.
pub fn is_shell_of_a_person(image: &Image) -> bool {
    const WORKING_THEMSELVES: [&str; 4] = ["elvish", "nu", "pwsh", "xonsh"];
    let words = words(image);
    let [head, args @ ..] = &*words else { return false };
    let name = command_name(head);
    let is_free_shell = |row: &Row| row.carrier == Carrier::Shell && row.has_no_program(args);
    !image.argv_truncated
        && !WORKING_THEMSELVES.contains(&name)
        && Row::named(name).is_some_and(is_free_shell)
}

/// Whether the program, or the script that it runs, is named like a debugger, or lies in a folder of one (`debugpy/adapter`).
pub fn is_debugger(image: &Image) -> bool {
    let names =
        [without_deleted(&image.exe)].into_iter().chain(image.argv.iter().take(4).map(String::as_str));
    let ends = names.flat_map(|name| name.rsplit('/').take(2));
    let mut parts = ends.flat_map(|end| end.split(|c: char| !c.is_ascii_alphanumeric()));
    parts.any(|part| DEBUGGERS.iter().any(|debugger| part.eq_ignore_ascii_case(debugger)))
}

/// The transports of the protocol that are no standard streams, as options call them.
#[rustfmt::skip]
const TRANSPORTS: &[&str] = &[
    "http", "http-stream", "http_stream", "httpstream", "shttp", "sse", "streamable", "streamable-http", "streamable_http",
    "streamablehttp", "streaming", "websocket", "ws",
];

/// Whether the command line names a transport other than the standard streams, or a port or an address: `--transport sse`,
/// `--http`, `--enable-http`, `streamableHttp`, `--port 8931`, `-p 8931`, `--listen :8931`, `--socket PATH`. Then somebody knows where to find it. A command
/// line that was cut may.
///
/// A port may be that of a database, and a transport may be that of the server at its other side. So this alone proves
/// nothing; it matters only for a program that listens. The port of ssh(1) is that of the other host; what it forwards is its own.
pub fn is_told_to_serve(image: &Image) -> bool {
    let arguments = image.argv.get(1..).unwrap_or_default();
    let is_number = |word: &String| word.parse::<u16>().is_ok();
    let short = || match exe_name(image) {
        "ssh" => arguments.iter().any(|word| ["-D", "-L", "-R"].iter().any(|own| word.starts_with(own))),
        _ => arguments.windows(2).any(|pair| matches!(pair, [p, port] if p == "-p" && is_number(port))),
    };
    image.argv_truncated || arguments.iter().any(|word| names_service(word)) || short()
}

/// Whether an entry of an environment names such a transport (`MCP_TRANSPORT=streamable-http`, `MCP_MODE=http`) or turns it on
/// (`SSE=true`, `ENABLE_HTTP=1`), or listeners that somebody else made and handed on (`LISTEN_FDS` of systemd, and those of `Server::Starter` and Einhorn).
pub fn entry_names_service(entry: &[u8]) -> bool {
    let entry = std::str::from_utf8(entry).ok().and_then(|entry| entry.split_once('='));
    entry.is_some_and(|(name, value)| {
        let name = name.to_ascii_uppercase();
        let is_handed = ["LISTEN_FDS", "SERVER_STARTER_PORT", "EINHORN_FD_COUNT"].contains(&name.as_str());
        let is_turned_on = || {
            let is_on = ["1", "on", "true", "yes"].contains(&value.to_ascii_lowercase().as_str());
            is_on && name.split('_').any(|word| ["HTTP", "SSE", "STREAMABLE", "WEBSOCKET"].contains(&word))
        };
        is_handed
            || ((name.contains("TRANSPORT") || name.contains("MODE")) && is_transport(value))
            || is_turned_on()
    })
}

/// The port that an entry of an environment names: `PORT=8931`, `MCP_PORT=8931`, `HTTP_ADDR=:8931`. It may be that of another
/// service: it matters for who listens there.
pub fn entry_names_port(entry: &[u8]) -> Option<u16> {
    let (name, value) = std::str::from_utf8(entry).ok()?.split_once('=')?;
    let name = name.to_ascii_uppercase();
    let is_place = ["PORT", "ADDR", "ADDRESS", "BIND", "LISTEN"].iter().any(|end| name.ends_with(end));
    is_place.then(|| value.rsplit(':').next()?.parse().ok())?
}

fn is_transport(name: &str) -> bool {
    TRANSPORTS.contains(&name.to_ascii_lowercase().as_str())
}

fn names_service(word: &str) -> bool {
    const PLACES: [&str; 9] = ["addr", "address", "bind", "fd", "listen", "port", "sock", "socket", "uds"];
    const SWITCHES: [&str; 6] = ["enable", "mode", "serve", "server", "use", "with"];
    let Some(option) = word.strip_prefix('-') else { return is_transport(word) };
    let (name, value) = option.trim_start_matches('-').split_once('=').unwrap_or((option, ""));
    let name = name.trim_start_matches('-');
    let lower = name.to_ascii_lowercase();
    let mut words = lower.split(['-', '_']);
    let is_place = name.ends_with("Port") || words.next_back().is_some_and(|last| PLACES.contains(&last));
    let is_switch = |word: &str| SWITCHES.contains(&word);
    let turns_on = lower.split('-').any(is_transport)
        && lower.split('-').all(|word| is_transport(word) || is_switch(word));
    is_place || is_transport(name) || is_transport(value) || turns_on
}

/// The descriptor of the listener of a fork server; `None` if this program is none.
pub fn fork_server_listener(image: &Image) -> Option<u32> {
    let at = image.argv.iter().position(|argument| argument == "-c")?;
    let mut numbers = image.argv.get(at + 1)?.strip_prefix(redact::FORK_SERVER)?.split(", ").map(str::parse);
    // The second one is that of the pipe.
    let (listener, pipe) = (numbers.next()?.ok()?, numbers.next()?);
    pipe.ok().map(|_| listener).filter(|pipe: &u32| *pipe > 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(line: &str) -> Image {
        let argv: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Image { exe: argv.first().cloned().unwrap_or_default(), argv, argv_truncated: false }
    }

    #[test]
    fn a_shell_that_waits_for_a_person() {
        for line in ["bash", "-bash", "/bin/zsh -l", "sh -i", "bash --init-file /x/y.sh", "bash --norc"] {
            assert!(is_shell_of_a_person(&image(line)), "{line}");
        }
        for line in [
            "bash -c x",
            "bash -lc x",
            "sh script.sh",
            "fish --command x",
            "python3",
            "",
            "bash -- script",
            "pwsh",
        ] {
            assert!(!is_shell_of_a_person(&image(line)), "{line}");
        }
    }

    #[test]
    fn a_browser_at_a_port_that_somebody_chose() {
        for (line, is_chosen) in [
            ("chrome --remote-debugging-port=9222", true),
            ("firefox --remote-debugging-port 9222 -P me", true),
            ("chrome --remote-debugging-port=0", false),
            ("chrome --remote-debugging-port=41357", false),
            ("chrome --remote-debugging-pipe", false),
            ("chrome --remote-debugging-port", false),
        ] {
            assert_eq!(is_at_a_chosen_port(&image(line)), is_chosen, "{line}");
        }
    }

    #[test]
    fn what_opens_something_for_a_person() {
        for line in ["xdg-open http://x", "/bin/sh /usr/bin/xdg-open /x.pdf", "gio open /x.odt"] {
            assert!(is_opener(&image(line)), "{line}");
        }
        for line in ["gio mount /x", "bash -c xdg-open", "open", "", "python3 xdg-open", "x xdg-open"] {
            assert!(!is_opener(&image(line)), "{line}");
        }
    }

    #[test]
    fn what_is_named_like_a_debugger() {
        for line in [
            "gdb -p 1",
            "/usr/bin/lldb-server gdbserver",
            "python3 /x/mcp-server-lldb",
            "npx -y gdb-mcp",
            "python3 /x/site-packages/debugpy/adapter --for-server 1",
            "dlv",
        ] {
            assert!(is_debugger(&image(line)), "{line}");
        }
        for line in ["node server.js", "mcp-server-git", "python3 -m my_mcp_server", ""] {
            assert!(!is_debugger(&image(line)), "{line}");
        }
    }

    #[test]
    fn what_was_told_to_serve_by_its_environment() {
        for (entry, is_told) in [
            ("MCP_TRANSPORT=streamable-http", true),
            ("TRANSPORT=SSE", true),
            ("FASTMCP_TRANSPORT_TYPE=http", true),
            ("MCP_MODE=http", true),
            ("MCP_SERVER_MODE=sse", true),
            ("LISTEN_FDS=1", true),
            ("LISTEN_FDNAMES=web", false),
            ("SERVER_STARTER_PORT=127.0.0.1:80=3", true),
            ("EINHORN_FD_COUNT=1", true),
            ("MCP_TRANSPORT=stdio", false),
            ("NODE_MODE=production", false),
            ("TRANSPORT=", false),
            ("STREAMABLE_HTTP=true", true),
            ("SSE=1", true),
            ("ENABLE_UNSAFE_SSE_TRANSPORT=yes", true),
            ("SSE=false", false),
            ("HTTP_PROXY=http://proxy:3128", false),
            ("HTTPS=true", false),
            ("PORT=8000", false),
            ("LANG=http", false),
            ("TRANSPORT", false),
        ] {
            assert_eq!(entry_names_service(entry.as_bytes()), is_told, "{entry}");
        }
        assert!(!entry_names_service(b"TRANSPORT=\xff"));
        for (entry, port) in [
            ("MCP_PORT=8931", Some(8931)),
            ("HTTP_ADDR=:8931", Some(8931)),
            ("BIND=[::1]:8931", Some(8931)),
            ("MCP_LISTEN=0.0.0.0:8931", Some(8931)),
            ("LISTEN=yes", None),
            ("URL=http://host:8931", None),
        ] {
            assert_eq!(entry_names_port(entry.as_bytes()), port, "{entry}");
        }
    }

    #[test]
    fn what_was_told_to_serve() {
        for line in [
            "node /usr/bin/mcp-server-playwright --port 8931",
            "npx -y @playwright/mcp@latest --port=8931",
            "node server-everything/dist/index.js streamableHttp",
            "node server-everything/dist/index.js sse",
            "python3 /venv/bin/fastmcp run server.py --transport http",
            "fastmcp run server.py -t sse",
            "python3 -m my_mcp_server --transport=streamable-http",
            "supergateway --stdio x --outputTransport streamableHttp",
            "mcp-proxy --sse-port 8000 -- npx x",
            "toolbox --http",
            "docker mcp gateway run --transport streaming",
            "server --httpPort 3000",
            "server --listen 127.0.0.1:3000",
            "uvicorn my_mcp:app --fd 3",
            "uvicorn my_mcp:app --uds /run/my-mcp.sock",
            "server --socket /run/my-mcp.sock",
            "server --unix-socket=/run/my-mcp.sock",
            "server --enable-http",
            "server --http-server",
            "mcp-x -sse-address :3000",
            "server -p 3000",
            "ssh -L 8080:localhost:80 host mcp-server-x",
            "ssh -D1080 host mcp-server-x",
        ] {
            assert!(is_told_to_serve(&image(line)), "{line}");
        }
        let cut = Image { argv_truncated: true, ..image("docker run") };
        assert!(is_told_to_serve(&cut));
    }

    #[test]
    fn what_was_not() {
        for line in [
            "",
            "http",
            "npx -y @modelcontextprotocol/server-filesystem /home/me/port",
            "node server-everything/dist/index.js stdio",
            "mcp-server-x --transport stdio",
            "mcp-remote https://example.com/sse 3334 --transport http-only",
            "server --import x --export y --support z --report",
            "server -p me",
            "ssh -p 2222 -o ControlMaster=auto host mcp-server-x",
            "mcp-remote https://example.com/sse --allow-http --http-timeout 5",
        ] {
            assert!(!is_told_to_serve(&image(line)), "{line}");
        }
    }

    #[test]
    fn the_program_says_which_descriptor() {
        let image = |argv: &[&str]| Image {
            argv: argv.iter().map(|&argument| argument.to_owned()).collect(),
            ..Image::default()
        };
        for (code, number) in [
            ("from multiprocessing.forkserver import main; main(5, 6, ['__main__'], **{})", Some(5)),
            ("from multiprocessing.forkserver import main; main(17, 20, [], **{'a': 1})", Some(17)),
            ("from multiprocessing.forkserver import main; main(x, 6, [])", None),
            ("from multiprocessing.forkserver import main; main(5", None),
            ("print('from multiprocessing.forkserver import main; main(5, 6, [])')", None),
        ] {
            assert_eq!(
                fork_server_listener(&image(&["/usr/bin/python3", "-I", "-c", code])),
                number,
                "{code}"
            );
        }
        assert_eq!(fork_server_listener(&image(&["python3", "-c"])), None);
        assert_eq!(fork_server_listener(&image(&["python3", "server.py"])), None);
    }
}
