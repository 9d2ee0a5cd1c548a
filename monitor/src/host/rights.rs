//! The rights of a process, as far as they say whether it can open a file of somebody else's.
//!
//! All of it is in `status`, which a process cannot withhold (see `watch`).

use rustix::{fs::Stat, io::Errno};

use super::{Proc, fields, read};

/// With whose rights a process acts, and what it is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Its name, at most 15 bytes of it.
    pub name: Vec<u8>,
    /// Its user ids: real, effective, saved, for files.
    users: Vec<u32>,
    /// Its group ids, the supplementary ones included.
    groups: Vec<u32>,
    /// Whether it has capabilities that hold for files of the user who was asked about.
    capable: bool,
}

/// `status` is shorter, however long the list of groups is.
const STATUS: usize = 512 << 10;
const GROUP_WRITES: u32 = 0o020;
const ALL_WRITE: u32 = 0o002;

impl Proc {
    /// The rights of the process that has this pid now, to files of this `owner`.
    pub fn rights(&self, pid: u32, owner: u32) -> Result<Rights, Errno> {
        let (status, _) = read(&*self.root, &format!("{pid}/status"), STATUS)?;
        let mut rights = parse(&status).ok_or(Errno::INVAL)?;
        // Capabilities in a user namespace hold only for whom it has a number.
        rights.capable = rights.capable && {
            let (map, _) = read(&*self.root, &format!("{pid}/uid_map"), 16 * 1024)?;
            let map = std::str::from_utf8(&map).map_err(|_| Errno::INVAL)?;
            super::process::mapped(map, owner).is_some()
        };
        Ok(rights)
    }
}

impl Rights {
    /// Whether it may write to a file, or connect to a socket, with this status and without an access list. The
    /// directories on the way are not looked at: they can only forbid it.
    pub fn may_write(&self, file: &Stat) -> bool {
        self.capable
            || self.users.iter().any(|user| *user == 0 || *user == file.st_uid)
            || file.st_mode & ALL_WRITE != 0
            || (file.st_mode & GROUP_WRITES != 0 && self.groups.contains(&file.st_gid))
    }
}

fn parse(status: &[u8]) -> Option<Rights> {
    let numbers = |name| fields::words(status, name)?.map(|word| word.parse().ok()).collect::<Option<_>>();
    let capabilities = |name| u64::from_str_radix(fields::words(status, name)?.next()?, 16).ok();
    let (users, mut groups): (Vec<u32>, Vec<u32>) = (numbers("Uid")?, numbers("Gid")?);
    let more: Vec<u32> = numbers("Groups")?;
    groups.extend(more);
    let name = status.strip_prefix(b"Name:\t")?.split(|byte| *byte == b'\n').next()?.to_vec();
    let capable = capabilities("CapPrm")? | capabilities("CapEff")? != 0;
    Some(Rights { name, users, groups, capable })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(users: &str, groups: &str, capabilities: &str) -> Rights {
        let text = format!(
            "Name:\tdocker\nUid:\t{users}\nGid:\t7\t7\t7\t7\nGroups:\t{groups} \nCapPrm:\t{capabilities}\nCapEff:\t0\n"
        );
        parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn who_may_open_the_socket_of_an_engine() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = rustix::fs::stat(dir.path()).unwrap();
        (file.st_uid, file.st_gid) = (0, 999);
        let mut may = |users, groups, capabilities, mode: u32| {
            let rights = status(users, groups, capabilities);
            file.st_mode = 0o140_000 | mode;
            rights.may_write(&file)
        };
        let own = "1000\t1000\t1000\t1000";
        assert!(!may(own, "1000 27", "0", 0o660));
        assert!(may(own, "1000 999", "0", 0o660));
        // The group may not.
        assert!(!may(own, "1000 999", "0", 0o600));
        assert!(may(own, "", "0", 0o666));
        assert!(may("1000\t0\t1000\t1000", "", "0", 0o600));
        assert!(may("0\t0\t0\t0", "", "0", 0o600));
        assert!(may(own, "", "0000000000000002", 0o600));
        assert_eq!(status(own, "", "0").name, b"docker");
        assert_eq!(parse(b"Name:\tx\n"), None);
    }

    #[test]
    fn our_own_rights_are_read() {
        let proc = Proc::system().unwrap();
        let own = proc.rights(std::process::id(), 0).unwrap();
        assert_eq!(own.users.first(), Some(&rustix::process::getuid().as_raw()));
        assert_eq!(proc.rights(u32::MAX, 0), Err(Errno::NOENT));
    }
}
