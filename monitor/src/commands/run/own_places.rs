//! Files and directories that the daemon writes must be its own: no other user may be able to put something in their place.

use anyhow::Context;

use crate::{
    cli,
    config::Config,
    os::{
        trust::{self, Distrust},
        users,
    },
};

const SERVICE_USER: &str = "orphand";

/// Refuses a place where another user could put a file in the way of what the daemon writes.
pub(super) fn require(flags: &cli::Run, config: &Config) -> anyhow::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    let places = [
        ("lock", Some(&flags.lock)),
        ("socket", Some(&config.socket)),
        ("state-dir", Some(&config.state_dir)),
        ("record", flags.record.as_ref()),
    ];
    for (option, path) in places {
        let Some(path) = path else { continue };
        let mut judged = trust::check_place(path, &[own]);
        if let Err(Distrust::Owner { uid, .. }) = &judged
            && users::user(SERVICE_USER).ok().flatten().is_some_and(|user| user.uid == *uid)
        {
            // The directories of the service are the same for a daemon that is started by hand.
            judged = trust::check_place(path, &[own, *uid]);
        }
        judged.with_context(|| {
            format!(
                "cannot use {}: others could put their own there; choose another place with --{option}",
                path.display()
            )
        })?;
    }
    Ok(())
}
