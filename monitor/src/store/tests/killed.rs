//! SIGKILL at random times.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::ExitStatusExt as _,
    process::{Command, Stdio},
};

use super::*;

/// The variable that gives the child process its directory.
const DIRECTORY: &str = "ORPHAND_TEST_STORE";
const KILLS: u32 = 30;
/// Servers of each run.
const SERVERS: u32 = 3;

/// Not a test of its own but the process that is killed. It takes the next number, writes the run and the
/// lives of its servers, prints each after the commit, and continues.
#[test]
fn writes_until_it_is_killed() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let Opened { mut store, knowledge: known, .. } = open_in(Path::new(&dir), BOOT, OFFSET).unwrap();
    let mut out = std::io::stdout();
    // What was judged and did not end while the previous daemon ran.
    let unseen = |id| Fact::Ended { server: id, end: Fate::Unseen };
    record(&mut store, known.servers.iter().map(|one| (1, unseen(one.server.id))));
    let last = known.runs.iter().map(|run| run.run.generation).max().unwrap_or(0);
    for generation in last + 1.. {
        record(&mut store, [(generation, run(claude(), generation, true))]);
        writeln!(out, "\nbegan {generation}").unwrap();
        for n in 0..SERVERS {
            let pid = u32::try_from(generation).unwrap() * 10 + n;
            for fact in life(pid, &claude(), generation) {
                record(&mut store, [(generation, fact)]);
            }
            writeln!(out, "reaped {pid}").unwrap();
        }
        record(&mut store, [(generation, run(claude(), generation, false))]);
        // Often, so that kills occur during it.
        if generation.is_multiple_of(20) {
            tidy(&mut store);
        }
    }
}

#[test]
fn no_number_is_lost_or_given_twice_and_nothing_counts_twice() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = std::process::id();
    let (mut began, mut reaped) = (0, Vec::new());
    for _ in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::tests::killed::writes_until_it_is_killed", "--nocapture"])
            .env(DIRECTORY, dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // An xorshift generator: a random time within the first hundred milliseconds of its work.
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut first =
            lines.by_ref().map(Result::unwrap).find(|line| line.starts_with("began ")).into_iter();
        std::thread::sleep(Duration::from_micros(u64::from(random % 100_000)));
        child.kill().unwrap();
        for line in first.by_ref().chain(lines.map_while(Result::ok)) {
            match line.split_once(' ') {
                Some(("began", number)) => {
                    let number: u64 = number.parse().unwrap();
                    assert!(number > began, "{number} was given twice: {began} was the last");
                    // What was committed and could not be said any more is one number at most for each kill.
                    assert!(number <= began + 2, "{began} is followed by {number}");
                    began = number;
                }
                Some(("reaped", pid)) => reaped.push(pid.parse::<u32>().unwrap()),
                _ => {}
            }
        }
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }
    assert!(began > u64::from(KILLS), "{began} runs in {KILLS} lives");

    let last = known(dir.path()).runs.iter().map(|run| run.run.generation).max().unwrap();
    assert!(last >= began, "{last} after {began}");
    let runs = |what: &str| number(dir.path(), &format!("SELECT {what} FROM runs"));
    let last = i64::try_from(last).unwrap();
    assert_eq!((runs("min(generation)"), runs("max(generation)"), runs("count(*)")), (1, last, last));
    let count = |what: &str| number(dir.path(), &format!("SELECT count(*) FROM servers WHERE {what}"));
    let all = count("true");
    assert_eq!(all, count("pid IN (SELECT DISTINCT pid FROM servers)"));
    assert_eq!(count("how = 'reaped' AND freed = 1000000 AND judged IS NOT NULL"), count("how = 'reaped'"));
    // Everything that was printed as reaped is stored; at most one more per life.
    let told = i64::try_from(reaped.len()).unwrap();
    let more = count("how = 'reaped'") - told;
    assert!((0..=i64::from(KILLS)).contains(&more), "{told} told, {more} more");
    for pid in reaped {
        assert_eq!(count(&format!("how = 'reaped' AND pid = {pid}")), 1, "{pid}");
    }
    assert_eq!(
        number(dir.path(), "SELECT count(*) FROM daemons WHERE stopped IS NULL"),
        i64::from(KILLS) + 1
    );
}
