//! What `orphand history` reads.

use super::{super::history::history, *};
use orphand_core::model::{Doubt, Ending, HistoryQuery, KilledBy, Killer, Losses, PastOrphan};

fn query() -> HistoryQuery {
    HistoryQuery { boot_id: Some(BOOT.to_owned()), ..HistoryQuery::default() }
}

fn time(seconds: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(OFFSET / 1_000_000_000 + seconds).unwrap()
}

/// Two runs of a service, one of an agent, and an orphan without an owner.
fn story(store: &mut Store) {
    let mut facts = vec![
        (1, run(unit(), 1, true)),
        (2, run(claude(), 1, true)),
        (3, server(10, unit(), 1)),
        (3, server(20, unit(), 1)),
        (3, server(30, unit(), 1)),
        (3, server(40, claude(), 1)),
        (10, run(unit(), 1, false)),
        (11, run(unit(), 2, true)),
        (20, orphan(10, &[])),
        (20, orphan(20, &[])),
        (21, orphan(30, &[Guard::Multiplexer])),
        (22, Fact::Reaping { server: id(10), asked_by: Some("alice".to_owned()) }),
        (22, Fact::Reaping { server: id(20), asked_by: None }),
        (22, Fact::ReapFailed { server: id(20), pid: 21, error: "not permitted".to_owned() }),
        (23, reaped(10)),
        (24, Fact::Ended { server: id(40), end: Fate::Exited { ending: Ending::code(0) } }),
    ];
    let nobodys = Tracked { run: None, owner: None, ..tracked(50, unit(), 0) };
    facts.push((25, Fact::Server { server: nobodys }));
    facts.push((26, orphan(50, &[Guard::OwnUnit])));
    facts.push((27, Fact::Lost { losses: Losses { exec: 3, ..Losses::default() } }));
    record(store, facts);
}

#[test]
fn beside_a_running_daemon_and_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    story(&mut store);
    let beside = history(dir.path(), &query()).unwrap();
    store.record_stop(at(30)).unwrap();
    drop(store);
    let mut after = history(dir.path(), &query()).unwrap();
    assert_eq!(after.daemons[0].stopped.take(), Some(time(30)));
    assert_eq!(beside, after);
    let asked: Vec<_> = beside.orphans.iter().filter_map(|one| one.asked_by.as_deref()).collect();
    assert_eq!(asked, ["alice"]);

    let told: Vec<_> = beside
        .runs
        .iter()
        .map(|run| {
            let a = run.account;
            (run.run.unit.as_deref(), run.run.generation, run.ended, [a.servers, a.orphans, a.reaped, a.left])
        })
        .collect();
    let bot = Some("bot.service");
    assert_eq!(
        told,
        [
            (bot, Some(1), Some(time(10)), [3, 3, 1, 2]),
            (None, Some(1), None, [1, 0, 0, 0]),
            (bot, Some(2), None, [0, 0, 0, 0]),
        ]
    );
    assert_eq!((beside.unaccounted.orphans, beside.unaccounted.left), (1, 1));
    let sum = beside.sum();
    assert_eq!((sum.servers, sum.freed_bytes, sum.freed_pss_bytes), (5, 1_000_000, 400_000));

    let outcomes: Vec<_> =
        beside.orphans.iter().map(|o| (o.id.as_str(), o.outcome.clone(), o.failure.as_deref())).collect();
    let reaped = Fate::Reaped {
        signal: Some(Signal::Term),
        took_ms: Some(42),
        freed_bytes: 1_000_000,
        freed_pss_bytes: Some(400_000),
    };
    assert_eq!(
        outcomes,
        [
            ("10@100", reaped, None),
            ("20@200", Fate::Ending, Some("not permitted")),
            ("30@300", Fate::Stays, None),
            ("50@500", Fate::Stays, None),
        ]
    );
    assert_eq!(beside.orphans[2].guards, [Guard::Multiplexer]);
    // An agent is found by its number: the first of a run, and whose a server was.
    assert_eq!(
        beside.runs.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(),
        ["101@100", "101@100", "102@200"]
    );
    assert_eq!(
        beside.orphans.iter().map(|o| o.owner_id.as_deref()).collect::<Vec<_>>(),
        [Some("7@70"), Some("7@70"), Some("7@70"), None]
    );
    assert_eq!((beside.orphans[0].judged, beside.orphans[0].ended), (time(20), Some(time(23))));
    assert_eq!((beside.losses[0].at, beside.losses[0].records.exec), (time(27), 3));
}

#[test]
fn of_one_agent_and_of_late() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    story(&mut store);
    let of = |agent: &str| {
        let past = history(dir.path(), &HistoryQuery { agent: Some(agent.to_owned()), ..query() }).unwrap();
        (past.runs.len(), past.orphans.len(), past.daemons.len())
    };
    assert_eq!(of("bot.service"), (2, 3, 0));
    assert_eq!(of("claude"), (3, 3, 0));
    assert_eq!(of("codex"), (0, 0, 0));
    let since =
        |seconds| history(dir.path(), &HistoryQuery { since: Some(time(seconds)), ..query() }).unwrap();
    assert_eq!((since(10).runs.len(), since(11).runs.len()), (3, 2));
    assert_eq!((since(23).orphans.len(), since(24).orphans.len(), since(28).losses.len()), (4, 3, 0));
}

/// Everything ended with the host, whether a daemon saw it or not.
#[test]
fn after_another_boot() {
    let dir = tempfile::tempdir().unwrap();
    story(&mut open(dir.path()));
    let now = HistoryQuery { boot_id: Some("another".to_owned()), ..query() };
    let past = history(dir.path(), &now).unwrap();
    assert!(past.runs.iter().all(|run| run.ended.is_some() && run.account.left == 0));
    assert!(past.orphans.iter().all(|orphan| !matches!(orphan.outcome, Fate::Stays | Fate::Ending)));
    drop(open_in(dir.path(), "another", OFFSET + 3_600_000_000_000).unwrap());
    let past = history(dir.path(), &now).unwrap();
    assert_eq!(past.runs[1].ended, Some(time(3600)));
    assert_eq!(past.orphans[2].outcome, Fate::Unseen);
}

#[test]
fn without_a_store_it_is_one_line_and_none_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let error = history(dir.path(), &query()).unwrap_err().to_string();
    let file = dir.path().join("orphand.db");
    let expected = format!(
        "there is no store at {}: `orphand run` creates it; --state-dir names its directory",
        file.display()
    );
    assert_eq!(error, expected);
    assert!(!file.exists());
    std::fs::write(&file, "garbage".repeat(1000)).unwrap();
    let error = history(dir.path(), &query()).unwrap_err();
    assert!(error.is_damage(), "{error}");
    std::fs::remove_file(&file).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RUSR).unwrap();
    let error = history(dir.path(), &query()).unwrap_err().to_string();
    assert!(error.contains("is no regular file: move it away"), "{error}");
}

/// What keeps an orphan now is told, not what kept it first; and an end that no person asked for had no guard.
#[test]
fn the_guards_are_those_of_now() {
    let observe = || vec![Guard::Observe];
    let spared = |guards: &[Guard]| Fact::Spared { server: id(10), guards: guards.to_vec() };
    let reaping =
        |asked_by: Option<&str>| Fact::Reaping { server: id(10), asked_by: asked_by.map(Into::into) };
    let kept = |facts: &[Fact]| {
        let dir = tempfile::tempdir().unwrap();
        let mut store = open(dir.path());
        let begun = [server(10, claude(), 1), orphan(10, &observe())];
        record(&mut store, begun.iter().chain(facts).cloned().map(|fact| (1, fact)));
        let PastOrphan { guards, outcome, .. } = history(dir.path(), &query()).unwrap().orphans.remove(0);
        (guards, outcome)
    };
    assert_eq!(kept(&[]), (observe(), Fate::Stays));
    assert_eq!(kept(&[spared(&[Guard::ExemptRule])]), (vec![Guard::ExemptRule], Fate::Stays));
    assert_eq!(kept(&[reaping(None)]), (vec![], Fate::Ending));
    // A pause after the first signal, and its end.
    assert_eq!(kept(&[reaping(None), spared(&observe())]), (observe(), Fate::Stays));
    assert_eq!(kept(&[reaping(None), spared(&observe()), reaping(None)]), (vec![], Fate::Ending));
    let (guards, outcome) = kept(&[reaping(None), spared(&observe()), reaped(10)]);
    assert!(guards.is_empty() && matches!(outcome, Fate::Reaped { .. }), "{guards:?} {outcome:?}");
    // A person's word goes over a guard.
    assert_eq!(kept(&[reaping(Some("alice"))]), (observe(), Fate::Ending));
    assert_eq!(kept(&[reaping(Some("alice")), reaped(10)]).0, observe());
    // What is unproven by now has doubts and no guards.
    let unproven = [unproven(10, &[Doubt::Clients]), spared(&observe())];
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    record(&mut store, [server(10, claude(), 1)].into_iter().chain(unproven).map(|fact| (1, fact)));
    assert_eq!(history(dir.path(), &query()).unwrap().unproven[0].guards, []);
}

/// Servers that were unproven to their end, that still are, and that were for some time and became orphans.
#[test]
fn what_is_unproven_is_counted_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let mut facts = vec![(1, run(claude(), 1, false))];
    facts.extend((1..=7).map(|n| (2, server(n * 10, claude(), 1))));
    facts.extend((1..=6).map(|n| (3, unproven(n * 10, &[Doubt::WireHeld]))));
    facts.push((3, orphan(70, &[Guard::OwnUnit])));
    facts.extend([
        // Its doubts changed; it is still there.
        (4, unproven(10, &[Doubt::WireHeld, Doubt::Clients])),
        // One exited by itself, a user ended one, and the end of one was not observed.
        (4, Fact::Ended { server: id(20), end: Fate::Exited { ending: Ending::code(0) } }),
        (4, Fact::Reaping { server: id(30), asked_by: None }),
        (5, reaped(30)),
        (5, Fact::Ended { server: id(60), end: Fate::Unseen }),
        // One lost its last doubt and was ended as an orphan; for one a living owner was found.
        (4, orphan(40, &[])),
        (5, Fact::Reaping { server: id(40), asked_by: None }),
        (6, reaped(40)),
        (4, Fact::Cleared { server: id(50) }),
        // An orphan that a process began to use.
        (7, unproven(70, &[Doubt::StdoutRead])),
    ]);
    record(&mut store, facts);
    let past = history(dir.path(), &query()).unwrap();
    let account = past.runs[0].account;
    assert_eq!((account.servers, account.unproven, account.unproven_left), (7, 5, 2));
    assert_eq!((account.orphans, account.reaped, account.left), (1, 2, 0));
    let told: Vec<_> = past
        .unproven
        .iter()
        .map(|one| {
            (one.id.as_str(), one.judged, one.doubts.as_slice(), one.outcome.clone(), one.guards.len())
        })
        .collect();
    let ended = Fate::Reaped {
        signal: Some(Signal::Term),
        took_ms: Some(42),
        freed_bytes: 1_000_000,
        freed_pss_bytes: Some(400_000),
    };
    assert_eq!(
        told,
        [
            ("10@100", time(3), [Doubt::WireHeld, Doubt::Clients].as_slice(), Fate::Stays, 0),
            ("20@200", time(3), &[Doubt::WireHeld], Fate::Exited { ending: Ending::code(0) }, 0),
            ("30@300", time(3), &[Doubt::WireHeld], ended, 0),
            ("60@600", time(3), &[Doubt::WireHeld], Fate::Unseen, 0),
            ("70@700", time(7), &[Doubt::StdoutRead], Fate::Stays, 0),
        ]
    );
    let orphans: Vec<_> = past.orphans.iter().map(|one| (one.id.as_str(), one.doubts.len())).collect();
    assert_eq!(orphans, [("40@400", 0)]);
    // All ended with the host.
    let later =
        history(dir.path(), &HistoryQuery { boot_id: Some("another".to_owned()), ..query() }).unwrap();
    assert_eq!((later.sum().unproven, later.sum().unproven_left), (5, 0));
    let since = history(dir.path(), &HistoryQuery { since: Some(time(5)), ..query() }).unwrap();
    assert_eq!(since.unproven.len(), 4, "one ended before");
}

#[test]
fn each_signal_with_the_verdict_of_its_moment() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let sent = |pid, signal, asked| Fact::Signalled {
        server: id(10),
        process: id(pid),
        program: "node".to_owned(),
        signal,
        asked,
    };
    record(
        &mut store,
        [
            (1, run(unit(), 1, true)),
            (2, server(10, unit(), 1)),
            (5, orphan(10, &[])),
            (6, sent(10, Signal::Term, false)),
            (7, sent(10, Signal::Term, false)),
            // A fact that comes twice is one.
            (7, sent(10, Signal::Term, false)),
            // A later verdict is not that of an earlier signal.
            (8, Fact::Cleared { server: id(10) }),
            (9, unproven(10, &[Doubt::Clients])),
            (10, sent(11, Signal::Kill, true)),
        ],
    );
    let told = |query: &HistoryQuery| -> Vec<_> {
        let past = history(dir.path(), query).unwrap();
        past.signals
            .iter()
            .map(|one| (one.at, one.pid, one.signal, one.asked, one.evidence.len(), one.doubts.len()))
            .collect()
    };
    let all = [
        (time(6), 10, Signal::Term, false, 2, 0),
        (time(7), 10, Signal::Term, false, 2, 0),
        (time(10), 11, Signal::Kill, true, 1, 1),
    ];
    assert_eq!(told(&query()), all);
    let between =
        |since, until| HistoryQuery { since: Some(time(since)), until: Some(time(until)), ..query() };
    assert_eq!(told(&between(7, 9)), all[1..2]);
    assert!(told(&between(8, 9)).is_empty());
    let of = |agent: &str| HistoryQuery { agent: Some(agent.to_owned()), ..query() };
    assert_eq!((told(&of("bot.service")).len(), told(&of("codex")).len()), (3, 0));
    let past = history(dir.path(), &between(0, 3)).unwrap();
    assert_eq!((past.runs.len(), past.unproven.len(), past.begins.is_some()), (1, 0, true));
    // They go with their server.
    drop(store);
    let db = rusqlite::Connection::open(dir.path().join("orphand.db")).unwrap();
    db.execute("DELETE FROM servers", []).unwrap();
    assert_eq!(number(dir.path(), "SELECT count(*) FROM signals"), 0);
}

/// How a server ended that orphand did not end, and by whom: of those that were judged, and of the others for who asks.
#[test]
fn who_ended_a_server_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let sender = Killer {
        pid: Some(47),
        program: Some("pkill".to_owned()),
        user: Some("alice".to_owned()),
        ..Killer::of(KilledBy::Process)
    };
    let killed = Ending::signal(9, Some(sender));
    record(
        &mut store,
        [
            (1, run(claude(), 1, true)),
            (2, server(10, claude(), 1)),
            (2, server(20, claude(), 1)),
            (2, server(30, claude(), 1)),
            (3, orphan(10, &[Guard::Observe])),
            (4, Fact::Ended { server: id(10), end: Fate::Exited { ending: killed.clone() } }),
            (5, Fact::Ended { server: id(20), end: Fate::Exited { ending: Ending::signal(15, None) } }),
        ],
    );
    let past = history(dir.path(), &query()).unwrap();
    assert_eq!(past.orphans[0].outcome, Fate::Exited { ending: killed });
    assert_eq!(past.never_judged, []);
    let past = history(dir.path(), &HistoryQuery { never_judged: true, ..query() }).unwrap();
    let [one] = past.never_judged.as_slice() else { panic!("{:?}", past.never_judged) };
    assert_eq!((one.id.as_str(), one.ended), ("20@200", Some(time(5))));
    assert_eq!(one.outcome, Fate::Exited { ending: Ending::signal(15, None) });
}
