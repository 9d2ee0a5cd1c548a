//! Who calls followed processes over TCP. A connection that was closed leaves a trace for a minute at most, and none on this
//! side if the caller on another host closed it. One that is open is in the tables of /proc.
//!
//! Invariant: a call within the host that a followed process begins is written down in CALLED as its own. One that a followed
//! process has ended is, too: as one of the followed process that began it, or as one of anybody; and so is one that was cut
//! off, whoever was called. A port that a followed process wanted for itself is written down, too: if another has it, it knows now whom
//! it may call. Of the connections of others each change of state costs a comparison, their beginning and their end
//! a look or two at the filter before MEMBERS, one within the host a look-up.

use aya_ebpf::{
    bindings::{BPF_ANY, BPF_NOEXIST},
    helpers::{bpf_probe_read_user, generated::bpf_ktime_get_ns},
};
use monitor_common::{CALLERS_OF_A_PORT, Call, CallKey, CallRecord, Caller, Counter, PARENTS};

use crate::{
    maps::{CALL_LOST, CALLED, CALLERS, OUTGOING, STANDING, count, global},
    members,
    task::{Task, current_tgid, read},
};

/// `include/net/tcp_states.h`.
const ESTABLISHED: i32 = 1;
const SYN_SENT: i32 = 2;
const SYN_RECV: i32 = 3;
const FIN_WAIT1: i32 = 4;
const CLOSE: i32 = 7;
const CLOSE_WAIT: i32 = 8;
const LAST_ACK: i32 = 9;

/// include/linux/socket.h.
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// The third word of an IPv4 address as IPv6 has it, RFC 4291.
const MAPPED: u32 = 0xffff_u32.to_be();

type Address = [u32; 4];

/// No followed process, in whatever network: the kernel's own tasks have the number 0.
const ANYBODY: Caller =
    Caller { start: 0, tgid: 0, parents: [0; PARENTS], head: 0, agent: 0, network: 0, near: 0, far: 0 };

/// How many processes above a caller are asked whose call it is. In a longer line of programs nobody knows it.
const LEVELS: usize = 8;

/// A connection changes its state. Only where it begins or is closed is the current process the one that does it.
#[inline(always)]
pub fn changes(sk: u64, old: i32, new: i32) -> Result<(), Counter> {
    match (old, new) {
        // `tcp_v4_connect()`, `tcp_v6_connect()`. The port of the caller may not be chosen yet.
        (_, SYN_SENT) => begins(sk),
        // The other side has answered.
        (SYN_SENT, ESTABLISHED) => is_there(sk),
        // It is called, `inet_csk_clone_lock()`: whatever this memory was, nobody here is the caller.
        (_, SYN_RECV) => {
            let _ = CALLERS.remove(sk);
            Ok(())
        }
        // This side is closed: `tcp_close_state()`, net/ipv4/tcp.c.
        (_, FIN_WAIT1 | LAST_ACK) => ends(sk),
        // The connection is gone: the other side has reset it, or does not answer.
        (ESTABLISHED | CLOSE_WAIT, CLOSE) => is_over(sk),
        _ => Ok(()),
    }
}

#[inline(always)]
fn begins(sk: u64) -> Result<(), Counter> {
    let tgid = current_tgid();
    if !members::is_followed(tgid) {
        // This memory may have been a connection of a followed process.
        let _ = CALLERS.remove(sk);
        return Ok(());
    }
    let mut task = Task::current();
    let mut caller = ANYBODY;
    (caller.start, caller.tgid) = (task.group_birth()?, tgid);
    caller.network = network(sk)?;
    let mut is_agent = members::is_agent(tgid);
    let mut goes_on = true;
    for level in 0..LEVELS {
        task = task.parent()?;
        let above = task.tgid()?;
        if is_agent || !members::is_followed(above) {
            goes_on = false;
            break;
        }
        if let Some(parent) = caller.parents.get_mut(level) {
            *parent = above;
        }
        is_agent = members::is_agent(above);
        *(if is_agent { &mut caller.agent } else { &mut caller.head }) = above;
    }
    if goes_on && !is_agent {
        // Any of those further up may be the uppermost one.
        caller.head = 0;
    }
    CALLERS.insert(sk, caller, u64::from(BPF_ANY)).map_err(|_| Counter::CallDropped)
}

/// A connection is there: both ports are known, and who was called has not accepted it yet. One of a process that is not
/// followed may have the ports of an earlier one that was.
#[inline(always)]
fn is_there(sk: u64) -> Result<(), Counter> {
    let (near, far) = ports(sk)?;
    let Some((own, other)) = addresses(sk)? else { return Ok(()) };
    let key = CallKey { network: network(sk)?, own, other, near, far };
    let is_within = is_within_the_host(own, other);
    let Some(at) = CALLERS.get_ptr_mut(sk) else {
        if is_within {
            let _ = OUTGOING.remove(key);
        }
        return Ok(());
    };
    // SAFETY: the pointer came from the map.
    let caller = unsafe { &mut *at };
    (caller.near, caller.far) = (near, far);
    if !is_within {
        return Ok(());
    }
    OUTGOING.insert(key, *caller, u64::from(BPF_ANY)).map_err(|_| Counter::CallDropped)?;
    // Of a long connection both entries may be evicted before it ends.
    write_down(u32::from(far), *caller)
}

/// Whether both sides are on this host, by their addresses: the same one, or two of loopback, as where the host's name is
/// 127.0.1.1.
#[inline(always)]
fn is_within_the_host(own: Address, other: Address) -> bool {
    own == other || (is_loopback(own) && is_loopback(other))
}

#[inline(always)]
fn is_loopback([.., third, last]: Address) -> bool {
    // In network byte order.
    third == MAPPED && last.to_ne_bytes()[0] == 127
}

#[inline(always)]
fn ends(sk: u64) -> Result<(), Counter> {
    // A process that ends is not followed any more when its files are closed; its parent is, as a server is that forks for
    // each call.
    let is_followed =
        members::is_followed(current_tgid()) || members::is_followed(Task::current().parent()?.tgid()?);
    if is_followed { is_over(sk) } else { Ok(()) }
}

/// A connection is over: of a followed process, or of anybody.
#[inline(always)]
fn is_over(sk: u64) -> Result<(), Counter> {
    let (near, far) = ports(sk)?;
    // SAFETY: nobody writes while this side of the connection is closed.
    if unsafe { CALLERS.get(sk) }.is_some_and(|caller| (caller.near, caller.far) == (near, far)) {
        // It is the caller. This memory may be another connection's soon.
        let _ = CALLERS.remove(sk);
        return Ok(());
    }
    let Some((own, other)) = addresses(sk)? else { return Ok(()) };
    // No `Option`: before Linux 5.12 the verifier lets nobody copy what is not written, and of `None` the caller is not.
    let mut caller = ANYBODY;
    caller.network = network(sk)?;
    if is_within_the_host(own, other) {
        // As the other side has it.
        let key = CallKey { network: caller.network, own: other, other: own, near: far, far: near };
        // SAFETY: the value is copied; its writer was done before this connection was there.
        if let Some(known) = unsafe { OUTGOING.get(key) } {
            caller = *known;
        }
    }
    write_down(u32::from(near), caller)
}

/// The current process wants this port for itself; 0 is whichever is free. Nobody stands for it when it has ended: it may have ended
/// because another has the port.
#[inline(always)]
pub fn seeks(port: u16) -> Result<(), Counter> {
    let tgid = current_tgid();
    if port == 0 || !members::is_followed(tgid) {
        return Ok(());
    }
    let task = Task::current();
    let mut caller = ANYBODY;
    (caller.start, caller.tgid) = (task.group_birth()?, tgid);
    caller.network = read(task.network()?, global!(CALL_OFFSETS.network_number))?;
    write_down(u32::from(port), caller)
}

/// The same, by the `struct sockaddr` of bind(2). Whatever its socket is for: that of a datagram is told by nobody else either.
#[inline(always)]
pub fn binds(address: u64) -> Result<(), Counter> {
    if !members::is_followed(current_tgid()) {
        return Ok(());
    }
    // SAFETY: the helper checks the address. What cannot be read cannot be bound to.
    let Ok([family, port]) = (unsafe { bpf_probe_read_user(address as *const [u16; 2]) }) else {
        return Ok(());
    };
    if matches!(family, AF_INET | AF_INET6) { seeks(u16::from_be(port)) } else { Ok(()) }
}

/// What could not be written down may be any call, whoever called whom.
#[inline(always)]
pub fn written(outcome: Result<(), Counter>) {
    let Err(why) = outcome else { return };
    count(why);
    if let Some(at) = CALL_LOST.get_ptr_mut(0) {
        // SAFETY: no precondition.
        let now = unsafe { bpf_ktime_get_ns() };
        // SAFETY: the pointer came from the map. CPUs that write at the same time write almost the same time.
        unsafe { *at = now };
    }
}

#[inline(always)]
fn write_down(port: u32, caller: Caller) -> Result<(), Counter> {
    let Some(at) = CALLED.get_ptr_mut(port).or_else(|| first(port)) else {
        return Err(Counter::CallDropped);
    };
    // SAFETY: no precondition.
    let now = unsafe { bpf_ktime_get_ns() };
    // SAFETY: the pointer came from the map. CPUs that write at the same time write almost the same time.
    let record = unsafe { &mut *at };
    let network = caller.network;
    if caller.tgid == ANYBODY.tgid {
        *in_network(&mut record.by_anybody, network) = now;
    } else if let Some(place) = place_of(&mut record.by, caller) {
        // The call of one that has ended is still a call, unless another one of its job has called now.
        if place.caller.far != 0 && !is_same(place.caller, caller) && !is_of_same_job(place.caller, caller) {
            let by_anybody = in_network(&mut record.by_anybody, place.caller.network);
            *by_anybody = (*by_anybody).max(place.at);
        }
        // Who had the place may call again there.
        let is_taken = place.at != 0 && is_elsewhere(place.caller.network) && !is_elsewhere(network);
        if is_taken && (members::is_followed(place.caller.tgid) || stands_for(place.caller) != 0) {
            record.without_place[1] = now;
        }
        let is_known_as_caller = caller.far == 0 && is_same(place.caller, caller);
        let is_in_its_place = members::is_followed(caller.tgid) || !is_of_same_job(place.caller, caller);
        if is_in_its_place && !is_known_as_caller {
            place.caller = caller;
        }
        place.at = now;
        if is_of_unknown(caller) {
            *in_network(&mut record.without_place, network) = now;
        }
    } else {
        *in_network(&mut record.by_anybody, network) = now;
        *in_network(&mut record.without_place, network) = now;
    }
    Ok(())
}

/// Whether it is another network namespace than that of the host.
#[inline(always)]
fn is_elsewhere(network: u32) -> bool {
    network != global!(TUNING.host_network)
}

#[inline(always)]
fn in_network([here, elsewhere]: &mut [u64; 2], network: u32) -> &mut u64 {
    if is_elsewhere(network) { elsewhere } else { here }
}

/// Whether it is not known whose job the caller is: the uppermost one is more than [`LEVELS`] above it.
#[inline(always)]
const fn is_of_unknown(caller: Caller) -> bool {
    caller.parents[0] != 0 && caller.head == 0 && caller.agent == 0
}

/// The record of a port that nobody has called before.
#[inline(always)]
fn first(port: u32) -> Option<*mut CallRecord> {
    const NOBODY: Call = Call { at: 0, caller: ANYBODY };
    let record = CallRecord { by_anybody: [0; 2], without_place: [0; 2], by: [NOBODY; CALLERS_OF_A_PORT] };
    // Where another CPU was quicker, its record is the one.
    let _ = CALLED.insert(port, record, u64::from(BPF_NOEXIST));
    CALLED.get_ptr_mut(port)
}

/// The place of this caller; if it has none, that of one that has ended, and whose call is that of who may stand for this one, too,
/// or nobody's any more. If all are taken, that of one of the same job, or, in the host's network, of one in another.
#[inline(always)]
fn place_of(by: &mut [Call; CALLERS_OF_A_PORT], caller: Caller) -> Option<&mut Call> {
    // In a map, of which the verifier knows no value: else it would go each way through the first loop for each one through the second.
    let standing = STANDING.get_ptr_mut(0)?;
    // SAFETY: the pointer came from a per-CPU map, and the program is not entered twice on one CPU.
    let standing = unsafe { &mut *standing };
    for (call, place) in by.iter().zip(standing.iter_mut()) {
        let old = call.caller;
        let lives = old.tgid != caller.tgid && members::is_followed(old.tgid);
        let stands = if lives { old.tgid } else { stands_for(old) };
        // SAFETY: a reference.
        unsafe { core::ptr::write_volatile(place, stands) };
    }
    let (mut of_ended, mut free, mut of_job, mut elsewhere) = (None, None, None, None);
    for (call, place) in by.iter_mut().zip(standing.iter()) {
        let old = call.caller;
        if is_same(old, caller) {
            return Some(call);
        }
        // SAFETY: a reference.
        let stands = unsafe { core::ptr::read_volatile(place) };
        let lives = old.tgid != caller.tgid && stands == old.tgid;
        if stands == 0 {
            free = Some(call);
        } else if caller.far != 0 && !lives && may_stand_for(stands, caller) {
            of_ended = Some(call);
        } else if is_of_same_job(old, caller) {
            of_job = Some(call);
        } else if is_elsewhere(old.network) && !is_elsewhere(caller.network) {
            elsewhere = Some(call);
        }
    }
    of_ended.or(free).or(of_job).or(elsewhere)
}

/// The nearest process above this caller that lives. 0: there is none.
#[inline(always)]
fn stands_for(caller: Caller) -> u32 {
    let [first, second, third] = caller.parents;
    for above in [first, second, third, caller.head] {
        if members::is_followed(above) {
            return above;
        }
    }
    if members::is_followed(caller.agent) { caller.agent } else { 0 }
}

#[inline(always)]
fn may_stand_for(process: u32, caller: Caller) -> bool {
    let [first, second, third] = caller.parents;
    [caller.tgid, first, second, third, caller.head, caller.agent].contains(&process)
}

/// Whether they have the same job, or the same agent.
#[inline(always)]
const fn is_of_same_job(one: Caller, other: Caller) -> bool {
    (one.agent != 0 && one.agent == other.agent) || (one.head != 0 && one.head == other.head)
}

#[inline(always)]
const fn is_same(one: Caller, other: Caller) -> bool {
    one.tgid == other.tgid && one.start == other.start
}

#[inline(always)]
fn ports(sk: u64) -> Result<(u16, u16), Counter> {
    let near = read(sk as *const u8, global!(CALL_OFFSETS.sock_near_port))?;
    Ok((u16::from_be(near), u16::from_be(read(sk as *const u8, global!(CALL_OFFSETS.sock_far_port))?)))
}

#[inline(always)]
fn network(sk: u64) -> Result<u32, Counter> {
    let network: u64 = read(sk as *const u8, global!(CALL_OFFSETS.sock_network))?;
    read(network as *const u8, global!(CALL_OFFSETS.network_number))
}

/// The own address and that of the other side. None: it is no internet socket.
#[inline(always)]
fn addresses(sk: u64) -> Result<Option<(Address, Address)>, Counter> {
    let sk = sk as *const u8;
    let family: u16 = read(sk, global!(CALL_OFFSETS.sock_family))?;
    if family == AF_INET6 {
        return Ok(Some((
            read(sk, global!(CALL_OFFSETS.sock_near6))?,
            read(sk, global!(CALL_OFFSETS.sock_far6))?,
        )));
    }
    if family != AF_INET {
        return Ok(None);
    }
    let mapped = |address: u32| [0, 0, MAPPED, address];
    Ok(Some((
        mapped(read(sk, global!(CALL_OFFSETS.sock_near))?),
        mapped(read(sk, global!(CALL_OFFSETS.sock_far))?),
    )))
}
