//! A disk that does not answer. The test holds the write lock to simulate it.

use super::{super::writer::PENDING, *};

#[test]
fn one_that_hangs_is_waited_for_once_and_written_when_it_answers() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    writer.remember(at(1), &run(claude(), 1, true));
    commit_all(&mut writer);
    let hung = hang(dir.path());
    let begun = Instant::now();
    for generation in 2..1000 {
        writer.remember(at(2), &run(claude(), generation, true));
        let error = writer.try_commit().unwrap_err();
        assert!(error.to_string().contains("has not answered"), "{error}");
    }
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "1,000 facts held the daemon {took:?}");
    assert_eq!((writer.queued.len(), writer.blind().is_some()), (997, true));
    assert_eq!(number(dir.path(), "SELECT count(*) FROM runs"), 1);
    drop(hung);
    commit_all(&mut writer);
    assert_eq!(number(dir.path(), "SELECT count(*) FROM runs"), 999);
    // What was confirmed survives without a regular stop.
    writer.remember(at(3), &run(claude(), 1000, true));
    commit_all(&mut writer);
    assert_eq!(number(dir.path(), "SELECT max(generation) FROM runs"), 1000);
}

#[test]
fn what_waits_is_written_when_the_daemon_stops() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let hung = hang(dir.path());
    writer.remember(at(1), &run(claude(), 1, true));
    assert!(writer.try_commit().is_err());
    writer.remember(at(2), &run(claude(), 2, true));
    let error = writer.record_stop(at(3)).unwrap_err();
    assert!(error.to_string().contains("has not answered"), "{error}");
    drop(hung);
    let begun = Instant::now();
    while writer.record_stop(at(3)).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "still not written");
    }
    drop(writer);
    assert_eq!(number(dir.path(), "SELECT count(*) FROM runs"), 2);
    assert_eq!(number(dir.path(), "SELECT count(*) FROM daemons WHERE stopped IS NULL"), 0);
}

/// Two facts more than there is room for, one of which was already sent.
#[test]
fn memory_is_bounded_while_it_hangs() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let hung = hang(dir.path());
    writer.remember(at(1), &run(claude(), 1, true));
    assert!(writer.try_commit().is_err());
    for pid in 10..=11 + u32::try_from(PENDING).unwrap() {
        writer.remember(at(2), &server(pid, claude(), 1));
    }
    assert_eq!(writer.queued.len(), PENDING);
    drop(hung);
    commit_all(&mut writer);
    assert_eq!(number(dir.path(), "SELECT min(pid) FROM servers"), 12);
}
