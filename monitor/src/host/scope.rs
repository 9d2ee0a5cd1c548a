//! The part of the host that a daemon under test keeps to: what runs below control groups of its test.
//!
//! A control group is inherited by fork(2), whatever a process does to its parents, sessions and environment. It is read
//! in every hierarchy: what runs a unit or a container moves it in some of them only.

use std::{str::FromStr, sync::Arc};

use rustix::fs::CWD;

use super::{CGROUP_MAX, cgroup::group, read};

/// The beginning of the names of control groups. A process is inside if it is in one of them, or below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope(Arc<str>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Inside,
    Outside,
    /// Its control groups cannot be read: it has ended, for instance.
    Unseen,
}

impl Scope {
    /// Where the process that has this number now is. No lock that a process can hold is taken for that.
    pub fn place(&self, pid: u32) -> Place {
        match read(CWD, &format!("/proc/{pid}/cgroup"), CGROUP_MAX) {
            Ok((text, more)) => self.place_by(&String::from_utf8_lossy(&text), more),
            Err(_) => Place::Unseen,
        }
    }

    /// By the text of `/proc/PID/cgroup`: one line `ID:CONTROLLERS:PATH` for each hierarchy. A zombie may have none.
    fn place_by(&self, text: &str, more: bool) -> Place {
        let paths = || text.lines().filter_map(group).map(|(_, path)| path);
        if paths().any(|path| path.split('/').any(|name| name.starts_with(&*self.0))) {
            Place::Inside
        } else if more || paths().next().is_none() {
            Place::Unseen
        } else {
            Place::Outside
        }
    }
}

impl FromStr for Scope {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if name.is_empty() || name.contains('/') {
            return Err("it must be the beginning of the name of a control group");
        }
        Ok(Self(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_hierarchy_and_any_depth_counts() {
        let scope: Scope = "test-7-".parse().unwrap();
        let place = |text| scope.place_by(text, false);
        assert_eq!(place("9:name=systemd:/\n0::/test-7-1\n"), Place::Inside);
        assert_eq!(place("0::/a.slice/test-7-1/b.service\n"), Place::Inside);
        assert_eq!(place("4:memory:/test-7-boxes/docker/1\n0::/\n"), Place::Inside);
        assert_eq!(place("0::/test-7-1 (deleted)\n"), Place::Inside);
        assert_eq!(place("9:name=systemd:/\n0::/test-71-1\n"), Place::Outside);
        assert_eq!(place("0::/user.slice/not-test-7-1\n"), Place::Outside);
    }

    #[test]
    fn what_cannot_be_read_is_neither() {
        let scope: Scope = "test-7-".parse().unwrap();
        assert_eq!(scope.place_by("", false), Place::Unseen);
        assert_eq!(scope.place_by("0::/other", true), Place::Unseen);
        assert_eq!(scope.place(0), Place::Unseen);
        assert_eq!(scope.place(std::process::id()), Place::Outside);
    }

    #[test]
    fn a_scope_is_a_name() {
        assert!("".parse::<Scope>().is_err());
        assert!("/".parse::<Scope>().is_err());
    }
}
