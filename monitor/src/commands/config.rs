//! `orphand config`: checks a configuration, shows it, and writes a first one.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::json;

use super::run::hook_of;
use crate::{
    actuator::hook::HookError,
    cli::{self, ExitCode},
    config::{DEFAULT_PATH, Loaded, Mistake, options, shown},
    sink::report,
};

pub fn config(verb: cli::Config) -> anyhow::Result<ExitCode> {
    match verb {
        cli::Config::Check { file, json } => check(file.as_deref(), json),
        cli::Config::Show { config: file, origin, json } => {
            let Loaded { config, origins, .. } = Loaded::read(file.as_deref())?;
            super::answer(json, &config, |config| {
                if origin { options::with_origins(config, &origins) } else { config.render() }
            })
        }
        cli::Config::Default => super::print(options::DEFAULT_FILE),
    }
}

fn check(file: Option<&Path>, json: bool) -> anyhow::Result<ExitCode> {
    let read = Loaded::read(file);
    let loaded = read.as_ref().ok();
    let notes = loaded.map(refused_here).unwrap_or_default();
    let files = loaded.map(|loaded| loaded.files.as_slice()).unwrap_or_default();
    // `message` says what is wrong, `text` is the whole line. A mistake that is not in the content has no line number.
    let wrong =
        read.as_ref().err().map(|mistake| report::with(&**mistake, [("text", mistake.to_string().into())]));
    let wrong = wrong.transpose()?;
    let all = json!({
        "file": file.unwrap_or(Path::new(DEFAULT_PATH)).to_string_lossy(),
        "valid": loaded.is_some(),
        "files": files.iter().map(|file| file.to_string_lossy()).collect::<Vec<_>>(),
        "errors": wrong.into_iter().collect::<Vec<_>>(),
        "notes": notes,
        "config": loaded.map(|loaded| &loaded.config),
    });
    super::answer(json, &all, |_| if loaded.is_some() { text(files, &notes) } else { String::new() })?;
    let Err(mistake) = &read else { return Ok(ExitCode::Done) };
    if !json {
        // A line in a file begins with its place, as editors expect it.
        let who = if mistake.location.line.is_none() { "orphand: " } else { "" };
        super::tell_aside(&format!("{who}{mistake}"));
    }
    Ok(ExitCode::Failed)
}

/// What is well written, and keeps a daemon from starting on this host: the hook.
fn refused_here(loaded: &Loaded) -> Vec<Mistake> {
    let hooks = loaded.config.hook.iter().enumerate();
    let hooks = hooks.filter_map(|(index, hook)| match hook_of(hook, Duration::ZERO) {
        // Who checks may have fewer rights than the daemon.
        Ok(_) | Err(HookError::Rights(_)) => None,
        Err(why) => {
            let location = loaded.origins.location("hook", index)?;
            Some(*Mistake::new(location, Some("hook"), format!("orphand would not start here: {why}")))
        }
    });
    hooks.collect()
}

fn text(files: &[PathBuf], notes: &[Mistake]) -> String {
    if files.is_empty() {
        return format!("there is no {DEFAULT_PATH}, nor conf.d/*.toml beside it: the defaults hold\n");
    }
    let valid = files.iter().map(|path| format!("{}: valid\n", shown(path)));
    let notes = notes.iter().map(|note| format!("{}: note: hook: {}\n", note.location, note.message));
    valid.chain(notes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `config check` notes of a file with this text that is valid.
    fn noted(content: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        std::fs::write(&file, content).unwrap();
        let notes = refused_here(&Loaded::read(Some(&file)).unwrap());
        let lines = notes.iter().map(|note| format!("{}: {}", note.location.line.unwrap(), note.message));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_would_keep_a_daemon_from_starting_is_noted() {
        assert_eq!(noted("grace = '1s'\n[[hook]]\npath = '/bin/true'\n"), "");
        let missing = noted("[[hook]]\npath = '/nonexistent/alarm'\n");
        assert!(missing.starts_with("1: orphand would not start here: the hook is refused"), "{missing}");
        let nobody = noted("[[hook]]\npath = '/bin/true'\nuser = 'no-such-user'\n");
        assert!(
            nobody.starts_with("1: orphand would not start here") && nobody.contains("no-such-user"),
            "{nobody}"
        );
    }
}
