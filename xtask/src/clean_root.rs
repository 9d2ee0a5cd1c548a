//! Creates Debian's smallest root with mmdebstrap, from the sources that apt uses on this machine.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};

use crate::{command, privilege};

/// Makes it in `folder`, with these packages beside what every root has; `root` are the words that make a command
/// run as root. What was in the folder before is gone.
pub fn make(root: &[String], folder: &Path, with: &[&str]) -> Result<PathBuf> {
    command::say("test", "making a clean root");
    remove(root, folder)?;
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above).with_context(|| format!("cannot create {}", above.display()))?;
    }
    let asked = ["indextargets", "--format", "$(ORIGIN)|deb $(REPO_URI) $(RELEASE) $(COMPONENT)"];
    let said = command::output(Command::new("apt-get").args(asked).arg("Created-By: Packages"))?;
    let sources = of_distribution(&said);
    ensure!(!sources.is_empty(), "apt has no sources of Debian or Ubuntu: apt-get update");
    let configured = command::output(Command::new("apt-config").arg("dump"))?;
    let mut child = privilege::words(root, "mmdebstrap")
        .args(["--quiet", "--variant=minbase", &format!("--include={}", with.join(","))])
        .args(ways(&configured).map(|line| format!("--aptopt={line}")))
        .arg("")
        .arg(folder)
        .arg("-")
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot start mmdebstrap")?;
    let told = child.stdin.take().map(|mut stdin| stdin.write_all(sources.as_bytes()));
    ensure!(child.wait()?.success(), "mmdebstrap cannot make a root");
    told.transpose().context("cannot tell mmdebstrap the sources")?;
    Ok(folder.to_owned())
}

/// Removes one, if it is there; what is mounted in it stays.
pub fn remove(root: &[String], folder: &Path) -> Result<()> {
    if folder.exists() {
        command::run(privilege::words(root, "rm").args(["-rf", "--one-file-system"]).arg(folder))?;
    }
    Ok(())
}

/// The sources of the distribution itself, not what others offer for it.
fn of_distribution(said: &str) -> String {
    let theirs = |line: &str| {
        let (origin, source) = line.split_once('|')?;
        ["Debian", "Ubuntu"].contains(&origin).then(|| format!("{source}\n"))
    };
    said.lines().filter_map(theirs).collect()
}

/// What apt is told here of the way to its sources: proxies, and whether their dates count.
fn ways(configured: &str) -> impl Iterator<Item = &str> {
    let ways = ["Acquire::http::", "Acquire::https::", "Acquire::Check-"];
    configured.lines().filter(move |line| ways.iter().any(|way| line.starts_with(way)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_distributions_own_sources() {
        let said = "Debian|deb https://a/ stable main\nOthers|deb https://b/ stable main\n|deb c d e\n";
        assert_eq!(of_distribution(said), "deb https://a/ stable main\n");
    }

    #[test]
    fn the_way_is_proxies_and_dates() {
        let said = "APT::Architecture \"amd64\";\nAcquire::http::Proxy \"a\";\nAcquire::Languages \"none\";\n\
                    Acquire::Check-Date \"false\";\n";
        assert_eq!(
            ways(said).collect::<Vec<_>>(),
            ["Acquire::http::Proxy \"a\";", "Acquire::Check-Date \"false\";"]
        );
    }
}
