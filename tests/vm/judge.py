"""Decides whether the report of the guest is right: judge.py FILE. The first fault is the error.

The report has a line of JSON for each of: the guest's system, the starts of the unit, the output of the daemons, and the
servers that were alive after each daemon had ended. A process is written PID@START.
"""

import json
import sys

# With fewer starts nothing would be left behind twice, with fewer servers none beside another.
STARTS, SERVERS = 3, 2
UNIT = "untether.service"
RIGHTS = {
    "CapEff": "0000000000080024",  # CAP_SYS_PTRACE, CAP_KILL, CAP_DAC_READ_SEARCH
    "CapPrm": "00000000000800e4",  # with those that are out of effect but for moments: CAP_SETUID and CAP_SETGID
    "CapBnd": "000000c0000800e4",  # what its unit gives it: CAP_BPF and CAP_PERFMON, too
    "CapAmb": "0000000000000000",
    "NoNewPrivs": "1",
    "Seccomp": "2",
}


class Fault(Exception):
    """Why the report is not right."""


def ensure(holds, fault):
    if not holds:
        raise Fault(fault)


def same(what, found, truth):
    ensure(found == truth, f"{what}: missing {sorted(truth - found)}, too many {sorted(found - truth)}")


def union(sets):
    return set().union(*sets)


def read(told):
    """The report; one that has no end, or tells of trouble, is a fault."""
    account = {"host": None, "starts": [], "events": {}, "alive": {}, "status": None, "service": {}}
    last, ended = "nothing at all", False
    for last in filter(None, map(str.strip, told.splitlines())):
        try:
            line = json.loads(last)
            about = line["about"]
            if about == "host":
                account["host"] = {key: line[key] for key in ("kernel", "init", "cgroups", "controllers")}
            elif about == "start":
                start = {"daemon": line["daemon"], "agent": line["agent"], "servers": set(line["servers"])}
                account["starts"].append(start)
            elif about == "event":
                account["events"].setdefault(line["daemon"], []).append(line["event"])
            elif about == "alive":
                account["alive"][line["daemon"]] = set(line["servers"])
            elif about in ("status", "service"):
                account[about] = line["status"]
            elif about != "trouble":
                ended = {"end": True}[about]
        except (ValueError, KeyError, TypeError):
            raise Fault(f"the guest told nonsense: {last}") from None
        ensure(about != "trouble", f"the guest had trouble: {first_line(line.get('text', ''))}")
    ensure(ended, f"the guest broke off; the last it told was: {first_line(last)}")
    return account


def first_line(text):
    """Of what may be long, what fits into a line. The rest is in the file."""
    return text.split("\n")[0][:300]


def server_of(server, truth):
    """Which of the servers that were started this one is: by its processes, for what launched it is part of it while it
    lives, and gives it its name."""
    ids = [f"{one['pid']}@{one['start']}" for one in server.get("processes", ())]
    known = [one for one in ids if one in truth]
    ensure(len(known) == 1, f"not one of the servers that were started: {server}")
    return known[0]


class Part:
    """What a daemon said, and who lived when it had ended."""

    def __init__(self, account, name, mode):
        self.name, self.starts = name, account["starts"]
        self.truth = union(start["servers"] for start in self.starts)
        ensure(name in account["events"], f"{name}: no events")
        self.events = account["events"][name]
        for seq, event in enumerate(self.events, 1):
            ensure(event.get("seq") == seq, f"{name}: event {seq} has the number {event.get('seq')}")
        ensure(self.of_kind("ready"), f"{name}: the daemon was never ready")
        self.ready = self.of_kind("ready")[0]
        ensure(self.ready.get("mode") == mode, f"{name}: the daemon's mode is {self.ready.get('mode')}")
        lost = self.of_kind("lost", "reap_failed")
        ensure(not lost, f"{name}: {lost}")
        ensure(name in account["alive"], f"{name}: nobody said who lives")
        self.alive = account["alive"][name]

    def of_kind(self, *kinds):
        return [event for event in self.events if event.get("event") in kinds]

    def has_stopped(self):
        last = self.events[-1].get("event")
        ensure(last == "stopping", f"{self.name}: the daemon did not say that it stops")

    def numbers(self, runs):
        """Each agent that it saw start has its number, and so have the servers it told of: exactly those of each start."""
        agents = {start["agent"]: number for number, start in enumerate(self.starts, 1)}
        for event in self.of_kind("agent_started"):
            agent = event["agent"]
            one, told = f"{agent['pid']}@{agent['start']}", agent.get("generation")
            number = agents.get(one)
            ensure(number and number == told, f"{self.name}: agent {one} is start {number}, not {told}")
        self.told("server_started", runs)

    def told(self, what, runs):
        """It reported `what` for exactly these servers, by the number of their run, each once."""
        found = {}
        for event in self.of_kind(what):
            one, where = self.server(event), f"{self.name}: {what}"
            run = event["server"].get("run") or {}
            ensure(run.get("unit") == UNIT, f"{where}: {one} is accounted to {run.get('unit')}")
            number = run.get("generation")
            ensure(number is not None, f"{where}: {one} has no number")
            ensure(one not in found.setdefault(number, set()), f"{where}: {one} twice")
            found[number].add(one)
        for number in sorted(found.keys() | runs.keys()):
            told, truth = found.get(number, set()), runs.get(number, set())
            same(f"in {what} of run {number} ({self.name})", told, truth)

    def accused_only(self, servers):
        """It accused nobody but these, not even for a moment."""
        for event in self.events:
            if event.get("event", "").startswith("orphan_"):
                ensure(self.server(event) in servers, f"{self.name}: a server in use was accused: {event}")

    def judged_in_full(self):
        """Nothing was missing when it judged: the wire was looked at, whatever it is, and nothing but observing holds it
        back."""
        for event in self.of_kind("orphan_detected"):
            evidence, guards = set(event.get("evidence", ())), set(event.get("guards", ()))
            full = evidence >= {"owner_exited", "stdin_hangup"}
            ensure(full, f"{self.name}: the evidence is {sorted(evidence)}: {event}")
            ensure(guards == {"observe"}, f"{self.name}: the guards are {sorted(guards)}: {event}")

    def left_alive(self, servers):
        same(f"alive after {self.name}", self.alive, servers)

    def server(self, event):
        ensure("server" in event, f"{self.name}: no server: {event}")
        return server_of(event["server"], self.truth)


def judge(account):
    """What was found right, in one line."""
    host, starts = account["host"], account["starts"]
    ensure(host, "the guest did not say what it is")
    layout(host)
    by_hand = [start["servers"] for start in starts if start["daemon"] in ("observe", "reap")]
    ensure(len(by_hand) >= STARTS, f"the unit was started {len(by_hand)} times only")
    fewest = min(map(len, by_hand))
    ensure(fewest >= SERVERS, f"a start has {fewest} servers only")
    observed = sum(start["daemon"] == "observe" for start in starts)
    ensure(2 <= observed < len(by_hand), f"{observed} of {len(by_hand)} starts were observed")

    def until(number):
        return dict(enumerate(by_hand[:number], 1))

    left_at_first, left = until(observed - 1), until(len(by_hand) - 1)
    observe = Part(account, "observe", "observe")
    observe.has_stopped()
    observe.numbers(until(observed))
    observe.told("orphan_detected", left_at_first)
    observe.accused_only(union(left_at_first.values()))
    observe.told("orphan_reaped", {})
    observe.judged_in_full()
    observe.left_alive(union(until(observed).values()))
    memory(account["status"], union(until(observed).values()))

    reap = Part(account, "reap", "enforce")
    reap.has_stopped()
    reap.numbers(until(len(by_hand)))
    reap.told("orphan_reaped", left)
    reap.accused_only(union(left.values()))
    reap.left_alive(by_hand[-1])
    served = serve(account, len(by_hand))

    setsid = next((hook for hook in reap.ready.get("hooks", ()) if "setsid" in hook), "no hook on setsid")
    reaped = len(union(left.values())) + served
    return (
        f"Linux {host['kernel']} ({setsid}), cgroup2 alone with the memory controller: {len(starts)} runs with their own "
        f"{len(reap.truth)} servers; {reaped} left behind, reaped by number, {served} of them by the service, which is no "
        "root and hung once; the present ones untouched"
    )


def layout(host):
    """systemd is the first process, cgroup2 is all there is of cgroups, and memory is among its controllers."""
    ensure(host["init"].endswith("/systemd"), f"pid 1 of the guest is {host['init']}")
    mounts = [mount.split(" ")[1:3] for mount in host["cgroups"]]
    ensure(mounts == [["/sys/fs/cgroup", "cgroup2"]], f"the guest's cgroups are not version 2 alone: {host['cgroups']}")
    controllers = host["controllers"].split(" ")
    ensure("memory" in controllers, f"the guest has no memory controller: {controllers}")


def memory(status, servers):
    """The status has all of these servers, and each has memory."""
    told = [one["server"] for agent in status["report"]["agents"] for one in agent["servers"]]
    found = {server_of(one, servers) for one in told if (one.get("rss_bytes") or 0) > 0}
    same("with memory in the status of the observing daemon", found, servers)


def serve(account, present):
    """The service and its successor: each finds the servers of the start number `present`, which are in use, and knows
    their number; with each start that it sees those of the one before are left behind. How many they ended."""
    service, starts, ended = account["service"], account["starts"], 0
    ensure(service.get("Uid") not in (None, "", "0"), f"the service runs as user {service.get('Uid')}")
    for name, wanted in RIGHTS.items():
        ensure(service.get(name) == wanted, f"the service has {name} {service.get(name)}, not {wanted}")
    for name in ("service", "again"):
        own = sum(start["daemon"] == name for start in starts)
        ensure(own > 0, f"{name}: it saw no start")
        last = present + own
        runs = {number: starts[number - 1]["servers"] for number in range(present, last + 1)}
        left = {number: servers for number, servers in runs.items() if number < last}
        part = Part(account, name, "enforce")
        part.numbers(runs)
        part.told("orphan_reaped", left)
        part.accused_only(union(left.values()))
        part.left_alive(runs[last])
        ended += len(union(left.values()))
        present = last
    # The first one hung, and said nothing any more.
    part.has_stopped()
    hooks = part.ready.get("hooks", ())
    ensure(any("tracepoint:syscalls" in hook for hook in hooks), f"{name}: the hooks are {hooks}")
    return ended


def main():
    with open(sys.argv[1], encoding="utf-8", errors="replace") as told:
        try:
            print(f"vm: {judge(read(told.read()))}")
        except (Fault, LookupError, TypeError, AttributeError) as error:
            sys.exit(f"vm: {error if isinstance(error, Fault) else repr(error)} ({sys.argv[1]})")


if __name__ == "__main__":
    main()
