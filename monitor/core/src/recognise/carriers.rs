//! Programs that run another program: package runners, interpreters, shells. For each of them a row says where in its
//! command line that program stands. [`super::program`] reads the rows; nothing else has to be changed for a new one.
//!
//! What only hands its streams on and need not be read has no row, but a name in [`super::known_programs`].

use super::{
    known_programs::{SHELLS, contains},
    program::Carrier,
    text::is_script_file,
};

/// How to read the command line of a program that runs another one.
#[derive(Debug)]
pub(super) struct Row {
    /// Its names, sorted. One that ends in `*` may have a version behind it: `python3.12`.
    pub(super) names: &'static [&'static str],
    pub(super) carrier: Carrier,
    /// Options whose value is the next word.
    valued: &'static [&'static str],
    /// Options with which it runs no program: code in an argument, tests, versions.
    without: &'static [&'static str],
    /// Options before a module.
    module: &'static [&'static str],
    /// Options that name the package, of which the next word is a command.
    package: &'static [&'static str],
    /// Whether short options may be joined: `-um`.
    joined: bool,
    /// Commands, with alternatives: what follows them.
    commands: &'static [(&'static str, Then)],
    /// What the first word is that is neither an option nor one of the commands.
    then: Then,
    /// Whether agents are written for it: they may run on a terminal.
    pub(super) hosts_agents: bool,
}

/// What follows the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Script,
    /// A script, if it has the extension of one, or a path. Otherwise the name of a task, which runs in another process.
    Path,
    /// A script, if it has the extension of one. Otherwise a command line.
    FileOrLine,
    Module,
    /// A script, or a package after `npm:` or `jsr:`.
    ScriptOrPackage,
    Package,
    Line,
    /// The arguments of the program with this row.
    Like(&'static str),
    /// Something that runs in another process: a task, a build.
    Elsewhere,
    /// No program: an interactive prompt, tests.
    Nothing,
}

/// Where the program is in a command line.
#[derive(Clone, Copy, Debug)]
pub(super) enum Position<'w> {
    Script(&'w [&'w str]),
    Module(&'w str, &'w [&'w str]),
    /// The package, if an option names it; its command, or the package itself, and the arguments.
    Package(Option<&'w str>, &'w [&'w str]),
    /// A package and its arguments.
    Specifier(&'w str, &'w [&'w str]),
    Line(&'w [&'w str]),
    /// In another process.
    Elsewhere,
    /// There is no program.
    Nowhere,
}

const fn row(names: &'static [&'static str], carrier: Carrier, then: Then) -> Row {
    let (valued, without, module, package, commands) = (&[], &[], &[], &[], &[]);
    Row {
        names,
        carrier,
        valued,
        without,
        module,
        package,
        joined: false,
        commands,
        then,
        hosts_agents: false,
    }
}

const fn runner(names: &'static [&'static str], then: Then) -> Row {
    row(names, Carrier::Runner, then)
}

const fn interpreter(names: &'static [&'static str]) -> Row {
    row(names, Carrier::Interpreter, Then::Script)
}

const NPM_PACKAGE: &[&str] = &["-p", "--package"];
#[rustfmt::skip]
const NPM_VALUED: &[&str] = &[
    "-p", "--package", "-c", "--call", "-w", "--workspace", "--prefix", "-C", "--userconfig", "--globalconfig", "--registry",
    "--cache", "--loglevel", "--node-options", "-n", "--node-arg", "--shell", "--script-shell", "--tag", "--before",
];
#[rustfmt::skip]
const PNPM_VALUED: &[&str] = &[
    "-C", "--dir", "-F", "--filter", "--filter-prod", "--package", "--registry", "--loglevel", "--reporter",
];
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

/// Options of shells with which they run no script.
const SHELL_WITHOUT: &[&str] = &["-c", "-s", "--command"];

/// All of them. The first row with a name counts.
#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // Package runners.
    Row { valued: NPM_VALUED, without: &["-c", "--call"], package: NPM_PACKAGE, ..runner(&["npx"], Then::Package) },
    Row {
        valued: NPM_VALUED, without: &["-c", "--call"], package: NPM_PACKAGE, commands: &[("exec|x", Then::Package)],
        ..runner(&["npm"], Then::Elsewhere)
    },
    Row { valued: &["-p", "--package", "--cwd"], package: NPM_PACKAGE, ..runner(&["bunx"], Then::Package) },
    Row { valued: PNPM_VALUED, package: NPM_PACKAGE, ..runner(&["pnpx"], Then::Package) },
    Row {
        valued: PNPM_VALUED, package: &["--package"], commands: &[("dlx", Then::Package), ("exec", Then::Line)],
        ..runner(&["pnpm"], Then::Elsewhere)
    },
    Row {
        valued: &["--cwd", "-p", "--package", "--registry", "--cache-folder", "--modules-folder"],
        package: NPM_PACKAGE, commands: &[("dlx", Then::Package), ("exec", Then::Line)],
        ..runner(&["yarn", "yarnpkg"], Then::Elsewhere)
    },
    Row {
        commands: &[
            ("npm", Then::Like("npm")), ("npx", Then::Like("npx")), ("pnpm", Then::Like("pnpm")),
            ("pnpx", Then::Like("pnpx")), ("yarn|yarnpkg", Then::Like("yarn")),
        ],
        ..runner(&["corepack"], Then::Elsewhere)
    },
    Row { valued: UV_VALUED, package: &["--from"], ..runner(&["uvx"], Then::Package) },
    Row {
        valued: UV_VALUED, module: &["-m", "--module"],
        commands: &[("tool run|tool uvx|x", Then::Like("uvx")), ("run", Then::FileOrLine)],
        ..runner(&["uv"], Then::Elsewhere)
    },
    Row {
        valued: &["--spec", "--python", "--pip-args", "-i", "--index-url", "--with", "--backend"],
        package: &["--spec"], commands: &[("run", Then::Package)], ..runner(&["pipx"], Then::Elsewhere)
    },
    Row { valued: &["--version", "--source", "--add-source", "--configfile", "-v", "--verbosity", "--framework"], ..runner(&["dnx"], Then::Package) },
    // Interpreters. V8's own options take their value after `=`.
    Row {
        valued: &[
            "-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "--env-file",
            "--env-file-if-exists", "--title", "--input-type", "--inspect-port", "--icu-data-dir", "--openssl-config",
            "--redirect-warnings", "--trace-event-categories", "--diagnostic-dir", "--report-dir", "--report-directory",
            "--watch-path", "--disable-warning", "--dns-result-order", "--unhandled-rejections", "--cpu-prof-dir",
            "--heap-prof-dir", "--tls-cipher-list", "--stack-trace-limit", "--snapshot-blob", "--experimental-default-type",
            "--max-http-header-size", "--max-old-space-size", "--tsconfig", "-P", "--project", "-O", "--compiler-options",
        ],
        without: &[
            "-e", "--eval", "-p", "--print", "-pe", "-c", "--check", "-v", "--version", "-h", "--help", "--test",
            "--v8-options", "--run", "-i", "--interactive", "--build-snapshot",
        ],
        commands: &[("inspect|watch", Then::Script)], hosts_agents: true,
        ..interpreter(&[
            "babel-node", "esno", "node*", "nodejs*", "swc-node", "ts-node", "ts-node-esm", "ts-node-script", "tsx", "vite-node",
        ])
    },
    Row {
        valued: &["-W", "-X", "--check-hash-based-pycs"],
        without: &["-c", "-h", "-V", "--help", "--version", "--help-env", "--help-xoptions", "--help-all"],
        module: &["-m"], joined: true, hosts_agents: true, ..interpreter(&["pypy*", "python*", "pythonw*"])
    },
    Row {
        valued: &[
            "-r", "--preload", "--require", "--import", "--cwd", "-c", "--config", "--env-file", "-d", "--define", "-l",
            "--loader", "-F", "--filter", "--port", "--conditions", "--tsconfig-override", "--main-fields",
            "--extension-order", "--jsx-factory", "--jsx-fragment", "--jsx-import-source", "--jsx-runtime", "--drop",
            "--install", "--shell", "--elide-lines", "--dns-result-order", "--title", "--inspect-port",
            "--max-http-header-size",
        ],
        without: &["-e", "--eval", "-p", "--print", "-v", "--version", "--revision", "-h", "--help"],
        commands: &[
            ("run", Then::Path), ("x", Then::Like("bunx")), ("test", Then::Nothing),
            ("install|i|add|a|remove|rm|update|link|unlink|build|init|create|c|upgrade|pm|publish|patch|outdated|audit|repl|exec|why", Then::Elsewhere),
        ],
        then: Then::Path, hosts_agents: true, ..interpreter(&["bun*"])
    },
    Row {
        valued: &[
            "-c", "--config", "--import-map", "--location", "--cert", "-L", "--log-level", "--seed", "--ext", "--inspect-host",
            "--node-modules-linker", "--minimum-dependency-age", "-P",
        ],
        without: &["-V", "--version", "-v", "-h", "--help"],
        commands: &[
            ("run|serve|x", Then::ScriptOrPackage), ("task|install|add|compile|cache|remove|upgrade", Then::Elsewhere),
            ("test|eval|repl|lint|fmt|check|bench|info|doc|lsp|jupyter", Then::Nothing),
        ],
        then: Then::ScriptOrPackage, hosts_agents: true, ..interpreter(&["deno"])
    },
    Row {
        valued: &["-r", "-I", "-C", "-E", "--encoding", "--external-encoding", "--internal-encoding"],
        without: &["-e", "-v", "--version"], ..interpreter(&["jruby", "ruby*"])
    },
    Row {
        valued: &["-I"], without: &["-e", "-E", "-n", "-p", "-ne", "-pe", "-i", "-v", "-c"],
        ..interpreter(&["perl*"])
    },
    Row {
        valued: &["-d", "-c", "-z", "--php-ini", "--define"], without: &["-r", "-S", "-a", "-v", "-i", "-l"],
        ..interpreter(&["php*"])
    },
    Row {
        valued: &[
            "-cp", "-classpath", "--class-path", "-p", "--module-path", "--add-modules", "--add-opens", "--add-exports",
            "--add-reads", "--upgrade-module-path", "--enable-native-access", "--source", "--patch-module",
        ],
        without: &["-version", "--version", "-help", "--help"], module: &["-m", "--module"],
        commands: &[("-jar", Then::Script)], then: Then::Module, ..interpreter(&["java"])
    },
    Row {
        valued: &[
            "--additionalprobingpath", "--additional-deps", "--depsfile", "--runtimeconfig", "--fx-version", "--roll-forward",
        ],
        commands: &[("exec", Then::Script), ("dnx|tool exec|tool execute", Then::Like("dnx"))],
        then: Then::Path, ..interpreter(&["dotnet"])
    },
    Row {
        without: &["-e", "-E"],
        ..interpreter(&["Rscript", "bb", "elixir", "escript", "groovy", "guile", "julia", "lua*", "luajit"])
    },
    // Shells. What a command string runs is not examined.
    Row { without: SHELL_WITHOUT, joined: true, ..row(&["busybox", "toybox"], Carrier::Shell, Then::Nothing) },
    Row {
        valued: &["-o", "-O", "--rcfile", "--init-file", "-C", "--init-command"], without: SHELL_WITHOUT, joined: true,
        ..row(SHELLS, Carrier::Shell, Then::Script)
    },
];

impl Row {
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        ROWS.iter().find(|row| row.is_named(name))
    }

    fn is_named(&self, name: &str) -> bool {
        if self.carrier == Carrier::Shell {
            return contains(self.names, name);
        }
        let is_version = |c: char| c.is_ascii_digit() || matches!(c, '.' | 't');
        let versioned = |stem: &str| {
            name.strip_prefix(stem).is_some_and(|rest| rest.trim_start_matches('-').chars().all(is_version))
        };
        let mut like = self.names.iter().filter(|own| own.as_bytes().first() == name.as_bytes().first());
        like.any(|own| own.strip_suffix('*').map_or(*own == name, versioned))
    }

    pub(super) fn find<'w>(&self, args: &'w [&'w str]) -> Position<'w> {
        let skipped = self.skip_options(args).and_then(|rest| {
            let after = |verbs: &'static str| verbs.split('|').find_map(|verb| behind(verb, rest));
            match self.commands.iter().find_map(|(verbs, then)| Some((*then, after(verbs)?))) {
                Some((then @ (Then::Elsewhere | Then::Nothing | Then::Like(_)), args)) => {
                    Ok((then, args, args))
                }
                Some((then, args)) => Ok((then, args, self.skip_options(args)?)),
                None => Ok((self.then, args, rest)),
            }
        });
        let (then, args, rest) = match skipped {
            Ok(found) => found,
            Err(position) => return position,
        };
        match (then, rest) {
            (Then::Elsewhere, _) => Position::Elsewhere,
            (Then::Like(name), _) => Self::named(name).map_or(Position::Elsewhere, |row| row.find(args)),
            (Then::Nothing, _) | (_, [] | ["" | "-", ..]) => Position::Nowhere,
            (Then::Path, [word, ..]) if !is_script_file(word) && !word.contains('/') => Position::Elsewhere,
            (Then::FileOrLine, [word, ..]) if !is_script_file(word) => Position::Line(rest),
            (Then::ScriptOrPackage, [word, behind @ ..])
                if word.starts_with("npm:") || word.starts_with("jsr:") =>
            {
                Position::Specifier(word, behind)
            }
            (Then::Script | Then::ScriptOrPackage | Then::Path | Then::FileOrLine, _) => {
                Position::Script(rest)
            }
            (Then::Module, [class, behind @ ..]) => Position::Module(class, behind),
            (Then::Package, _) => {
                let options = args.get(..args.len() - rest.len()).unwrap_or_default();
                Position::Package(option_value(options, self.package), rest)
            }
            (Then::Line, _) => Position::Line(rest),
        }
    }

    /// Whether what it runs with these arguments runs in another process: a task of the project.
    pub(super) fn runs_task(&self, args: &[&str]) -> bool {
        matches!(self.find(args), Position::Elsewhere)
    }

    /// Whether a shell with these arguments takes commands from its standard input.
    pub(super) fn has_no_program(&self, args: &[&str]) -> bool {
        matches!(self.skip_options(args), Ok([]))
    }

    /// What follows the leading options. The error is the position of the program, if an option tells that.
    fn skip_options<'w>(&self, mut words: &'w [&'w str]) -> Result<&'w [&'w str], Position<'w>> {
        let signs = if self.then == Then::Module { ['-', '@'] } else { ['-', '+'] };
        while let [word, rest @ ..] = words {
            if *word == "--" {
                return Ok(rest);
            }
            let Some(mut flags) = word.strip_prefix(signs).filter(|flags| !flags.is_empty()) else { break };
            if self.commands.iter().any(|(verb, _)| verb == word) {
                break;
            }
            words = rest;
            while let Some(first) = flags.chars().next() {
                let is_letter = self.joined && first != '-';
                let end = if is_letter { first.len_utf8() } else { flags.find('=').unwrap_or(flags.len()) };
                let (name, value) = flags.split_at(end);
                let is = |list: &[&str]| list.iter().any(|option| option.get(1..) == Some(name));
                if is(self.without) {
                    return Err(Position::Nowhere);
                }
                if is(self.module) {
                    return Err(match (value.trim_start_matches('='), rest) {
                        ("", [module, behind @ ..]) => Position::Module(module, behind),
                        ("", []) => Position::Nowhere,
                        (module, _) => Position::Module(module, rest),
                    });
                }
                if is(self.valued) && value.is_empty() {
                    words = rest.get(1..).unwrap_or_default();
                }
                flags = if is_letter && !is(self.valued) { value } else { "" };
            }
        }
        Ok(words)
    }
}

/// What follows a command, which may have two words.
fn behind<'w>(verb: &'static str, words: &'w [&'w str]) -> Option<&'w [&'w str]> {
    verb.split(' ').try_fold(words, |rest, part| rest.strip_prefix(&[part]))
}

/// The value of one of these options: `--name value` or `--name=value`.
fn option_value<'w>(options: &[&'w str], names: &[&str]) -> Option<&'w str> {
    options.iter().enumerate().find_map(|(at, option)| {
        if names.contains(option) {
            return options.get(at + 1).copied();
        }
        option.split_once('=').filter(|(name, _)| names.contains(name)).map(|(_, value)| value)
    })
}
