//! The turns of users, and what waits.

use super::*;
use orphand_core::model::ProcessId;

fn request(token: u64) -> Request {
    Request { token, about: Box::new(About::Memory(Vec::new())) }
}

fn queue(requests: &[(u32, u64)]) -> Queue {
    let mut queue = Queue::new(Budgets::new(seconds(1, 100), None));
    for (user, token) in requests {
        queue.by_user.entry(Share::of(*user)).or_default().push_back(request(*token));
        queue.waiting += 1;
    }
    queue
}

fn taken(queue: &mut Queue) -> Option<(Share, u64)> {
    queue.take(Instant::now()).map(|(user, requests)| (user, requests[0].token))
}

#[test]
fn one_user_has_one_thread_at_a_time() {
    let mut queue = queue(&[(7, 1), (7, 2), (7, 3), (8, 4)]);
    assert_eq!(taken(&mut queue), Some((Share::of(7), 1)));
    assert_eq!(taken(&mut queue), Some((Share::of(8), 4)));
    assert_eq!(taken(&mut queue), None);
    queue.busy.remove(&Share::of(7));
    assert_eq!(taken(&mut queue), Some((Share::of(7), 2)));
    // A range of numbers is one user.
    let mut queue = self::queue(&[(100_000, 1), (100_001, 2)]);
    assert!(taken(&mut queue).is_some() && taken(&mut queue).is_none());
}

/// However many looks of a user hang, and whatever else waits: they have one of the threads, and the others are
/// there for the other users.
#[test]
fn a_user_whose_looks_hang_has_one_thread() {
    let mut all: Vec<(u32, u64)> = (0..1000).map(|token| (7, token)).collect();
    all.extend((1000..1100).map(|token| (8 + u32::try_from(token % 5).unwrap(), token)));
    let mut queue = queue(&all);
    let mut others = 0;
    while let Some((user, _)) = taken(&mut queue) {
        if user != Share::of(7) {
            others += 1;
            queue.busy.remove(&user);
        }
    }
    assert_eq!((others, queue.by_user.len(), queue.by_user[&Share::of(7)].len()), (100, 1, 999));
}

#[test]
fn looks_that_wait_are_bounded() {
    let probe = Probe::new().unwrap();
    let mut inspections = Inspections::default();
    let busy = (7..1000).map(Share::of).collect();
    inspections.crews[Haste::AtLeisure as usize].shared.queue().busy = busy;
    let mut ask = |user: u32, token| {
        inspections.ask(&probe, Haste::AtLeisure, Share::of(user), request(token)).unwrap();
        inspections.answers.try_recv().ok()
    };
    let nothing = |token| Some((token, Answer::FirstMessage { message: FirstMessage::Nothing }));
    for token in 0..2000 {
        assert_eq!(ask(7, token), nothing(token).filter(|_| token >= 512));
    }
    // Another user has a share of his own, until there are too many users.
    assert_eq!(ask(8, 0), None);
    let asked = (9..1000).flat_map(|user| (0..100).map(move |token| (user, token)));
    assert_eq!(asked.filter(|(user, token)| ask(*user, *token).is_none()).count(), 8192 - 513);
}

#[test]
fn inspections_do_not_wait_for_what_nobody_waits_for() {
    let probe = Probe::new().unwrap();
    let mut inspections = Inspections::default();
    // Its thread is busy, and stays so.
    inspections.crews[Haste::AtLeisure as usize].shared.queue().busy.insert(Share::of(7));
    for token in 0..128 {
        inspections.ask(&probe, Haste::AtLeisure, Share::of(7), request(token)).unwrap();
    }
    for (haste, token) in [(Haste::InTurn, 200), (Haste::AtOnce, 201)] {
        inspections.ask(&probe, haste, Share::of(7), request(token)).unwrap();
        assert_eq!(inspections.answers.blocking_recv().unwrap().0, token);
    }
    assert_eq!(inspections.crews[Haste::AtLeisure as usize].shared.queue().by_user[&Share::of(7)].len(), 128);
}

#[test]
fn who_has_spent_too_much_waits_and_nobody_else() {
    let mut queue = queue(&[(7, 1), (7, 2), (8, 3)]);
    let now = Instant::now();
    queue.budgets.charge(Share::of(7), now, Duration::from_secs(2));
    assert_eq!(queue.take(now).map(|(user, _)| user), Some(Share::of(8)));
    assert!(queue.take(now).is_none());
    assert_eq!(queue.waits(now), Some(Duration::from_secs(100)));
    let later = now + Duration::from_secs(100);
    assert_eq!(queue.take(later).map(|(user, requests)| (user, requests[0].token)), Some((Share::of(7), 1)));
    assert_eq!(queue.waits(later), None, "a thread is busy for that user");
}

#[test]
fn users_whose_servers_take_long_leave_a_thread_to_others() {
    let mut queue = queue(&[(7, 1), (8, 2), (9, 3), (10, 4)]);
    let now = Instant::now();
    queue.budgets = Budgets::new(seconds(30, 4), None);
    for user in [7, 8, 9] {
        queue.budgets.charge(Share::of(user), now, 2 * LITTLE);
    }
    assert_eq!([taken(&mut queue), taken(&mut queue)], [Some((Share::of(7), 1)), Some((Share::of(8), 2))]);
    assert_eq!(taken(&mut queue), Some((Share::of(10), 4)), "the third one waits for a thread");
    assert_eq!((taken(&mut queue), queue.waits(now)), (None, None));
    queue.busy.remove(&Share::of(7));
    queue.busy.remove(&Share::of(10));
    assert_eq!(taken(&mut queue), Some((Share::of(9), 3)));
}

#[test]
fn questions_about_settings_are_taken_together() {
    let mut queue = queue(&[(7, 1)]);
    for token in 2..40 {
        let process = ProcessId { pid: 1, start: token };
        let about = Box::new(About::Declared { process, lines: Vec::new() });
        queue.by_user.entry(Share::of(7)).or_default().push_back(Request { token, about });
        queue.waiting += 1;
    }
    let mut counts = Vec::new();
    while let Some((user, requests)) = queue.take(Instant::now()) {
        counts.push(requests.len());
        queue.busy.remove(&user);
    }
    assert_eq!((counts, queue.waiting), (vec![1, SETTINGS_TOGETHER, 6], 0));
}

#[test]
fn users_have_their_turns() {
    let mut queue = queue(&[(7, 1), (7, 2), (8, 3), (8, 4), (9, 5)]);
    let mut order = Vec::new();
    while let Some((user, token)) = taken(&mut queue) {
        queue.busy.remove(&user);
        order.push(token);
    }
    assert_eq!(order, [1, 3, 5, 2, 4]);
}

#[test]
fn every_question_is_answered_once() {
    let probe = Probe::new().unwrap();
    let mut inspections = Inspections::default();
    for token in 0..50 {
        let haste = [Haste::InTurn, Haste::AtOnce, Haste::AtLeisure][usize::try_from(token % 3).unwrap()];
        let user = Share::of(u32::try_from(token % 5).unwrap());
        inspections.ask(&probe, haste, user, request(token)).unwrap();
    }
    let mut told: Vec<u64> = (0..50).map(|_| inspections.answers.blocking_recv().unwrap().0).collect();
    told.sort_unstable();
    assert_eq!(told, (0..50).collect::<Vec<_>>());
}
