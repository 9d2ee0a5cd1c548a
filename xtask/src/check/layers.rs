//! Checks the layers: which module may use which, in the core and in the shell; that the core does no I/O; and that
//! only one folder of modules reads /proc.

use std::path::Path;

use anyhow::Result;

use super::scan;
use crate::files;

/// A module of the first level and what it may use. What is not listed is on top: it may use everything, and nothing
/// listed may use it.
type Layers = &'static [(&'static str, &'static str)];

/// The pure core, a crate of its own below `monitor/core`: total, synchronous, deterministic.
const CORE: Layers = &[
    ("model", ""),
    ("recognise", "model"),
    ("lineage", "model recognise"),
    ("case", "model"),
    ("world", "model lineage recognise case"),
    ("reach", "model recognise"),
    ("verdict", "model lineage recognise case world reach"),
    ("engine", "model lineage recognise case world reach verdict"),
];

/// The rooms of the shell below `monitor`.
const SHELL: Layers = &[
    ("os", "model"),
    ("helper", "model os"),
    ("host", "model os helper"),
    ("source", "model os host"),
    ("read", "model recognise os host source"),
    ("probe", "model recognise verdict os host source helper read"),
    ("sink", "model os"),
    ("explain", "model sink"),
    ("actuator", "model os host"),
    ("store", "model os"),
    ("events", "model os sink store"),
    ("driver", "model recognise engine os host source probe"),
    ("control", "model os host sink probe store events"),
];

/// The rooms that name files of /proc: the one that reads it, and the one that knows this program's own part of it.
const PROC: [&str; 2] = ["host", "os"];

/// What the core must not name: I/O, clocks, the runtime, the kernel, and what differs from run to run.
const IMPURE: &str = "std::fs std::env std::net std::process std::thread std::io Instant SystemTime tokio aya rustix \
    procfs tracing println eprintln RandomState thread_rng";

/// Violations of both packages; `root` is the repository.
pub fn findings(root: &Path) -> Result<Vec<String>> {
    let mut findings = below(root, "monitor/core/src", CORE)?;
    findings.extend(below(root, "monitor/src", SHELL)?);
    Ok(findings)
}

fn below(root: &Path, folder: &str, layers: Layers) -> Result<Vec<String>> {
    let src = &root.join(folder);
    let mut findings = Vec::new();
    for file in scan::files(src)? {
        let relative = file.strip_prefix(src).unwrap_or(&file);
        if relative.extension().is_none_or(|e| e != "rs") || scan::is_test(relative) {
            continue;
        }
        let text = files::read(&file)?;
        findings.extend(
            judge(layers, relative, &scan::code(&text))
                .into_iter()
                .chain(reads_proc(relative, &text))
                .map(|what| format!("{folder}/{}: {what}", relative.display())),
        );
    }
    Ok(findings)
}

/// The first-level module that a file belongs to.
fn module(relative: &Path) -> String {
    let first = relative.iter().next().unwrap_or_default();
    Path::new(first).file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn judge(layers: Layers, relative: &Path, code: &str) -> Vec<String> {
    let module = module(relative);
    let Some((_, may)) = layers.iter().find(|(name, _)| *name == module) else { return Vec::new() };
    let mut used = scan::modules_below(code, "crate");
    used.extend(scan::modules_below(code, "orphand_core"));
    // In the root file of a first-level module `super` is the crate.
    let depth = relative.components().count();
    if depth == 1 || (depth == 2 && relative.file_name().is_some_and(|name| name == "mod.rs")) {
        used.extend(scan::modules_below(code, "super"));
    }
    let mut findings: Vec<String> = used
        .iter()
        // Types and macros that the crate's root re-exports have capitals.
        .filter(|name| **name != module && may.split(' ').all(|room| room != *name))
        .map(|name| format!("`{module}` must not use `{name}`"))
        .collect();
    if CORE.iter().any(|(name, _)| *name == module) {
        let compact: String = code.split_whitespace().collect::<Vec<_>>().join(" ");
        // `use std::{fs, ..}` names `std::fs` too.
        let grouped = scan::modules_below(code, "std");
        let is_named = |name: &str| {
            scan::has_word(&compact, name)
                || name.strip_prefix("std::").is_some_and(|it| grouped.contains(it))
        };
        let impure = IMPURE.split_ascii_whitespace().filter(|name| is_named(name));
        findings.extend(impure.map(|name| format!("the core must not use `{name}`")));
    }
    findings
}

/// A path of /proc in a room of the shell that does not read it.
fn reads_proc(relative: &Path, text: &str) -> Option<String> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let module = module(relative);
    let is_elsewhere = !PROC.contains(&&*module) && CORE.iter().all(|(name, _)| *name != module);
    (is_elsewhere && code.contains("\"/proc/")).then(|| "only `host` reads files of /proc".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(file: &str, code: &str) -> Vec<String> {
        let layers = if CORE.iter().any(|(name, _)| file.starts_with(name)) { CORE } else { SHELL };
        judge(layers, Path::new(file), &scan::code(code))
    }

    #[test]
    fn down_is_allowed_and_up_is_not() {
        assert_eq!(
            judged("world/runs.rs", "use crate::{lineage::Graph, model::ProcessId};"),
            Vec::<String>::new()
        );
        assert_eq!(judged("lineage/graph.rs", "use crate::world::Runs;"), ["`lineage` must not use `world`"]);
        assert_eq!(judged("engine.rs", "use super::sink;"), ["`engine` must not use `sink`"]);
        assert_eq!(
            judged("lineage/mod.rs", "use super::engine::Engine;"),
            ["`lineage` must not use `engine`"]
        );
    }

    #[test]
    fn a_super_further_down_stays_in_the_module() {
        assert_eq!(judged("lineage/graph.rs", "use super::node::Node;"), Vec::<String>::new());
    }

    #[test]
    fn sources_and_sinks_do_not_know_each_other_nor_the_graph() {
        assert_eq!(judged("sink/stream.rs", "use crate::source::x;"), ["`sink` must not use `source`"]);
        assert_eq!(
            judged("probe/stdio.rs", "fn f(g: &orphand_core::lineage::Graph) {}"),
            ["`probe` must not use `lineage`"]
        );
        assert_eq!(
            judged("source/kernel.rs", "use crate::os::clock;\nuse orphand_core::model::Signal;"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn the_top_may_use_everything() {
        assert_eq!(judged("daemon.rs", "use crate::{engine, sink, source};"), Vec::<String>::new());
        assert_eq!(judged("sink/mod.rs", "use crate::daemon;"), ["`sink` must not use `daemon`"]);
    }

    #[test]
    fn one_room_reads_proc() {
        let text = "fn f() { read(\"/proc/1/stat\") }\n#[cfg(test)]\nmod tests {}";
        assert!(reads_proc(Path::new("host/stat.rs"), text).is_none());
        assert!(reads_proc(Path::new("probe/wire.rs"), text).is_some());
        let tested = "#[cfg(test)]\nmod tests { const SELF: &str = \"/proc/self\"; }";
        assert!(reads_proc(Path::new("probe/wire.rs"), tested).is_none());
        assert!(reads_proc(Path::new("sink/human.rs"), "\"repaired from /proc: \"").is_none());
    }

    #[test]
    fn the_core_does_no_io() {
        let clean = "use std::{collections::BTreeMap, time::Duration};\nfn instantiate() {}";
        assert_eq!(judged("engine.rs", clean), Vec::<String>::new());
        assert_eq!(
            judged("engine.rs", "use std::{fs, time::Duration};"),
            ["the core must not use `std::fs`"]
        );
        assert_eq!(
            judged("lineage/a.rs", "let now = std::time::Instant::now();"),
            ["the core must not use `Instant`"]
        );
        assert_eq!(judged("source/a.rs", "use std::fs;"), Vec::<String>::new());
    }
}
