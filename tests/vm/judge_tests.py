"""Tests of the judge: it accepts a good run, and it finds each thing that may go wrong."""

import copy
import unittest

from judge import RIGHTS, UNIT, Fault, judge, read


def process(one):
    pid, start = map(int, one.split("@"))
    return {"pid": pid, "start": start}


def servers(number):
    return [f"{number}{n}@1" for n in (1, 2)]


def about(kind, one, number):
    run = {"unit": UNIT, "generation": number}
    server = {"id": one, "processes": [process(one)], "run": run}
    return {"event": kind, "server": server, "evidence": ["stdin_hangup", "owner_exited"], "guards": ["observe"]}


def events(mode, starts, last, hook="fexit:ksys_setsid"):
    """A daemon's events: it is told of these starts, and `last` of all of them but the last."""
    told = [{"event": "ready", "mode": mode, "hooks": [hook]}]
    for number in starts:
        told.append({"event": "agent_started", "agent": {"pid": number, "start": 1, "generation": number}})
        told += [about("server_started", one, number) for one in servers(number)]
    for number in starts[:-1]:
        for kind in ("orphan_suspected", "orphan_detected", last):
            told += [about(kind, one, number) for one in servers(number)]
    return numbered(told + [{"event": "stopping"}])


def numbered(told):
    for seq, event in enumerate(told, 1):
        event["seq"] = seq
    return told


def good():
    daemons = ["observe", "observe", "reap", "service", "again"]
    ids = servers(1) + servers(2)
    status = [{"server": {"processes": [process(one)], "rss_bytes": 1}} for one in ids]
    return {
        "host": {
            "kernel": "6.1",
            "init": "/usr/lib/systemd/systemd",
            "cgroups": ["cgroup2 /sys/fs/cgroup cgroup2 rw 0 0"],
            "controllers": "cpu memory pids",
        },
        "starts": [
            {"daemon": daemon, "agent": f"{number}@1", "servers": set(servers(number))}
            for number, daemon in enumerate(daemons, 1)
        ],
        "events": {
            "observe": events("observe", [1, 2], "orphan_spared"),
            "reap": events("enforce", [1, 2, 3], "orphan_reaped"),
            "service": events("enforce", [3, 4], "orphan_reaped"),
            "again": events("enforce", [4, 5], "orphan_reaped", "tracepoint:syscalls:sys_exit_setsid"),
        },
        "alive": {
            "observe": set(ids),
            "reap": set(servers(3)),
            "service": set(servers(4)),
            "again": set(servers(5)),
        },
        "service": {"Uid": "999", **RIGHTS},
        "status": {"report": {"agents": [{"servers": status}]}},
    }


def at(told, kind):
    return next(i for i, event in enumerate(told) if event["event"] == kind)


class Judge(unittest.TestCase):
    def but(self, change, complaint):
        """A day that went well but for this has this complaint."""
        account = copy.deepcopy(good())
        change(account)
        for told in account["events"].values():
            numbered(told)
        with self.assertRaises(Fault) as raised:
            judge(account)
        self.assertIn(complaint, str(raised.exception))

    def without(self, name, kind, complaint):
        self.but(lambda a: a["events"][name].pop(at(a["events"][name], kind)), complaint)

    def more(self, name, kind, number, complaint):
        self.but(lambda a: a["events"][name].insert(2, about(kind, servers(number)[0], number)), complaint)

    def changed(self, name, kind, keys, value, complaint):
        def change(account):
            inner = account["events"][name][at(account["events"][name], kind)]
            for key in keys[:-1]:
                inner = inner[key]
            inner[keys[-1]] = value

        self.but(change, complaint)

    def test_a_good_day_is_right(self):
        said = judge(good())
        self.assertIn("Linux 6.1 (fexit:ksys_setsid)", said)
        self.assertIn("5 runs with their own 10 servers; 8 left behind, reaped by number, 4 of them", said)

    def test_the_machine_is_what_it_should_be(self):
        self.but(lambda a: a.update(host=None), "the guest did not say what it is")
        self.but(lambda a: a["host"].update(init="/bin/busybox"), "pid 1 of the guest is /bin/busybox")
        self.but(lambda a: a["host"].update(controllers="cpu pids"), "no memory controller")
        version1 = "cgroup /sys/fs/cgroup/systemd cgroup rw 0 0"
        self.but(lambda a: a["host"]["cgroups"].append(version1), "not version 2 alone")
        self.but(lambda a: a["host"]["cgroups"].clear(), "not version 2 alone")

    def test_a_day_that_shows_nothing_is_not_right(self):
        def cut(to):
            return lambda a: a.update(starts=a["starts"][:to])

        self.but(cut(2), "started 2 times only")
        self.but(cut(4), "again: it saw no start")
        self.but(lambda a: a["starts"][0]["servers"].clear(), "0 servers only")
        self.but(lambda a: a["starts"][1].update(daemon="reap"), "1 of 3 starts were observed")
        self.but(lambda a: a["events"].pop("reap"), "reap: no events")
        self.but(lambda a: a["alive"].pop("reap"), "reap: nobody said who lives")

    def test_a_daemon_says_all_that_it_has_to(self):
        self.without("reap", "ready", "reap: the daemon was never ready")
        self.changed("reap", "ready", ["mode"], "observe", "reap: the daemon's mode is observe")
        self.without("observe", "stopping", "observe: the daemon did not say that it stops")
        self.without("observe", "server_started", "in server_started of run 1 (observe): missing ['11@1']")
        self.without("observe", "orphan_detected", "orphan_detected of run 1 (observe): missing")
        self.without("reap", "orphan_reaped", "orphan_reaped of run 1 (reap): missing")
        self.but(lambda a: a["events"]["reap"].insert(1, {"event": "lost"}), "reap: [{'event': 'lost'")
        account = good()
        account["events"]["reap"].pop(3)
        with self.assertRaisesRegex(Fault, "reap: event 4 has the number 5"):
            judge(account)

    def test_nobody_is_accused_wrongly(self):
        self.more("observe", "orphan_suspected", 2, "observe: a server in use was accused")
        self.more("observe", "orphan_detected", 2, "too many ['21@1']")
        self.more("observe", "orphan_reaped", 1, "too many ['11@1']")
        self.more("reap", "orphan_reaped", 3, "too many ['31@1']")
        self.more("reap", "orphan_cleared", 3, "reap: a server in use was accused")
        self.more("reap", "orphan_reaped", 1, "orphan_reaped: 11@1 twice")

    def test_a_server_is_who_was_started_whoever_launched_it(self):
        account = good()
        server = account["events"]["reap"][at(account["events"]["reap"], "orphan_reaped")]["server"]
        server.update(id="10@1", processes=[process("10@1"), process("11@1")])
        judge(account)
        for ids in (["10@1"], ["11@1", "12@1"]):
            processes = [process(one) for one in ids]
            keys = ["server", "processes"]
            self.changed("reap", "orphan_reaped", keys, processes, "not one of the servers")

    def test_numbers_are_right(self):
        for kind, keys, value, complaint in (
            ("agent_started", ["agent", "generation"], 2, "agent 1@1 is start 1, not 2"),
            ("server_started", ["server", "run", "generation"], 2, "of run 1 (reap): missing"),
            ("orphan_reaped", ["server", "run", "generation"], None, "11@1 has no number"),
            ("orphan_reaped", ["server", "run", "unit"], "other.service", "is accounted to other"),
        ):
            self.changed("reap", kind, keys, value, complaint)

    def test_verdicts_rest_on_the_wire(self):
        self.changed("observe", "orphan_detected", ["evidence"], ["owner_exited"], "observe: the evidence is ['owner_")
        self.changed("observe", "orphan_detected", ["guards"], ["observe", "own_unit"], "observe: the guards are")

    def test_who_lives_is_what_counts(self):
        self.but(lambda a: a["alive"]["observe"].remove("11@1"), "alive after observe: missing ['11@1']")
        self.but(lambda a: a["alive"]["reap"].remove("31@1"), "alive after reap: missing ['31@1']")
        self.but(lambda a: a["alive"]["reap"].add("11@1"), "alive after reap: missing [], too many ['11@1']")

    def test_the_status_has_memory(self):
        def forget(account):
            account["status"]["report"]["agents"][0]["servers"][0]["server"]["rss_bytes"] = None

        self.but(forget, "with memory in the status of the observing daemon: missing ['11@1']")

    def test_the_service_is_no_root_and_goes_on_after_it_has_hung(self):
        self.but(lambda a: a["service"].update(Uid="0"), "runs as user 0")
        self.but(lambda a: a["service"].update(CapEff=RIGHTS["CapBnd"]), "the service has CapEff 000000c0000800e4, not")
        self.but(lambda a: a["service"].update(Seccomp="0"), "has Seccomp")
        self.but(lambda a: a["service"].clear(), "runs as user None")
        self.without("service", "orphan_reaped", "orphan_reaped of run 3 (service): missing")
        self.without("again", "server_started", "server_started of run 4 (again): missing")
        self.without("again", "stopping", "again: the daemon did not say that it stops")
        hung = good()
        hung["events"]["service"].pop()
        judge(hung)
        self.changed("again", "ready", ["hooks"], ["fexit:ksys_setsid"], "again: the hooks are")

    def test_what_breaks_off_or_tells_of_trouble_is_no_account(self):
        start = '{"about":"start","daemon":"a","agent":"1@2","servers":["3@4"]}\r\n'
        self.assertEqual(read(start + '{"about":"end"}\r\n')["starts"][0]["agent"], "1@2")
        for told, why in (
            ("", "broke off; the last it told was: nothing at all"),
            ('{"about":"alive","daemon":"a","servers":[]}', 'broke off; the last it told was: {"about"'),
            ('{"about":"trouble","text":"no server\\nlog"}\n{"about":"end"}', "had trouble: no server"),
            ('{"about":"en', "told nonsense"),
            ('{"about":"other"}', "told nonsense"),
        ):
            with self.assertRaises(Fault) as raised:
                read(told)
            self.assertIn(why, str(raised.exception))
            self.assertNotIn("log", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
