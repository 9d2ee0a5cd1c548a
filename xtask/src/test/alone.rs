//! Which tests have the host for themselves, or share it with few, and why. All others run side by side: their daemons judge
//! and signal only below the control group of their test, and their state, sockets and locks are their own.
//!
//! In the tests of scenes `scene_alone` says the same for whoever runs a test program by hand: it is a lock across all
//! test programs.

use anyhow::{Result, ensure};

use super::pool::Job;

/// The beginnings of their names, a program (of tests/tests a module) or a program and a test, and why. One that stands for
/// nothing is an error.
pub const ALONE: [(&str, &str); 7] = [
    ("bootstrap a_loss_is_told_and_repaired", "its daemon has a ring so small that any neighbour fills it"),
    ("doctor", "it reports every unit and process of the host: those of other tests, too"),
    ("kernel", "it storms the host, fills the kernel's tables, and counts what they report"),
    ("neighbours copies", "its 200 processes with 5,000 files each take all of two cores to look at"),
    ("neighbours shape::a_long_line_", "for how long it holds the loop is a matter of who else computes"),
    ("reaping a_reused_number_", "it sets the host's clock of process numbers back"),
    ("stage numbers_can_be_reused", "it sets the host's clock of process numbers back"),
];

/// Rounds of those that run few at a time: what they are called, how many, and who. Every daemon on the host follows the hundred
/// servers and more that each of a crowd has. Neighbours storm the host, and ask how long an honest user waits for a verdict.
pub const FEW: [(&str, usize, &[&str]); 2] = [
    ("crowds", 2, &["judgement every_situation_is_judged_right", "untether"]),
    ("neighbours", 3, &["neighbours"]),
];

/// Programs of which one process runs all tests: what they share costs more than what they do.
pub const WHOLE: [&str; 1] = ["kernel"];

/// The program that only computes, for minutes: it runs in the time that all others leave.
pub const COMPUTES: &str = "laws";

/// Programs of whose tests one runs at a time, in this order, beside all other tests, and why. Those of another reason are
/// other tests.
pub const IN_TURN: [(&str, &str); 10] = [
    ("generations", UNITS),
    ("openclaw", UNITS),
    ("units", UNITS),
    ("ps", WHOLE_HOST),
    ("duplicates", WHOLE_HOST),
    ("containers", ENGINES),
    ("containers_compose", ENGINES),
    ("containers_late", ENGINES),
    ("containers_podman", ENGINES),
    ("containers_rootless", ENGINES),
];

const UNITS: &str =
    "its units have names that those of another test have, too, below a service manager of their own";
const WHOLE_HOST: &str = "it looks at all processes of the host, without a daemon that keeps to its test";
const ENGINES: &str = "orphand stops no container while a client of an engine starts anywhere on the host, and podman keeps \
     the locks of all of its stores in one place of it";

/// Programs that begin first in their round, because they take the longest.
pub const FIRST: [&str; 7] =
    ["hunt", COMPUTES, "orphand_core (lib)", "orphand (lib)", "cancelled_jobs", "published", "judgement"];

/// Whether the test of this name has the host for itself.
pub fn is_alone(name: &str) -> bool {
    ALONE.iter().any(|(start, _)| is_of(start, name))
}

/// In which of the rounds of few the test of this name runs, by its place, if in one.
pub fn few(name: &str) -> Option<usize> {
    FEW.iter().position(|(.., all)| all.iter().any(|start| is_of(start, name)))
}

/// Why the tests that this one belongs to run one at a time, if they do.
pub fn turn(name: &str) -> Option<&'static str> {
    IN_TURN.iter().find(|(start, _)| is_of(start, name)).map(|(_, why)| *why)
}

/// Whether `start` is the whole name, its program, or the beginning of a name of more than a program.
pub fn is_of(start: &str, name: &str) -> bool {
    let of_test = start.contains(' ') && !start.ends_with(')');
    name.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ') || of_test)
}

/// Every line stands for a test.
pub fn stand_for_tests(jobs: &[Job]) -> Result<()> {
    let few = FEW.iter().flat_map(|(.., all)| *all);
    for start in ALONE.iter().chain(&IN_TURN).map(|(start, _)| start).chain(few) {
        let there = jobs.iter().any(|job| is_of(start, &job.name));
        ensure!(there, "there is no test {start:?} that does not run beside all others");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_or_the_beginning_of_a_test() {
        assert!(is_alone("kernel") && few("neighbours storm::a_storm_of_forks_delays_nobody") == Some(1));
        assert!(is_alone("reaping a_reused_number_is_no_suspect") && !is_alone("reaping of_another"));
        assert!(!is_alone("kernels") && !is_alone("containers the_twin"));
        assert!(stand_for_tests(&[]).is_err());
    }
}
