//! Finds the program in the command line of an interpreter. Used only by [`super::program`].

use super::{
    program::{Carrier, Program, command_name, skip_options},
    runner,
    text::{is_script_file, package_name, package_of_path},
};

/// Interpreters that share their options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interpreter {
    Node,
    Python,
    Bun,
    Deno,
    Ruby,
    Perl,
    Php,
    Java,
    Dotnet,
    /// The first argument that is not an option is the script.
    Plain,
}

impl Interpreter {
    /// The interpreter of this name: `python3.12`, `nodejs`, `tsx`.
    pub(super) fn named(name: &str) -> Option<Self> {
        let versioned = |stem: &str| {
            name.strip_prefix(stem).is_some_and(|v| {
                let v = v.trim_start_matches('-');
                v.chars().all(|c| c.is_ascii_digit() || c == '.' || c == 't')
            })
        };
        Some(match name {
            "tsx" | "ts-node" | "ts-node-esm" | "ts-node-script" | "vite-node" | "esno" | "swc-node"
            | "babel-node" => Self::Node,
            "deno" => Self::Deno,
            "java" => Self::Java,
            "dotnet" => Self::Dotnet,
            "Rscript" | "julia" | "bb" | "elixir" | "escript" | "guile" | "groovy" | "luajit" => Self::Plain,
            _ if versioned("node") || versioned("nodejs") => Self::Node,
            _ if versioned("python") || versioned("pypy") || versioned("pythonw") => Self::Python,
            _ if versioned("bun") => Self::Bun,
            _ if versioned("ruby") || name == "jruby" => Self::Ruby,
            _ if versioned("perl") => Self::Perl,
            _ if versioned("php") => Self::Php,
            _ if versioned("lua") => Self::Plain,
            _ => return None,
        })
    }
}

/// Options whose value is the next word. V8's own options take their value after `=`.
#[rustfmt::skip]
const NODE_VALUED: &[&str] = &[
    "-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "--env-file",
    "--env-file-if-exists", "--title", "--input-type", "--inspect-port", "--icu-data-dir", "--openssl-config",
    "--redirect-warnings", "--trace-event-categories", "--diagnostic-dir", "--report-dir", "--report-directory",
    "--watch-path", "--disable-warning", "--dns-result-order", "--unhandled-rejections", "--cpu-prof-dir",
    "--heap-prof-dir", "--tls-cipher-list", "--stack-trace-limit", "--snapshot-blob", "--experimental-default-type",
    "--max-http-header-size", "--max-old-space-size", "--tsconfig", "-P", "--project", "-O", "--compiler-options",
];
/// Options with which node runs no program file: code in an argument, checks, tests, tasks.
#[rustfmt::skip]
const NODE_NO_PROGRAM: &[&str] = &[
    "-e", "--eval", "-p", "--print", "-pe", "-c", "--check", "-v", "--version", "-h", "--help", "--test", "--v8-options",
    "--run", "-i", "--interactive", "--build-snapshot",
];
#[rustfmt::skip]
const BUN_VALUED: &[&str] = &[
    "-r", "--preload", "--require", "--import", "--cwd", "-c", "--config", "--env-file", "-d", "--define", "-l", "--loader",
    "-F", "--filter", "--port", "--conditions", "--tsconfig-override", "--main-fields", "--extension-order",
    "--jsx-factory", "--jsx-fragment", "--jsx-import-source", "--jsx-runtime", "--drop", "--install", "--shell",
    "--elide-lines", "--dns-result-order", "--title", "--inspect-port", "--max-http-header-size",
];
#[rustfmt::skip]
const DENO_VALUED: &[&str] = &[
    "-c", "--config", "--import-map", "--location", "--cert", "-L", "--log-level", "--seed", "--ext", "--inspect-host",
    "--node-modules-linker", "--minimum-dependency-age", "-P",
];
#[rustfmt::skip]
const JAVA_VALUED: &[&str] = &[
    "-cp", "-classpath", "--class-path", "-p", "--module-path", "--add-modules", "--add-opens", "--add-exports",
    "--add-reads", "--upgrade-module-path", "--enable-native-access", "--source", "--patch-module",
];
const RUBY_VALUED: &[&str] =
    &["-r", "-I", "-C", "-E", "--encoding", "--external-encoding", "--internal-encoding"];
const PERL_VALUED: &[&str] = &["-I"];
const PHP_VALUED: &[&str] = &["-d", "-c", "-z", "--php-ini", "--define"];

/// Where the program is in a command line.
enum Position<'w> {
    /// It is the first of these words; its arguments follow.
    At(&'w [&'w str]),
    /// A module and its arguments.
    Module(&'w str, &'w [&'w str]),
    /// A package and its arguments.
    Package(&'w str, &'w [&'w str]),
    /// In another process that the interpreter starts: a task, a build.
    Elsewhere,
    /// There is no program: code in an argument, an interactive prompt.
    Nowhere,
}

/// Finds the program that the interpreter at the start of `words` runs.
pub(super) fn parse<'w>(interpreter: Interpreter, words: &'w [&'w str], depth: u8) -> Program<'w> {
    let [head, args @ ..] = words else {
        return Program::new(Carrier::Itself, "", &[]);
    };
    let position = match interpreter {
        Interpreter::Node => node(args),
        Interpreter::Python => python(args),
        Interpreter::Bun => bun(args),
        Interpreter::Deno => deno(args),
        Interpreter::Ruby => script(args, RUBY_VALUED, &["-e", "-v", "--version"]),
        Interpreter::Perl => {
            script(args, PERL_VALUED, &["-e", "-E", "-n", "-p", "-ne", "-pe", "-i", "-v", "-c"])
        }
        Interpreter::Php => script(args, PHP_VALUED, &["-r", "-S", "-a", "-v", "-i", "-l"]),
        Interpreter::Java => java(args),
        Interpreter::Dotnet => dotnet(args),
        Interpreter::Plain => script(args, &[], &["-e", "-E"]),
    };
    match position {
        Position::At(program @ [path, rest @ ..]) => {
            // npx, tsx and others are scripts too; the program is what they run.
            let name = command_name(path);
            // `node .../tsx/dist/cli.mjs FILE`
            if matches!(package_of_path(path), Some("tsx" | "ts-node" | "vite-node")) && depth == 0 {
                return parse(Interpreter::Node, program, depth + 1);
            }
            if runner::is_runner(name) || Interpreter::named(name).is_some() {
                return Program::parse(program, depth + 1);
            }
            Program::new(Carrier::Interpreter, path, rest)
        }
        Position::Module(module, rest) => {
            let name = module.split('.').next().unwrap_or(module);
            Program {
                name,
                path: module,
                package: None,
                module: Some(module),
                args: rest,
                carrier: Carrier::Interpreter,
            }
        }
        Position::Package(specifier, rest) => {
            let package = package_name(specifier);
            Program { carrier: Carrier::Interpreter, ..Program::of_package(package, package, rest) }
        }
        Position::Elsewhere => Program::new(Carrier::Wrapper, head, args),
        Position::At([]) | Position::Nowhere => Program::new(Carrier::Itself, head, args),
    }
}

/// Finds the first word that is not an option. There is none if an option says that no file is run.
fn script<'w>(args: &'w [&'w str], valued: &[&str], no_program: &[&str]) -> Position<'w> {
    let rest = skip_options(args, valued);
    let options = args.get(..args.len() - rest.len()).unwrap_or_default();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let name = option.split_once('=').map_or(*option, |(name, _)| name);
        if no_program.contains(&name) {
            return Position::Nowhere;
        }
        if valued.contains(option) {
            options.next();
        }
    }
    match rest {
        [] | ["-", ..] => Position::Nowhere,
        _ => Position::At(rest),
    }
}

fn node<'w>(args: &'w [&'w str]) -> Position<'w> {
    match script(args, NODE_VALUED, NODE_NO_PROGRAM) {
        // `node inspect FILE`, `tsx watch FILE`, `tsx run FILE`
        Position::At(["inspect" | "watch", rest @ ..]) => script(rest, NODE_VALUED, NODE_NO_PROGRAM),
        position => position,
    }
}

/// Python's short options may be joined (`-um module`), python(1).
fn python<'w>(mut args: &'w [&'w str]) -> Position<'w> {
    while let [word, rest @ ..] = args {
        if *word == "-" || word.is_empty() {
            return Position::Nowhere;
        }
        if *word == "--" {
            return if rest.is_empty() { Position::Nowhere } else { Position::At(rest) };
        }
        let Some(flags) = word.strip_prefix('-') else {
            return Position::At(args);
        };
        if let Some(long) = flags.strip_prefix('-') {
            match long {
                "help" | "version" | "help-env" | "help-xoptions" | "help-all" => return Position::Nowhere,
                "check-hash-based-pycs" => args = rest.get(1..).unwrap_or_default(),
                _ => args = rest,
            }
            continue;
        }
        args = rest;
        for (at, flag) in flags.char_indices() {
            let attached = flags.get(at + flag.len_utf8()..).filter(|v| !v.is_empty());
            match (flag, attached) {
                ('m', Some(module)) => return Position::Module(module, rest),
                ('m', None) => {
                    return match rest {
                        [module, behind @ ..] => Position::Module(module, behind),
                        [] => Position::Nowhere,
                    };
                }
                ('c' | 'h' | 'V', _) => return Position::Nowhere,
                ('W' | 'X', Some(_)) => break,
                ('W' | 'X', None) => args = rest.get(1..).unwrap_or_default(),
                _ => {}
            }
        }
    }
    Position::Nowhere
}

fn bun<'w>(args: &'w [&'w str]) -> Position<'w> {
    let none = ["-e", "--eval", "-p", "--print", "-v", "--version", "--revision", "-h", "--help"];
    match script(args, BUN_VALUED, &none) {
        Position::At(["run", rest @ ..]) => match script(rest, BUN_VALUED, &none) {
            // without a file it is a task of package.json, which runs in another process
            Position::At([word, ..]) if !is_script_file(word) && !word.contains('/') => Position::Elsewhere,
            position => position,
        },
        Position::At(
            [
                "install" | "i" | "add" | "a" | "remove" | "rm" | "update" | "link" | "unlink" | "build"
                | "init" | "create" | "c" | "upgrade" | "pm" | "publish" | "patch" | "outdated" | "audit"
                | "repl" | "exec" | "why",
                ..,
            ],
        ) => Position::Elsewhere,
        Position::At(["test", ..]) => Position::Nowhere,
        Position::At(rest @ [word, ..]) if is_script_file(word) || word.contains('/') => Position::At(rest),
        Position::At(_) => Position::Elsewhere,
        position => position,
    }
}

fn deno<'w>(args: &'w [&'w str]) -> Position<'w> {
    let none = ["-V", "--version", "-v", "-h", "--help"];
    let rest = match script(args, DENO_VALUED, &none) {
        Position::At(["run" | "serve" | "x", rest @ ..]) => script(rest, DENO_VALUED, &none),
        Position::At(["task" | "install" | "add" | "compile" | "cache" | "remove" | "upgrade", ..]) => {
            Position::Elsewhere
        }
        Position::At(
            [
                "test" | "eval" | "repl" | "lint" | "fmt" | "check" | "bench" | "info" | "doc" | "lsp"
                | "jupyter",
                ..,
            ],
        ) => Position::Nowhere,
        position => position,
    };
    match rest {
        Position::At([specifier, behind @ ..])
            if specifier.starts_with("npm:") || specifier.starts_with("jsr:") =>
        {
            Position::Package(specifier, behind)
        }
        position => position,
    }
}

fn java<'w>(mut args: &'w [&'w str]) -> Position<'w> {
    loop {
        args = match args {
            ["-jar", rest @ ..] if !rest.is_empty() => return Position::At(rest),
            ["-m" | "--module", module, rest @ ..] => return Position::Module(module, rest),
            ["-version" | "--version" | "-help" | "--help", ..] | [] => return Position::Nowhere,
            [option, _, rest @ ..] if JAVA_VALUED.contains(option) => rest,
            [option, rest @ ..] if option.starts_with(['-', '@']) => rest,
            [class, rest @ ..] => return Position::Module(class, rest),
        }
    }
}

fn dotnet<'w>(args: &'w [&'w str]) -> Position<'w> {
    let valued = [
        "--additionalprobingpath",
        "--additional-deps",
        "--depsfile",
        "--runtimeconfig",
        "--fx-version",
        "--roll-forward",
    ];
    match skip_options(args, &valued) {
        ["exec", rest @ ..] => Position::At(skip_options(rest, &valued)),
        ["dnx", rest @ ..] | ["tool", "exec" | "execute", rest @ ..] => {
            match skip_options(rest, runner::DNX_VALUED) {
                [package, behind @ ..] => Position::Package(package, behind),
                [] => Position::Elsewhere,
            }
        }
        rest @ [file, ..] if is_script_file(file) => Position::At(rest),
        [] => Position::Nowhere,
        _ => Position::Elsewhere,
    }
}
