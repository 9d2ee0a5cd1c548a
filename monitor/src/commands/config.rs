//! `orphand config`: checks a configuration, shows it, and writes a first one.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};

use super::run::hook_of;
use crate::{
    actuator::hook::HookError,
    cli::{self, ExitCode},
    config::{Config, ConfigErrors, DEFAULT_PATH, Loaded, Mistake, Origins, options, shown},
};

pub fn config(verb: cli::Config) -> anyhow::Result<ExitCode> {
    match verb {
        cli::Config::Check { file, json } => check(file.as_deref(), json),
        cli::Config::Show { config: file, origin, json } => {
            let Loaded { config, origins, .. } = Loaded::read(file.as_deref());
            let text = |config: &Config| {
                if origin { options::with_origins(config, &origins) } else { config.render() }
            };
            super::answer(json, &config?, text)
        }
        cli::Config::Default => super::print(options::DEFAULT_FILE),
    }
}

/// Shows all mistakes; the exit code is 1 if there is one.
fn check(file: Option<&Path>, json: bool) -> anyhow::Result<ExitCode> {
    let mut loaded = Loaded::read(file);
    let refused = loaded.config.as_ref().map(|config| refused_here(config, &loaded.origins));
    loaded.notes.extend(refused.unwrap_or_default());
    super::answer(json, &report_of(file, &loaded), |_| text(&loaded))?;
    let Err(errors) = &loaded.config else { return Ok(ExitCode::Done) };
    if !json {
        errors.iter().for_each(|error| eprintln!("{error}"));
    }
    Ok(ExitCode::Failed)
}

/// What is well written, and keeps a daemon from starting on this host: the hook.
fn refused_here(config: &Config, origins: &Origins) -> Vec<Mistake> {
    let hooks =
        config.hook.iter().enumerate().filter_map(|(index, hook)| match hook_of(hook, Duration::ZERO) {
            // Who checks may have fewer rights than the daemon.
            Ok(_) | Err(HookError::Rights(_)) => None,
            Err(why) => {
                let location = origins.location("hook", index)?;
                Some(Mistake::new(location, Some("hook"), format!("orphand would not start here: {why}")))
            }
        });
    hooks.collect()
}

/// The files without a mistake, and notes about them.
fn text(loaded: &Loaded) -> String {
    let errors = loaded.config.as_ref().err();
    let wrong =
        |path: &Path| errors.is_some_and(|errors| errors.iter().any(|error| error.location.file == path));
    let valid =
        loaded.files.iter().filter(|path| !wrong(path)).map(|path| format!("{}: valid\n", shown(path)));
    let notes = loaded.notes.iter().map(|note| {
        let key = note.key.as_deref().map(|key| format!("{key}: ")).unwrap_or_default();
        format!("{}: note: {key}{}\n", note.location, note.message)
    });
    let mut text: String = valid.chain(notes).collect();
    if text.is_empty() && errors.is_none() {
        text = format!("there is no {DEFAULT_PATH}, nor conf.d/*.toml beside it: the defaults hold\n");
    }
    text
}

fn report_of(file: Option<&Path>, loaded: &Loaded) -> Value {
    let errors = loaded.config.as_ref().err();
    let errors: Vec<_> = errors.into_iter().flat_map(ConfigErrors::iter).map(mistake).collect();
    json!({
        "file": file.unwrap_or(Path::new(DEFAULT_PATH)).to_string_lossy(),
        "valid": loaded.config.is_ok(),
        "files": loaded.files.iter().map(|file| file.to_string_lossy()).collect::<Vec<_>>(),
        "errors": errors,
        "notes": loaded.notes,
        "config": loaded.config.as_ref().ok(),
    })
}

/// A mistake as JSON: `message` says what is wrong, `text` is the whole line. A mistake that is not in the content has no line number.
fn mistake(error: &Mistake) -> Value {
    let mut said = json!(error);
    if let Some(said) = said.as_object_mut() {
        said.insert("text".to_owned(), error.to_string().into());
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `config check` notes of a file with this text that is valid.
    fn noted(content: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        std::fs::write(&file, content).unwrap();
        let loaded = Loaded::read(Some(&file));
        let config = loaded.config.as_ref().unwrap();
        let notes = refused_here(config, &loaded.origins);
        let lines = notes.iter().map(|note| format!("{}: {}", note.location.line.unwrap(), note.message));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_would_keep_a_daemon_from_starting_is_noted() {
        assert_eq!(noted("grace = '1s'\n[[hook]]\npath = '/bin/true'\n"), "");
        let relative =
            "2: orphand would not start here: the hook alarm is no absolute path: write it from / on";
        assert_eq!(noted("\n[[hook]]\npath = 'alarm'\n"), relative);
        let missing = noted("[[hook]]\npath = '/nonexistent/alarm'\n");
        assert!(missing.starts_with("1: orphand would not start here: the hook is refused"), "{missing}");
        let nobody = noted("[[hook]]\npath = '/bin/true'\nuser = 'no-such-user'\n");
        assert!(
            nobody.starts_with("1: orphand would not start here") && nobody.contains("no-such-user"),
            "{nobody}"
        );
    }
}
