//! What came of the tests.

use std::ops::AddAssign;

use anyhow::{Result, bail};

/// What came of the tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Processes that ended in failure, for whatever reason: one that crashed counts no test.
    pub broken: u64,
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.broken += other.broken;
    }
}

impl Count {
    /// Takes in what a test program printed, and whether it ended well.
    pub fn add(&mut self, printed: &str, well: bool) {
        printed.lines().for_each(|line| self.read(line));
        self.broken += u64::from(!well);
    }

    /// Takes in a line such as `test result: ok. 9 passed; 0 failed; 1 ignored; 0 measured; ..`.
    fn read(&mut self, line: &str) {
        let Some((_, counts)) = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for part in counts.split("; ") {
            match part.split_once(' ') {
                Some((n, "passed")) => self.passed += n.parse().unwrap_or(0),
                Some((n, "failed")) => self.failed += n.parse().unwrap_or(0),
                _ => {}
            }
        }
    }

    /// Says it, and whether it is good.
    pub fn judge(&self, filter: Option<&str>) -> Result<()> {
        println!("\nxtask: {} passed, {} failed", self.passed, self.failed);
        if self.failed > 0 || self.broken > 0 {
            bail!("{} tests failed, {} test programs ended in failure", self.failed, self.broken);
        }
        if self.passed == 0 {
            bail!("no test was run; is there one named like \"{}\"?", filter.unwrap_or_default());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_closing_lines_of_test_programs() {
        let mut count = Count::default();
        let first = "running 9 tests\ntest a::b ... ok\n\
            test result: ok. 9 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        count.add(first, true);
        count.add("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 7 filtered out\n", false);
        assert_eq!(count, Count { passed: 12, failed: 2, broken: 1 });
        assert!(count.judge(None).is_err());
    }
}
