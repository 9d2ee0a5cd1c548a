//! What the registry says of itself: whether it can vouch for the absence of a key, and which life it lives.
//!
//! A registry that restarts without its data, is emptied, or becomes the copy of another server has no key that it had
//! before. That says nothing about a session. Its life has a name for that: the id of its process, the id of its data
//! (which changes when it becomes a copy of another server), and how often it was emptied.

use std::{collections::BTreeMap, time::Duration};

use super::trouble::Trouble;
use orphand_core::model::{BootTime, RegistryLife};

/// The sections of `INFO` that are needed.
pub const SECTIONS: [&str; 3] = ["server", "replication", "commandstats"];
/// The commands that take all keys of a database away.
const EMPTYING: [&str; 3] = ["cmdstat_flushall", "cmdstat_flushdb", "cmdstat_swapdb"];
/// The longest id, in bytes.
const LONGEST: usize = 64;

/// The life of a registry that says this of itself. `asked` is when the question was sent.
pub fn read(sections: &[String], asked: BootTime) -> Result<RegistryLife, Trouble> {
    let fields: BTreeMap<&str, &str> = sections
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(|line| line.trim_end().split_once(':'))
        .collect();
    let id = |name: &str| {
        let id = fields.get(name).copied().filter(|id| !id.is_empty() && id.len() <= LONGEST);
        id.filter(|id| id.bytes().all(|b| b.is_ascii_alphanumeric())).ok_or(Trouble::Reply)
    };
    let is = |name: &str, value: &str| fields.get(name) == Some(&value);
    let is_copy = !is("role", "master");
    if is_copy && !(is("master_link_status", "up") && is("master_sync_in_progress", "0")) {
        return Err(Trouble::Loading);
    }
    let emptied = EMPTYING.iter().filter_map(|command| calls(fields.get(command)?));
    let emptied = emptied.fold(0, u64::saturating_add);
    let uptime = fields.get("uptime_in_seconds").and_then(|seconds| seconds.parse().ok());
    let began =
        uptime.map(|seconds| asked - Duration::from_secs(seconds)).filter(|_| emptied == 0 && !is_copy);
    Ok(RegistryLife { name: format!("{}/{}/{emptied}", id("run_id")?, id("master_replid")?), began })
}

/// How often a command was called: `calls=3,usec=..`.
fn calls(statistics: &str) -> Option<u64> {
    statistics.strip_prefix("calls=")?.split(',').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "# Server\r\nrun_id:aa11\r\nuptime_in_seconds:10\r\n";
    const MASTER: &str = "# Replication\r\nrole:master\r\nmaster_replid:bb22\r\n";

    fn life(sections: &[&str]) -> Result<RegistryLife, Trouble> {
        let sections: Vec<String> = sections.iter().map(ToString::to_string).collect();
        read(&sections, BootTime::default() + Duration::from_secs(100))
    }

    #[test]
    fn a_life_has_a_name_and_a_beginning() {
        let one = life(&[SERVER, MASTER, "# Commandstats\r\ncmdstat_get:calls=1,usec=1\r\n"]).unwrap();
        assert_eq!(
            (one.name.as_str(), one.began),
            ("aa11/bb22/0", Some(BootTime::default() + Duration::from_secs(90)))
        );
        let emptied =
            life(&[SERVER, MASTER, "cmdstat_flushall:calls=2,usec=1\r\ncmdstat_flushdb:calls=1,usec=9\r\n"])
                .unwrap();
        assert_eq!((emptied.name.as_str(), emptied.began), ("aa11/bb22/3", None));
        let much = format!("cmdstat_flushall:calls={}\r\ncmdstat_flushdb:calls=1\r\n", u64::MAX);
        assert!(life(&[SERVER, MASTER, &much]).is_ok());
    }

    #[test]
    fn who_cannot_vouch_is_no_registry() {
        let copy = |link: &str, sync: &str| {
            format!(
                "role:slave\r\nmaster_link_status:{link}\r\nmaster_sync_in_progress:{sync}\r\nmaster_replid:cc\r\n"
            )
        };
        assert!(life(&[SERVER, &copy("up", "0")]).is_ok());
        for (link, sync) in [("down", "0"), ("up", "1")] {
            assert_eq!(life(&[SERVER, &copy(link, sync)]).unwrap_err().kind(), "loading", "{link} {sync}");
        }
        for wrong in [&[][..], &[SERVER], &[MASTER], &["run_id:\r\n", MASTER], &["run_id:a b\r\n", MASTER]] {
            assert!(life(wrong).is_err(), "{wrong:?}");
        }
    }
}
