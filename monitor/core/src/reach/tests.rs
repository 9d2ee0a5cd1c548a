//! Laws of the mark phase on random scenes, and single edges in words.

mod naive;

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{Kind, Party, Rows, Way, mark};
use crate::model::{
    Image, ProcessId, Stdio,
    scene::{Address, Began, Called, End, Endpoint, Holder, ProcessRow, Scene, Side, Unread},
};

const PROCESSES: u32 = 9;
const ENDPOINTS: u32 = 7;

fn id(pid: u32) -> ProcessId {
    ProcessId::new(pid, u64::from(pid))
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    use Address::{File, MulticastDns, Other, Tcp, Udp, Unix};
    use Endpoint::{Call, Device, Memory, ParentDeath, PidNamespace, Shared, Terminal, Trace};
    let began = prop_oneof![Just(Began::Near), Just(Began::Far), Just(Began::Pair), Just(Began::Unknown)];
    let by = prop::sample::select(vec![Tcp, Unix, Udp, MulticastDns, File, Other]);
    let called = prop_oneof![Just(Called::Yes), Just(Called::No), Just(Called::Unknown)];
    let simple = vec![Memory { inode: 9 }, Shared, Call, Terminal, PidNamespace, ParentDeath, Trace, Device];
    prop_oneof![
        4 => (1..4_u64, any::<bool>()).prop_map(|(inode, named)| Endpoint::Pipe { inode, named: named && inode == 3 }),
        4 => (1..6_u64, began).prop_map(|(near, began)| Endpoint::Connection { near, far: near + 1, began }),
        2 => (by, called).prop_map(|(by, called)| Endpoint::Open { inode: 7, by, called, chosen: false }),
        8 => prop::sample::select(simple),
    ]
}

fn end() -> impl Strategy<Value = End> {
    let holder = prop_oneof![
        20 => (1..=PROCESSES).prop_map(|pid| Holder::Process(id(pid))),
        1 => Just(Holder::Anybody),
        1 => Just(Holder::Unreadable),
    ];
    let numbers = prop_oneof![Just(vec![]), Just(vec![2]), Just(vec![1, 2]), Just(vec![0]), Just(vec![7])];
    (0..ENDPOINTS, holder, any::<bool>(), numbers, prop::bool::weighted(0.1), any::<bool>()).prop_map(
        |(endpoint, holder, first, numbers, beyond, other)| {
            // The side is made to fit when the endpoint is known.
            let side = if first { Side::Reads } else { Side::Writes };
            let beyond = beyond && other;
            End { endpoint, holder, side, numbers, beyond }
        },
    )
}

fn fit(endpoint: &Endpoint, side: Side) -> Side {
    let first = side == Side::Reads;
    match endpoint {
        Endpoint::Pipe { .. } | Endpoint::Memory { .. } => side,
        Endpoint::Connection { .. } | Endpoint::Shared | Endpoint::Call if first => Side::Near,
        Endpoint::Connection { .. } | Endpoint::Shared | Endpoint::Call => Side::Far,
        Endpoint::Open { .. } => Side::Listens,
        _ if first => Side::Serves,
        _ => Side::Depends,
    }
}

fn party() -> impl Strategy<Value = Party> {
    let wire =
        prop_oneof![Just(Stdio::Null), (1..4_u64).prop_map(Stdio::Pipe), (1..6_u64).prop_map(Stdio::Socket)];
    (
        any::<bool>(),
        prop::collection::btree_set((1..=PROCESSES).prop_map(id), 1..3),
        [wire.clone(), wire],
        prop::option::weighted(0.3, (1..=PROCESSES).prop_map(id)),
        any::<[bool; 2]>(),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.05),
    )
        .prop_map(|(copy, members, wires, owner, released, told_to_serve, acts)| Party {
            kind: if copy { Kind::Copy } else { Kind::Server },
            members,
            wires,
            owner,
            released,
            told_to_serve,
            acts,
            family: owner.map(|owner| id(owner.pid % PROCESSES + 1)).into_iter().collect(),
        })
}

prop_compose! {
    fn scene()(
        endpoints in prop::collection::vec(endpoint(), ENDPOINTS as usize),
        ends in prop::collection::vec(end(), 0..24),
        images in prop::collection::vec(0..5_usize, PROCESSES as usize),
        hangups in any::<u16>(),
    ) -> Scene {
        const PROGRAMS: [&[&str]; 5] = [
            &["python3", "x.py"],
            &["bash"],
            &["docker", "run", "-i", "x"],
            &["python3", "-c", "from multiprocessing.forkserver import main; main(7, 8, [])"],
            &["node", "x.js"],
        ];
        let row = |(at, image): (u32, &usize)| ProcessRow {
            process: id(at + 1),
            sid: at + 1,
            image: Image {
                exe: PROGRAMS[*image][0].to_owned(),
                argv: PROGRAMS[*image].iter().map(|&word| word.to_owned()).collect(),
                argv_truncated: false,
            },
            ignores_hangup: hangups & (1 << at) == 0 && at % 3 == 0,
            ..ProcessRow::default()
        };
        let processes = (0..PROCESSES).zip(&images).map(row).collect();
        let fit = |end: End| End { side: fit(&endpoints[end.endpoint as usize], end.side), ..end };
        let ends = ends.into_iter().map(fit).collect();
        Scene { processes, endpoints, ends, unread: Vec::new() }
    }
}

/// Candidates with no process in common, as the verdict makes them.
fn apart(mut parties: Vec<Party>) -> Vec<Party> {
    let mut seen = BTreeSet::new();
    for party in &mut parties {
        party.members.retain(|member| seen.insert(*member));
    }
    parties
}

fn reached(scene: &Scene, parties: &[Party]) -> BTreeSet<usize> {
    let reach = mark(&Rows::new(scene), parties);
    (0..parties.len()).filter(|at| reach.is_reached(*at)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_mark_phase_is_what_the_slow_version_says(
        scene in scene(), parties in prop::collection::vec(party(), 1..5),
    ) {
        let parties = apart(parties);
        prop_assert_eq!(reached(&scene, &parties), naive::reached(&scene, &parties));
    }

    #[test]
    fn one_more_end_never_makes_an_orphan(
        scene in scene(), more in end(), parties in prop::collection::vec(party(), 1..5),
    ) {
        let parties = apart(parties);
        let before = reached(&scene, &parties);
        let mut scene = scene;
        let side = fit(&scene.endpoints[more.endpoint as usize], more.side);
        scene.ends.push(End { side, ..more });
        prop_assert!(before.is_subset(&reached(&scene, &parties)));
    }

    #[test]
    fn what_cannot_be_read_never_ends_more(
        scene in scene(), lost in 1..=PROCESSES, at in any::<prop::sample::Index>(),
        parties in prop::collection::vec(party(), 1..5),
    ) {
        let parties = apart(parties);
        let before = reached(&scene, &parties);
        // A process: nothing of it is known but that it is there.
        let mut less = scene.clone();
        less.processes.retain(|row| row.process != id(lost));
        for end in less.ends.iter_mut().filter(|end| end.holder == Holder::Process(id(lost))) {
            end.numbers = Vec::new();
        }
        less.unread.push(Unread { process: Some(id(lost)), why: "it does not answer".to_owned() });
        prop_assert!(before.is_subset(&reached(&less, &parties)));
        // An end: somebody has it. If it is a candidate's own, that could not be read.
        if !scene.ends.is_empty() {
            let mut less = scene.clone();
            let at = at.index(less.ends.len());
            if let Holder::Process(process) = less.ends[at].holder
                && parties.iter().any(|party| party.members.contains(&process))
            {
                less.unread.push(Unread { process: Some(process), why: "cut".to_owned() });
            }
            less.ends[at].holder = Holder::Unreadable;
            prop_assert!(before.is_subset(&reached(&less, &parties)));
        }
    }

    #[test]
    fn a_path_leads_from_a_root_to_each_that_is_reached(
        scene in scene(), parties in prop::collection::vec(party(), 1..5),
    ) {
        let parties = apart(parties);
        let reach = mark(&Rows::new(&scene), &parties);
        for (at, party) in parties.iter().enumerate() {
            let path = reach.path_to(at);
            prop_assert_eq!(path.is_empty(), party.acts || !reach.is_reached(at));
            prop_assert_eq!(reach.is_reached(at), party.acts || reach.edges_to(at).next().is_some());
        }
    }
}

// ---- single edges ----------------------------------------------------------------------------------------------

/// A scene of two candidates, 1 and 2, and a stranger, 9.
struct Small {
    scene: Scene,
    parties: Vec<Party>,
}

impl Small {
    fn new() -> Self {
        let row = |pid| ProcessRow { process: id(pid), sid: pid, ..ProcessRow::default() };
        let processes = [1, 2, 9].map(row).into();
        let party = |pid, wires| Party { members: BTreeSet::from([id(pid)]), wires, ..Party::default() };
        let parties = vec![
            party(1, [Stdio::Pipe(11), Stdio::Pipe(12)]),
            party(2, [Stdio::Socket(21), Stdio::Socket(21)]),
        ];
        Self { scene: Scene { processes, ..Scene::default() }, parties }
    }

    fn path(&self) -> Vec<(u32, &'static str)> {
        let path = mark(&Rows::new(&self.scene), &self.parties).path_to(0).into_iter();
        path.map(|e| (e.from.process().unwrap().pid, e.words(self.scene.endpoint(e.endpoint)).0)).collect()
    }

    fn join(&mut self, endpoint: Endpoint, ends: &[(u32, Side, u32)]) -> &mut Self {
        let at = u32::try_from(self.scene.endpoints.len()).unwrap();
        self.scene.endpoints.push(endpoint);
        for (pid, side, number) in ends {
            let holder = if *pid == 0 { Holder::Anybody } else { Holder::Process(id(*pid)) };
            self.scene.ends.push(End {
                endpoint: at,
                holder,
                side: *side,
                numbers: vec![*number],
                beyond: false,
            });
        }
        self
    }

    fn ways(&self, party: usize) -> Vec<Way> {
        let reach = mark(&Rows::new(&self.scene), &self.parties);
        let ways: BTreeSet<Way> = reach.edges_to(party).map(|edge| edge.way).collect();
        ways.into_iter().collect()
    }
}

const fn pipe(inode: u64) -> Endpoint {
    Endpoint::Pipe { inode, named: false }
}

const fn tcp(began: Began) -> Endpoint {
    Endpoint::Connection { near: 31, far: 32, began }
}

#[test]
fn a_ring_of_candidates_is_garbage_until_a_stranger_joins_it() {
    let mut small = Small::new();
    small.join(tcp(Began::Near), &[(1, Side::Near, 5), (2, Side::Far, 6)]);
    small.join(tcp(Began::Near), &[(2, Side::Near, 7), (1, Side::Far, 8)]);
    assert_eq!((small.ways(0), small.ways(1)), (vec![], vec![]));
    small.join(tcp(Began::Near), &[(9, Side::Near, 5), (2, Side::Far, 9)]);
    assert_eq!((small.ways(0), small.ways(1)), (vec![Way::Use], vec![Way::Use]));
    assert_eq!(small.path(), [(9, "connection"), (2, "connection")]);
}

#[test]
fn a_call_that_is_over_counts_if_the_caller_may_call_again() {
    let mut small = Small::new();
    small.join(Endpoint::Call, &[(1, Side::Near, 5), (1, Side::Far, 0)]);
    small.join(Endpoint::Call, &[(1, Side::Near, 5), (2, Side::Far, 0)]);
    assert_eq!((small.ways(0), small.ways(1)), (vec![], vec![]));
    // It has ended: it is not known for whom it called.
    small.join(Endpoint::Call, &[(1, Side::Near, 5), (8, Side::Far, 0)]);
    assert_eq!((small.ways(0), small.ways(1)), (vec![Way::Use], vec![]));
    assert_eq!(small.path(), [(8, "call")]);
    // orphand has ended it, because nobody could reach it.
    small.parties.push(Party { members: BTreeSet::from([id(8)]), ..Party::default() });
    assert_eq!((small.ways(0), small.ways(1)), (vec![], vec![]));
}

#[test]
fn wires_are_told_from_other_pipes_and_standard_error_from_both() {
    let mut small = Small::new();
    small.join(pipe(11), &[(1, Side::Reads, 0), (9, Side::Writes, 5)]);
    assert_eq!(small.ways(0), [Way::Input]);
    small.join(pipe(12), &[(1, Side::Writes, 1), (9, Side::Reads, 6)]);
    assert_eq!(small.ways(0), [Way::Input, Way::Output]);
    small.join(pipe(13), &[(1, Side::Writes, 2), (9, Side::Reads, 7)]);
    assert_eq!(small.ways(0), [Way::Input, Way::Output]);
    // What it reads has got the number of a standard error that was closed.
    small.join(pipe(14), &[(1, Side::Reads, 2), (9, Side::Writes, 8)]);
    assert_eq!(small.ways(0), [Way::Input, Way::Output, Way::Use]);
    // One socket is both wires.
    let pair = Endpoint::Connection { near: 21, far: 22, began: Began::Pair };
    small.join(pair, &[(2, Side::Near, 0), (9, Side::Far, 4)]);
    assert_eq!(small.ways(1), [Way::Input, Way::Output]);
}

#[test]
fn who_has_only_the_same_end_reaches_nobody() {
    let mut small = Small::new();
    small.join(pipe(11), &[(1, Side::Reads, 0), (9, Side::Reads, 5)]);
    assert_eq!(small.ways(0), []);
    // Somebody whom nobody sees has the other one.
    small.join(pipe(12), &[(1, Side::Writes, 1), (0, Side::Reads, 0)]);
    assert_eq!(small.ways(0), [Way::Output]);
}

#[test]
fn a_server_is_the_client_of_what_it_called_unless_its_living_owner_is_there() {
    let mut small = Small::new();
    small.join(tcp(Began::Near), &[(1, Side::Near, 5), (9, Side::Far, 6)]);
    assert_eq!(small.ways(0), []);
    small.parties[0].owner = Some(id(9));
    assert_eq!(small.ways(0), [Way::Use]);
    // It leads to what the owner started.
    (small.parties[0].owner, small.parties[0].family) = (Some(id(8)), BTreeSet::from([id(9)]));
    assert_eq!(small.ways(0), [Way::Use]);
    // What a copy called may wake it.
    small.parties[0] =
        Party { kind: Kind::Copy, members: small.parties[0].members.clone(), ..Party::default() };
    assert_eq!(small.ways(0), [Way::Use]);
}

#[test]
fn a_listener_counts_if_somebody_called_or_was_to_call() {
    for (by, called, counts) in [
        (Address::Tcp, Called::No, false),
        (Address::Tcp, Called::Yes, true),
        (Address::Unix, Called::No, false),
        (Address::Unix, Called::Unknown, true),
        (Address::Udp, Called::Unknown, true),
        (Address::MulticastDns, Called::Unknown, false),
        (Address::File, Called::No, false),
        (Address::File, Called::Unknown, true),
        (Address::Other, Called::No, true),
    ] {
        let mut small = Small::new();
        let open = Endpoint::Open { inode: 41, by, called, chosen: false };
        small.join(open.clone(), &[(1, Side::Listens, 5)]);
        assert_eq!(!small.ways(0).is_empty(), counts, "{by:?} {called:?}");
        let mut shared = Small::new();
        shared.join(open, &[(1, Side::Listens, 5), (9, Side::Listens, 5)]);
        assert_eq!(shared.ways(0), [Way::Use], "somebody outside has it, too");
        // It was told to, its living owner knows the address, or it was handed the listener.
        for (told_to_serve, owner, wire) in [(true, None, 0), (false, Some(id(9)), 0), (false, None, 41)] {
            let (wires, was) = ([Stdio::Socket(wire); 2], small.parties[0].clone());
            small.parties[0] = Party { wires, owner, told_to_serve, ..was };
            assert_eq!(small.ways(0), [Way::Use]);
        }
    }
}

#[test]
fn what_the_living_owner_has_after_it_let_go_does_not_count() {
    let mut small = Small::new();
    small.join(pipe(11), &[(1, Side::Reads, 0), (9, Side::Writes, 5)]);
    small.join(pipe(12), &[(1, Side::Writes, 1), (9, Side::Reads, 6)]);
    small.parties[0].owner = Some(id(9));
    assert_eq!(small.ways(0), [Way::Input, Way::Output]);
    small.parties[0].released = [false, true];
    assert_eq!(small.ways(0), [Way::Input]);
    small.parties[0].released = [true, true];
    assert_eq!(small.ways(0), []);
    // Somebody else has it, too.
    small.scene.processes.push(ProcessRow { process: id(8), ..ProcessRow::default() });
    small.scene.ends.push(End {
        endpoint: 0,
        holder: Holder::Process(id(8)),
        side: Side::Writes,
        numbers: vec![3],
        beyond: false,
    });
    assert_eq!(small.ways(0), [Way::Input]);
}

#[test]
fn who_depends_on_it_and_who_traces_it() {
    for (endpoint, way) in [
        (Endpoint::Terminal, Way::Depend),
        (Endpoint::PidNamespace, Way::Depend),
        (Endpoint::ParentDeath, Way::Depend),
        (Endpoint::Device, Way::Depend),
        (Endpoint::Trace, Way::Depend),
    ] {
        let mut small = Small::new();
        small.join(endpoint, &[(1, Side::Serves, 3), (9, Side::Depends, 3)]);
        assert_eq!(small.ways(0), [way]);
    }
    let mut small = Small::new();
    small.join(Endpoint::Trace, &[(9, Side::Serves, 3), (1, Side::Depends, 3)]);
    assert_eq!(small.ways(0), [Way::Trace]);
    // What depends on somebody else reaches nobody.
    let mut small = Small::new();
    small.join(Endpoint::Terminal, &[(9, Side::Serves, 3), (1, Side::Depends, 3)]);
    assert_eq!(small.ways(0), []);
}
