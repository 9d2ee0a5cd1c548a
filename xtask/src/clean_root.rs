//! Debian's smallest root, made by `tests/stage/clean_root.sh`.

use std::{ffi::OsString, path::Path, process::Command};

use anyhow::{Context as _, Result};

use crate::{command, workspace};

/// Makes it in `folder`, with these packages beside what every root has; `root` are the words that make a command
/// run as root.
pub fn make(root: &[OsString], folder: &Path, with: &str) -> Result<()> {
    command::say("test", "making a clean root");
    let script = Command::new(workspace::root().join("tests/stage/clean_root.sh"));
    command::run(command::behind(root, &script).arg(folder).arg(with)).context("cannot make a clean root")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Of apt's sources it takes the distribution's own, not what others offer for it; of its configuration the way to
    /// them: proxies, and whether dates count.
    #[test]
    fn mmdebstrap_is_told_the_distributions_own_sources_and_the_way_to_them() {
        let dir = tempfile::tempdir().unwrap();
        let program = |name: &str, script: &str| {
            let file = dir.path().join(name);
            fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        };
        program("apt-get", "printf 'Debian|deb https://a/ b c\nOthers|deb https://b/ b c\n|deb c d e\n'");
        let configured = "APT::Architecture \"amd64\";\nAcquire::http::Proxy \"a\";\nAcquire::Languages \"none\";\n\
                          Acquire::Check-Date \"false\";\n";
        program("apt-config", &format!("cat <<'END'\n{configured}END"));
        program("mmdebstrap", "printf '%s\\n' \"$@\"; cat");
        let (folder, path) = (dir.path().join("root"), std::env::var("PATH").unwrap());
        let mut script = Command::new(workspace::root().join("tests/stage/clean_root.sh"));
        let script = script.arg(&folder).arg("x,y").env("PATH", format!("{}:{path}", dir.path().display()));
        let said = command::output(script).unwrap();
        let ways = "--aptopt=Acquire::http::Proxy \"a\";\n--aptopt=Acquire::Check-Date \"false\";";
        let told = format!("--quiet\n--variant=minbase\n--include=x,y\n{ways}\n\n{}\n-\n", folder.display());
        assert_eq!(said, told + "deb https://a/ b c\n");
    }
}
