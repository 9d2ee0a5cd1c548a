//! `orphand spare`: writes the exemption that a person means, and has the daemon read it.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::json;

use super::offline::Offline;
use crate::{
    cli::{self, ExitCode},
    config::{DEFAULT_PATH, Spared, shown},
    control::client::{Client, ClientError},
    host::Proc,
};
use orphand_core::{
    model::{
        Asked, Explained, Image, ProcessId, ProcessView, redact,
        text::{quoted, sanitise},
    },
    recognise::{Rule, Rules},
};

pub fn spare(flags: &cli::Spare) -> anyhow::Result<ExitCode> {
    let client = super::daemon(&flags.common.places);
    let json = flags.common.json;
    let main = main_file(flags, &client)?;
    if flags.list {
        let spared = Spared::read(&main)?;
        return super::answer(json, &json!({ "file": spared.file, "spared": spared.rules() }), |_| {
            listed(&spared)
        });
    }
    if let Some(name) = &flags.remove {
        let (file, gone) = Spared::change(&main, |spared| spared.remove(name))?;
        if gone.is_empty() {
            let (name, file) = (sanitise(name), shown(&file));
            return Ok(super::unmatched(&format!("{file} has no exemption called \"{name}\"")));
        }
        return apply(&file, &client, json, "removed", &gone, None);
    }
    let asked: Option<Asked> = flags.what.as_deref().map(Asked::from);
    let rules = match &asked {
        Some(asked) => of_programs(flags, &client, asked)?,
        None => of_place(flags)?,
    };
    if rules.is_empty() {
        let what = flags.what.as_deref().or(flags.user.as_deref()).map(quoted).unwrap_or_default();
        return Ok(super::unmatched(&format!("{what} is no living process, server, agent or user")));
    }
    let (file, _) = Spared::change(&main, |spared| spared.add(rules.clone()))?;
    apply(&file, &client, json, "spared", &rules, asked)
}

/// The main file of the configuration: the one that was given, or that the daemon reads.
fn main_file(flags: &cli::Spare, client: &Client) -> anyhow::Result<PathBuf> {
    if let Some(given) = &flags.common.places.config {
        return std::path::absolute(given).with_context(|| format!("cannot tell where {} is", shown(given)));
    }
    let status = super::asked(client.status(false))?.ok();
    Ok(status.and_then(|status| status.config).unwrap_or_else(|| DEFAULT_PATH.into()))
}

/// The exemption of a unit, of a user, or of one in the other. Empty if there is no such user.
fn of_place(flags: &cli::Spare) -> anyhow::Result<Vec<Rule>> {
    let user = flags.user.as_deref();
    if [flags.unit.as_deref(), user].contains(&Some("")) {
        bail!("nothing has an empty name: name a unit or a user");
    }
    let is_user =
        |name: &str| name.parse::<u32>().is_ok() || matches!(crate::os::users::user(name), Ok(Some(_)));
    if user.is_some_and(|name| !is_user(name)) {
        return Ok(Vec::new());
    }
    let name = match (flags.unit.as_deref(), user) {
        (Some(unit), None) => unit.to_owned(),
        (None, user) => format!("user {}", user.unwrap_or_default()),
        (Some(unit), Some(user)) => format!("{unit} of user {user}"),
    };
    let name: String = name.chars().take(64).collect();
    Ok(vec![Rule::of_place(&name, flags.unit.clone(), flags.user.clone())?])
}

/// The exemptions of the programs that a number, an id or a name means. Empty if it means none.
fn of_programs(flags: &cli::Spare, client: &Client, asked: &Asked) -> anyhow::Result<Vec<Rule>> {
    let places = &flags.common.places;
    let found = match client.explain(asked.clone()) {
        Ok(found) => found,
        Err(ClientError::NoDaemon { .. }) => Offline::inspect(places)?.explain(asked),
        Err(error) => return Err(error.into()),
    };
    let (proc, known) = (Proc::system()?, places.load()?.rules());
    let mut programs: Vec<(ProcessId, Image, String)> =
        found.iter().filter_map(|one| program(&known, one)).collect();
    if programs.is_empty() {
        // A living process that is not followed.
        let living = super::living_process(&proc, asked).map(|dir| (dir.id(), dir.image()));
        programs.extend(living.map(|(id, image)| (id, image.clone(), known.title(&image))));
    }
    let mut rules: Vec<Rule> = Vec::new();
    for (id, image, name) in &programs {
        if matches!(asked, Asked::Pid(1)) || known.starts_everything(image) {
            bail!(
                "\"{}\" starts everything, and all of that would be spared: exempt a unit or a user, or pause",
                sanitise(name)
            );
        }
        if image.exe.is_empty() {
            bail!(
                "the program of process {} cannot be read: it is a thread of the kernel, or has ended",
                id.pid
            );
        }
        if is_only_a_title(&proc, *id, image) {
            bail!(
                "\"{}\" wrote a title over its command line, and nobody saw how it was started: exempt its unit or its user, or write a rule by hand",
                sanitise(name)
            );
        }
        let folder = proc.identified(*id).ok().flatten().and_then(|dir| dir.link("cwd").ok());
        let folder = folder.and_then(|folder| String::from_utf8(folder).ok());
        let found = Rules::exemptions_of(image, name, folder.as_deref());
        if found.is_empty() {
            let name = sanitise(name);
            bail!(
                "no rule can tell the program of \"{name}\" from others: exempt its unit or its user, or write a rule by hand"
            );
        }
        for rule in found {
            if rules.iter().all(|one| one.patterns() != rule.patterns()) {
                rules.push(rule);
            }
        }
    }
    Ok(rules)
}

/// The program that makes this process what it is, as the daemon knows it, and its name: of a server the one behind shells and
/// launchers.
fn program(rules: &Rules, one: &Explained) -> Option<(ProcessId, Image, String)> {
    let image = |view: &ProcessView| Image::new(view.exe.clone(), view.argv.clone(), view.argv_truncated);
    let Some(report) = one.report.as_ref().filter(|_| one.agent.is_none()) else {
        let image = image(&one.process);
        let name = one.agent.as_ref().map_or_else(|| rules.title(&image), |agent| agent.name.clone());
        return Some((one.id(), image, name));
    };
    let mut programs = report.server.processes.iter().map(|view| (view.id(), image(view)));
    let (id, image) = programs.find(|(_, image)| !rules.only_launches(image))?;
    Some((id, image, report.server.name.clone()))
}

/// Whether this is no more than the title that a process wrote over its command line.
fn is_only_a_title(proc: &Proc, process: ProcessId, image: &Image) -> bool {
    let now = proc.identified(process).ok().flatten().map(|dir| dir.program());
    now.is_some_and(|now| now.titled && redact::argv(&now.image.argv) == redact::argv(&image.argv))
}

/// Has the daemon read what was written, and asks it whether it takes what was `asked` for as exempt since then.
fn apply(
    file: &Path,
    client: &Client,
    json: bool,
    done: &str,
    rules: &[Rule],
    asked: Option<Asked>,
) -> anyhow::Result<ExitCode> {
    let reloaded = match client.reload() {
        Ok(_) => true,
        Err(ClientError::NoDaemon { .. }) => false,
        Err(error) => return Err(error).with_context(|| format!("{} is written", shown(file))),
    };
    if let Some(asked) = asked.filter(|_| reloaded)
        && client.explain(asked)?.iter().any(|one| !one.exempt)
    {
        bail!("{} is written, but what the daemon knows of it does not match: it is not spared", shown(file));
    }
    super::answer(json, &json!({ "file": file, (done): rules, "reloaded": reloaded }), |_| {
        text(file, done == "spared", rules, reloaded)
    })
}

fn text(file: &Path, added: bool, rules: &[Rule], reloaded: bool) -> String {
    let line = |rule: &Rule| {
        let (name, patterns) = (quoted(&rule.name), rule.patterns());
        let patterns = sanitise(&patterns);
        if added {
            let back = format!("To take it back: sudo orphand spare --remove={name}");
            let wherever = if patterns.starts_with("program") { ", wherever it runs" } else { "" };
            format!("Spared from now on: {patterns}{wherever}, with all that it starts.\n{back}\n")
        } else {
            format!("Not spared any more: {patterns}.\n")
        }
    };
    let lines: String = rules.iter().map(line).collect();
    let effect = if reloaded { ", and in effect" } else { "; no daemon runs, the next one reads it" };
    format!("{lines}Written to {}{effect}.\n", shown(file))
}

fn listed(spared: &Spared) -> String {
    let line = |rule: &Rule| format!("{}: {}\n", sanitise(&rule.name), sanitise(&rule.patterns()));
    let lines: String = spared.rules().iter().map(line).collect();
    if lines.is_empty() { format!("Nothing is spared in {}.\n", shown(&spared.file)) } else { lines }
}
