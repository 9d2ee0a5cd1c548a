//! Tests of the command line.

use clap::{CommandFactory, error::ErrorKind};

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split_whitespace())
}

#[test]
fn the_description_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn run_takes_the_flags_of_the_contract() {
    let Verb::Run(run) = parse(
        "orphand run --config c.toml --observe --format json --grace 500ms --term-timeout 5m --record t \
         --setsid none --ring-size 64K --lock /tmp/l --debug-bpf",
    )
    .unwrap()
    .verb
    else {
        panic!()
    };
    assert_eq!(
        (run.grace, run.term_timeout),
        (Some(Duration::from_millis(500)), Some(Duration::from_secs(300)))
    );
    assert_eq!(
        (run.format, run.setsid, run.ring_size),
        (Some(Format::Json), Some(SetsidHook::None), Some("65536".parse().unwrap()))
    );
    assert!(run.observe && run.debug_bpf);
    let Verb::Run(run) = parse("orphand run").unwrap().verb else { panic!() };
    assert_eq!((run.grace, run.format, run.places.config), (None, None, None));
    assert_eq!(run.lock, PathBuf::from("/run/orphand/lock"));
}

#[test]
fn every_verb_is_there_and_no_other() {
    for line in [
        "ps --json --exit-code --no-daemon --state-dir d",
        "ps -tw -o wide --sort cpu --state orphan,kept --agent claude --socket s --config f",
        "status --json --pss --socket s",
        "top --readonly --ascii --socket s --config f",
        "reap 4711 12@99 inventory --agent a --generation 3 --include-active --dry-run --yes --json --socket s",
        "run --listen none --socket s --state-dir d --hook /x",
        "history",
        "explain 4711",
        "explain claude --json --socket s",
        "explain 4711@3 --state-dir d --config f",
        "history --since 24h --agent claude --state-dir d --json",
        "history --socket s --config f",
        "history --at 14:03 --json",
        "history --since 9:00 --until 12:30 --leaks",
        "events",
        "events --follow --since 14:03 --format text --socket s",
        "events --json --state-dir d",
        "doctor",
        "doctor --json --socket s --state-dir d --lock l",
        "replay t --format text",
        "config check",
        "config check f --json",
        "config show --json",
        "config show --origin --config f",
        "config default",
        "completions bash",
        "man",
        "man config",
        "man --dir d",
    ] {
        parse(&format!("orphand {line}")).unwrap();
    }
    let wrong = [
        "history --since 10",
        "run --listen 9477",
        "run --hook",
        "reap --generation x",
        "release claude",
        "ps --sort name",
        "ps --state spared",
        "scan",
        "tree",
        "replay",
        "config show --origin --json",
        "man config --dir d",
    ];
    for line in wrong {
        let error = parse(&format!("orphand {line}")).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{line}");
    }
}

#[test]
fn wrong_values_say_what_is_accepted() {
    let error = parse("orphand run --grace 10").unwrap_err().to_string();
    assert!(
        error.contains("\"10\" is not a duration: write it like \"500ms\", \"10s\", \"5m\", \"24h\""),
        "{error}"
    );
    let error = parse("orphand run --ring-size 5000").unwrap_err().to_string();
    assert!(error.contains("give a power of two from 4096 (4 KiB) to 1073741824 (1 GiB)"), "{error}");
}

/// Every verb has help with an example.
#[test]
fn every_verb_has_help_with_an_example() {
    fn check(command: &mut clap::Command, path: &str) {
        let help = command.render_long_help().to_string();
        assert!(help.contains("Example") || command.has_subcommands(), "{path}");
        assert!(command.get_about().is_some(), "{path}");
        for verb in command.get_subcommands_mut().filter(|verb| verb.get_name() != "help") {
            let path = format!("{path} {}", verb.get_name());
            check(verb, &path);
        }
    }
    let mut command = Cli::command();
    command.build();
    check(&mut command, "orphand");
}

#[test]
fn help() {
    let help = |line: &str| {
        // The width is fixed, so that the terminal does not matter.
        let error = Cli::command().term_width(100).try_get_matches_from(line.split_whitespace()).unwrap_err();
        assert_eq!((error.kind(), error.exit_code()), (ErrorKind::DisplayHelp, 0));
        error.to_string()
    };
    let pages = [
        "orphand --help",
        "orphand -h",
        "orphand run --help",
        "orphand ps --help",
        "orphand status --help",
        "orphand reap --help",
        "orphand history --help",
        "orphand config --help",
    ];
    insta::assert_snapshot!(pages.map(|page| format!("$ {page}\n{}", help(page))).join("\n"));
}

#[test]
fn format_follows_the_terminal() {
    assert_eq!(Format::or_default(None, true), Format::Text);
    assert_eq!(Format::or_default(None, false), Format::Json);
    assert_eq!(Format::or_default(Some(Format::Json), true), Format::Json);
}

#[test]
fn the_manual_page() {
    let page = pages::man(pages::Page::Orphand).unwrap().replace(env!("CARGO_PKG_VERSION"), "VERSION");
    assert!(page.contains(".SH \"EXIT STATUS\""));
    insta::assert_snapshot!(page);
}

#[test]
fn the_manual_page_of_the_configuration() {
    let page = pages::man(pages::Page::Config).unwrap().replace(env!("CARGO_PKG_VERSION"), "VERSION");
    for key in crate::config::options::sections().flat_map(|section| &section.keys) {
        let [own, of_table] = [format!("#{} = ", key.name), format!("# \\- {}: ", key.name)];
        assert!(page.contains(&own) || page.contains(&of_table), "{}", key.name);
    }
    insta::assert_snapshot!(page);
}

#[test]
fn a_page_for_every_verb() {
    let dir = tempfile::tempdir().unwrap();
    let number = pages::man_pages(dir.path()).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names.len(), number);
    let expected = [
        "orphand-completions.1",
        "orphand-config-check.1",
        "orphand-config-default.1",
        "orphand-config-show.1",
        "orphand-config.1",
        "orphand-doctor.1",
        "orphand-events.1",
        "orphand-explain.1",
        "orphand-history.1",
        "orphand-man.1",
        "orphand-mode.1",
        "orphand-pause.1",
        "orphand-ps.1",
        "orphand-reap.1",
        "orphand-release.1",
        "orphand-reload.1",
        "orphand-replay.1",
        "orphand-resume.1",
        "orphand-run.1",
        "orphand-spare.1",
        "orphand-status.1",
        "orphand-top.1",
        "orphand.1",
        "orphand.toml.5",
    ];
    assert_eq!(names, expected);
    let error = format!("{:#}", pages::man_pages(std::path::Path::new("/nonexistent")).unwrap_err());
    assert_eq!(
        error,
        "cannot write /nonexistent/orphand.1: No such file or directory (os error 2); make the directory, or give another one"
    );
}

#[test]
fn completions_for_every_shell() {
    for shell in Shell::value_variants() {
        assert!(complete::script(&shell.to_string()).unwrap().contains("orphand"), "{shell}");
    }
}
