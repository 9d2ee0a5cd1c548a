//! Package runners and container clients: which word names the package, command or image. Used only by
//! [`super::program`] and [`super::interpreter`].

use super::{
    interpreter::{self, Interpreter},
    program::{Carrier, Program, option_value, skip_options},
    text::{base, is_script_file, package_name, unscoped},
};

/// Names of package runners and managers, sorted.
#[rustfmt::skip]
pub(super) const RUNNERS: &[&str] = &[
    "bunx", "corepack", "dnx", "npm", "npx", "pipx", "pnpm", "pnpx", "uv", "uvx", "yarn", "yarnpkg",
];
/// Names of container clients, sorted.
pub(super) const CONTAINER_CLIENTS: &[&str] = &["docker", "nerdctl", "podman"];

#[rustfmt::skip]
const NPM_VALUED: &[&str] = &[
    "-p", "--package", "-c", "--call", "-w", "--workspace", "--prefix", "-C", "--userconfig", "--globalconfig", "--registry",
    "--cache", "--loglevel", "--node-options", "-n", "--node-arg", "--shell", "--script-shell", "--tag", "--before",
];
const PNPM_VALUED: &[&str] = &[
    "-C",
    "--dir",
    "-F",
    "--filter",
    "--filter-prod",
    "--package",
    "--registry",
    "--loglevel",
    "--reporter",
];
const YARN_VALUED: &[&str] =
    &["--cwd", "-p", "--package", "--registry", "--cache-folder", "--modules-folder"];
const BUNX_VALUED: &[&str] = &["-p", "--package", "--cwd"];
/// Options of `dnx` whose value is the next word.
pub(super) const DNX_VALUED: &[&str] =
    &["--version", "--source", "--add-source", "--configfile", "-v", "--verbosity", "--framework"];
#[rustfmt::skip]
const UV_VALUED: &[&str] = &[
    "--from", "--with", "-w", "--with-editable", "--with-requirements", "-p", "--python", "--index", "--index-url", "-i",
    "--default-index", "--extra-index-url", "-f", "--find-links", "--cache-dir", "--directory", "--project", "--config-file",
    "--env-file", "--refresh-package", "-P", "--upgrade-package", "--reinstall-package", "-c", "--constraints",
    "--constraint", "--overrides", "--override", "--excludes", "-b", "--build-constraints", "--build-constraint",
    "--index-strategy", "--keyring-provider", "--resolution", "--prerelease", "--fork-strategy", "--exclude-newer",
    "--exclude-newer-package", "--link-mode", "--no-binary-package", "--no-build-package", "--no-build-isolation-package",
    "--no-sources-package", "-C", "--config-setting", "--config-settings", "--config-settings-package", "--color",
    "--allow-insecure-host", "--trusted-host", "--python-platform", "--torch-backend", "--package", "--extra", "--no-extra",
    "--group", "--no-group", "--only-group", "--python-preference",
];
const PIPX_VALUED: &[&str] =
    &["--spec", "--python", "--pip-args", "-i", "--index-url", "--with", "--backend"];

/// Whether the name is that of a package runner.
pub(super) fn is_runner(name: &str) -> bool {
    RUNNERS.binary_search(&name).is_ok()
}

/// Finds the program that the package runner or container client `name` at the start of `words` runs.
pub(super) fn parse<'w>(name: &str, words: &'w [&'w str], depth: u8) -> Option<Program<'w>> {
    let [head, args @ ..] = words else { return None };
    let itself = Program::new(Carrier::Wrapper, head, args);
    let npm = &["-p", "--package"];
    let program = match name {
        "npx" => package(args, depth, NPM_VALUED, npm),
        "bunx" => package(args, depth, BUNX_VALUED, npm),
        "pnpx" => package(args, depth, PNPM_VALUED, npm),
        "dnx" => package(args, depth, DNX_VALUED, &[]),
        "uvx" => package(args, depth, UV_VALUED, &["--from"]),
        "npm" => match skip_options(args, NPM_VALUED) {
            ["exec" | "x", rest @ ..] => package(rest, depth, NPM_VALUED, npm),
            _ => None,
        },
        "pnpm" => match skip_options(args, PNPM_VALUED) {
            ["dlx", rest @ ..] => package(rest, depth, PNPM_VALUED, &["--package"]),
            ["exec", rest @ ..] => command(skip_options(rest, PNPM_VALUED), depth),
            _ => None,
        },
        "yarn" | "yarnpkg" => match skip_options(args, YARN_VALUED) {
            ["dlx", rest @ ..] => package(rest, depth, YARN_VALUED, npm),
            ["exec", rest @ ..] => command(skip_options(rest, YARN_VALUED), depth),
            _ => None,
        },
        "corepack" => match skip_options(args, &[]) {
            rest @ [manager, ..] if is_runner(manager) => command(rest, depth),
            _ => None,
        },
        "uv" => uv(args, depth),
        "pipx" => match skip_options(args, &[]) {
            ["run", rest @ ..] => package(rest, depth, PIPX_VALUED, &["--spec"]),
            _ => None,
        },
        // only `bun x` is a runner: otherwise bun is an interpreter
        "bun" => match args {
            ["x", rest @ ..] => package(rest, depth, BUNX_VALUED, npm),
            _ => return None,
        },
        _ if CONTAINER_CLIENTS.contains(&name) => return Some(container(words, depth)),
        _ => return None,
    };
    Some(program.unwrap_or(itself))
}

/// Parses `[options] PACKAGE [args]`. If an option names the package, the word is one of its commands.
fn package<'w>(args: &'w [&'w str], depth: u8, valued: &[&str], from: &[&str]) -> Option<Program<'w>> {
    let rest = skip_options(args, valued);
    let options = args.get(..args.len() - rest.len()).unwrap_or_default();
    if option_value(options, &["-c", "--call"]).is_some() && from.contains(&"-p") {
        return None; // a command line for the shell
    }
    let [word, behind @ ..] = rest else { return None };
    let name = unscoped(package_name(word));
    // `npx tsx FILE`, `uvx --from X python -m MODULE`
    if let Some(interpreter) = Interpreter::named(name) {
        let program = interpreter::parse(interpreter, rest, depth + 1);
        return (program.carrier == Carrier::Interpreter)
            .then_some(Program { carrier: Carrier::Runner, ..program });
    }
    let package = package_name(option_value(options, from).unwrap_or(word));
    Some(Program::of_package(package, name, behind))
}

/// Parses a command line within the arguments of a runner.
fn command<'w>(words: &'w [&'w str], depth: u8) -> Option<Program<'w>> {
    if words.is_empty() {
        return None;
    }
    let program = Program::parse(words, depth + 1);
    match program.carrier {
        Carrier::Shell | Carrier::Wrapper => None,
        _ => Some(Program { carrier: Carrier::Runner, ..program }),
    }
}

fn uv<'w>(args: &'w [&'w str], depth: u8) -> Option<Program<'w>> {
    match skip_options(args, UV_VALUED) {
        ["tool", "run" | "uvx", rest @ ..] | ["x", rest @ ..] => package(rest, depth, UV_VALUED, &["--from"]),
        ["run", args @ ..] => {
            let rest = skip_options(args, UV_VALUED);
            let options = args.get(..args.len() - rest.len()).unwrap_or_default();
            let [word, behind @ ..] = rest else { return None };
            if options.iter().any(|o| matches!(*o, "-m" | "--module")) {
                let name = word.split('.').next().unwrap_or(word);
                return Some(Program {
                    module: Some(word),
                    name,
                    package: None,
                    ..Program::new(Carrier::Runner, word, behind)
                });
            }
            // `uv run server.py` runs python, `uv run NAME` a command of the environment
            if is_script_file(word) {
                return Some(Program::new(Carrier::Runner, word, behind));
            }
            command(rest, depth)
        }
        _ => None,
    }
}

/// Options of `docker run` and `docker exec` that take no value; all others take one.
#[rustfmt::skip]
const CONTAINER_FLAGS: &[&str] = &[
    "--rm", "--init", "--interactive", "--tty", "--detach", "--privileged", "--read-only", "--no-healthcheck",
    "--publish-all", "--quiet", "--sig-proxy", "--oom-kill-disable", "--disable-content-trust", "--replace", "--no-hosts",
    "--rmi", "--tls-verify", "--env-host", "--http-proxy", "--systemd", "--use-api-socket", "--debug", "--tls", "--tlsverify",
    "--help", "--version",
];
/// Short options of both that take no value.
const CONTAINER_LETTERS: &str = "itdPqD";

/// Finds the image in `docker [options] run -i .. IMAGE args`. Without `-i` the container has no standard
/// input.
fn container<'w>(words: &'w [&'w str], depth: u8) -> Program<'w> {
    let [head, args @ ..] = words else {
        return Program::new(Carrier::Itself, "", &[]);
    };
    let itself = Program::new(Carrier::Wrapper, head, args);
    let (_, rest) = container_options(args);
    let rest = rest.strip_prefix(&["container"]).unwrap_or(rest);
    match rest {
        ["run", run @ ..] => {
            let (options, rest) = container_options(run);
            match rest {
                [image, behind @ ..] if is_interactive(options) => {
                    let reference = image.split('@').next().unwrap_or(image);
                    // a colon after the last slash begins the tag; a colon before it begins a port
                    let at = reference.rfind('/').map_or(0, |slash| slash + 1);
                    let end = reference
                        .get(at..)
                        .and_then(|b| b.find(':'))
                        .map_or(reference.len(), |colon| at + colon);
                    let path = reference.get(..end).unwrap_or(reference);
                    Program {
                        carrier: Carrier::Container,
                        name: base(path),
                        path,
                        package: None,
                        module: None,
                        args: behind,
                    }
                }
                _ => itself,
            }
        }
        ["exec", exec @ ..] => {
            let (options, rest) = container_options(exec);
            match rest {
                [_container, line @ ..] if is_interactive(options) => command(line, depth).unwrap_or(itself),
                _ => itself,
            }
        }
        ["mcp", ..] => Program::new(Carrier::Container, head, rest),
        _ => itself,
    }
}

/// Splits the leading options from the rest.
pub(super) fn container_options<'w>(args: &'w [&'w str]) -> (&'w [&'w str], &'w [&'w str]) {
    let mut rest = args;
    while let [word, behind @ ..] = rest {
        let Some(letters) = word.strip_prefix('-').filter(|l| !l.is_empty()) else { break };
        if letters == "-" {
            rest = behind;
            break;
        }
        rest = if takes_next(word) { behind.get(1..).unwrap_or_default() } else { behind };
    }
    (args.get(..args.len() - rest.len()).unwrap_or_default(), rest)
}

/// The values of `-e` and `--env` among these options: `NAME=VALUE` or `NAME`.
pub(super) fn container_variables<'w>(options: &'w [&'w str]) -> Vec<&'w str> {
    let mut found = Vec::new();
    let mut rest = options;
    while let [word, behind @ ..] = rest {
        let next = behind.first().copied();
        let value = match word.strip_prefix("--") {
            Some("env") => next,
            Some(long) => long.strip_prefix("env="),
            None => {
                match word.trim_start_matches('-').trim_start_matches(is_container_letter).strip_prefix('e') {
                    Some("") => next,
                    Some(own) => Some(own.strip_prefix('=').unwrap_or(own)),
                    None => None,
                }
            }
        };
        found.extend(value);
        rest = if takes_next(word) { behind.get(1..).unwrap_or_default() } else { behind };
    }
    found
}

fn is_container_letter(letter: char) -> bool {
    CONTAINER_LETTERS.contains(letter)
}

/// Whether the value of this option is the next word.
fn takes_next(option: &str) -> bool {
    if let Some(long) = option.strip_prefix("--") {
        return !long.contains('=') && !CONTAINER_FLAGS.contains(&option);
    }
    // `-it`, `-eNAME=value`, `-ie NAME`: the value is the next word if the first letter that takes one is the last
    let letters = option.trim_start_matches('-');
    letters.find(|letter| !is_container_letter(letter)).is_some_and(|at| at + 1 == letters.len())
}

pub(super) fn is_interactive(options: &[&str]) -> bool {
    options.iter().any(|o| match o.strip_prefix("--") {
        Some(long) => matches!(long, "interactive" | "interactive=true"),
        None => o.strip_prefix('-').is_some_and(|letters| {
            letters.chars().take_while(|c| CONTAINER_LETTERS.contains(*c)).any(|c| c == 'i')
        }),
    })
}
