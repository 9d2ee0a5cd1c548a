//! What random stories are made of: how often what happens, and with which circumstances.

use proptest::prelude::*;

use crate::{
    histories::{Act, Growth, Story},
    kernel::{Conduct, OnTerm},
    launch::Launch,
    programs::Recipe,
    using::Use,
    world::AgentKind,
};

fn recipe() -> impl Strategy<Value = Recipe> {
    prop::sample::select(Recipe::ALL.to_vec())
}

fn kind() -> impl Strategy<Value = AgentKind> {
    prop::sample::select(AgentKind::ALL.to_vec())
}

fn conduct() -> impl Strategy<Value = Conduct> {
    let on_term = prop_oneof![
        4 => Just(OnTerm::Obey),
        2 => Just(OnTerm::Ignore),
        1 => Just(OnTerm::ForkAndExit),
        1 => Just(OnTerm::ForkAndStay),
    ];
    let eof = prop_oneof![3 => Just(None), 1 => (0u32..30_000).prop_map(Some)];
    (on_term, eof, prop::bool::weighted(0.04), prop::bool::weighted(0.04)).prop_map(
        |(on_term, exits_at_eof, opted_out, serves_clients)| Conduct {
            on_term,
            exits_at_eof,
            waits: false,
            opted_out,
            serves_clients,
        },
    )
}

fn launch() -> impl Strategy<Value = Launch> {
    let odd = prop::bool::weighted(0.15);
    let uid = prop::option::weighted(0.05, Just(1001));
    (recipe(), any::<bool>(), odd, odd, odd, odd, uid, conduct()).prop_map(
        |(recipe, socket, leaky, setsid, double_fork, moves_wire, uid, conduct)| Launch {
            recipe,
            socket,
            leaky,
            setsid,
            double_fork,
            moves_wire,
            uid,
            conduct,
        },
    )
}

fn growth() -> impl Strategy<Value = Growth> {
    prop::sample::select(vec![
        Growth::Browser,
        Growth::Daemon,
        Growth::Helper,
        Growth::Multiplexer,
        Growth::Conmon,
        Growth::Agent,
        Growth::Bridged,
        Growth::Fork,
    ])
}

/// Something that others do with a server.
fn deed() -> impl Strategy<Value = Use> {
    let (n, b) = (any::<u8>, any::<bool>);
    prop_oneof![
        3 => (n(), b(), n()).prop_map(|(place, stdin, to)| Use::Pass { place, stdin, to }),
        1 => (n(), b()).prop_map(|(place, stdin)| Use::Send { place, stdin }),
        1 => prop::option::of(n()).prop_map(|to| Use::Receive { to }),
        2 => (n(), b()).prop_map(|(place, stdin)| Use::LetGo { place, stdin }),
        1 => (n(), b()).prop_map(|(place, stdin)| Use::ClosesOwn { place, stdin }),
        1 => n().prop_map(Use::WorkerWorks),
        1 => (n(), b()).prop_map(|(worker, recorded)| Use::WorkerLeaves { worker, recorded }),
        3 => (n(), n()).prop_map(|(host, deed)| Use::Survivor { host, deed }),
        1 => n().prop_map(Use::WorkerHosts),
        1 => n().prop_map(Use::WorkerListens),
        1 => n().prop_map(Use::WorkerEnds),
        1 => n().prop_map(Use::Traced),
        2 => n().prop_map(Use::Client),
        3 => n().prop_map(Use::StrangerEnds),
        1 => (n(), n()).prop_map(|(place, program)| Use::Becomes { place, program }),
        1 => (prop::option::of(n()), recipe()).prop_map(|(below, recipe)| Use::Pipeline { below, recipe }),
        1 => (n(), b()).prop_map(|(place, recorded)| Use::HelperLeaves { place, recorded }),
    ]
}

pub fn act() -> impl Strategy<Value = Act> {
    let n = any::<u8>;
    prop_oneof![
        6 => kind().prop_map(Act::Agent),
        2 => (kind(), n()).prop_map(|(k, h)| Act::AgentBelow(k, h)),
        1 => kind().prop_map(Act::AgentInMultiplexer),
        14 => (n(), launch()).prop_map(|(h, l)| Act::Server(h, l)),
        1 => (prop::option::of(n()), recipe()).prop_map(|(b, r)| Act::ShellServer(b, r)),
        1 => recipe().prop_map(Act::RemoteServer),
        1 => any::<bool>().prop_map(Act::Wireless),
        4 => (n(), growth()).prop_map(|(p, g)| Act::Grow(p, g)),
        7 => (n(), prop::option::of(0u8..2)).prop_map(|(h, c)| Act::HostExits(h, c)),
        1 => n().prop_map(Act::LauncherDies),
        2 => (n(), n()).prop_map(|(p, l)| Act::WrapperDies(p, l)),
        2 => n().prop_map(Act::ServerEnds),
        2 => n().prop_map(Act::HangUp),
        2 => n().prop_map(Act::Abandon),
        1 => (n(), n()).prop_map(|(p, t)| Act::HandOver(p, t)),
        2 => (n(), n()).prop_map(|(h, c)| Act::Workers(h, c)),
        2 => (n(), any::<bool>()).prop_map(|(h, t)| Act::Background(h, t)),
        1 => n().prop_map(Act::ExecsItself),
        2 => (n(), any::<bool>()).prop_map(|(h, d)| Act::Job(h, d)),
        1 => n().prop_map(Act::Sibling),
        12 => deed().prop_map(Act::Use),
        2 => n().prop_map(Act::Storm),
        8 => prop_oneof![0u16..100, 0u16..20_000].prop_map(Act::Elapse),
    ]
}

/// A story of any kind, on any kind of host.
pub fn any_story() -> impl Strategy<Value = Story> {
    let story = prop_oneof![
        3 => story(),
        2 => configured_story(),
        2 => late_story(),
        2 => lossy_story(),
    ];
    let stumbles = prop_oneof![4 => Just(0), 1 => 2u8..6];
    (story, prop::bool::weighted(0.2), stumbles).prop_map(|(story, passless, stumbles)| Story {
        passless,
        stumbles,
        ..story
    })
}

/// A story without losses that the daemon sees from the beginning.
pub fn story() -> impl Strategy<Value = Story> {
    let acts = prop::collection::vec(act(), 1..30);
    (acts, 60u32..200, 0u16..50, any::<bool>(), prop::bool::weighted(0.1)).prop_map(
        |(acts, space, lag_ms, gone_first, other_uids)| Story {
            before: Vec::new(),
            acts,
            space,
            lag_ms,
            gone_first,
            observe: false,
            other_uids,
            passless: false,
            stumbles: 0,
            faults: Vec::new(),
        },
    )
}

/// A story in which the configuration changes, and which ends with a daemon that acts.
pub fn configured_story() -> impl Strategy<Value = Story> {
    let acts =
        prop::collection::vec(prop_oneof![5 => act(), 1 => any::<bool>().prop_map(Act::Configure)], 1..40);
    (story(), acts).prop_map(|(story, mut acts)| {
        acts.push(Act::Configure(false));
        Story { acts, ..story }
    })
}

/// A story whose first part the daemon finds in /proc.
pub fn late_story() -> impl Strategy<Value = Story> {
    (story(), prop::collection::vec(act(), 1..15)).prop_map(|(story, before)| Story { before, ..story })
}

/// A story of which records are lost.
pub fn lossy_story() -> impl Strategy<Value = Story> {
    let faults = prop::collection::vec(prop::bool::weighted(0.2), 0..200);
    (story(), faults).prop_map(|(story, faults)| Story { faults, ..story })
}
