#!/usr/bin/python3 -B
"""Situations that are made up: a plan is data, its processes are real, and its truth follows from the plan alone.
A plan has one agent, its servers, and *extras*: who else holds, uses or shares something. `truth` says who is in use (somebody living really
uses it, and goes on doing so), who is an orphan (nobody living has any way to it) and what may be either: a living process has an end
and does nothing with it. This is not the judgement of orphand: it follows the plan's own edges, and knows no kernel.
`plan.py --make SEED COUNT DIR` writes COUNT scripts; `plan.py --smaller SCRIPT DIR` those with one thing less, to find what matters;
`plan.py --keep SCRIPT FILE` one of them into a group of situations.
"""
import os
import pprint
import random
import sys

import situation

AGENTS = ["claude", "codex", "chat_host.py"]
LEAKS = ["timer", "timer", "deaf", "spin"]
ENDS = ["kill", "kill", "kill", "term", "exit", "let_go", "lives"]
# What a forked copy of the agent waits for until somebody outside wants something of it.
CALLS = ["unix", "tcp", "fifo", "folder", "pipe", "lock", "queue"]

# ---- what is true ----------------------------------------------------------------------------------------------


def living(extra, plan):
    """Whether this extra is a process that acts by itself when the cause has happened."""
    # A copy goes on as the agent if no signal ended that one: then even an idle one counts.
    return extra["kind"] != "idle_copies" or plan["end"] == "exit"


def truth(plan):
    """(in use, orphans) by number of the server."""
    servers, extras = plan["servers"], plan["extras"]
    everyone = range(len(servers))
    used = {e["of"] for e in extras if e["kind"] in ("copy", "handed", "client", "channel")}
    reached = set(used)
    for extra in extras:
        if extra["kind"] in ("copy", "idle_copies") and living(extra, plan):
            reached |= {extra["of"]} if extra.get("closes") else set(everyone)
    if plan["end"] == "lives":
        used, reached = set(everyone), set(everyone)
    # A living agent that let go of its servers may have kept an end in a server that it did not let go of: none here.
    while True:
        more = {e["to"] for e in extras if e["kind"] == "forwards" and e["of"] in used} - used
        used |= more
        if not more:
            break
    reached |= used
    while True:
        more = {e["to"] for e in extras if e["kind"] in ("forwards", "inherits", "ring", "pair") and e["of"] in reached}
        more |= {e["of"] for e in extras if e["kind"] in ("ring", "pair") and e["to"] in reached}
        if not more - reached:
            break
        reached |= more
    return used, set(everyone) - reached

# ---- the programs ------------------------------------------------------------------------------------------------

SERVE = """
def forward():
    for other in others:
        other.ask()
def main(leak):
    if leak == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    here()
    pending = b""
    while True:
        data = os.read(0, 65536)
        if not data:
            leak_on(leak)
        *lines, pending = (pending + data).split(b"\\n")
        for line in lines:
            if b'"initialize"' not in line:
                forward()
            answer(line)
def attend(fd_in, fd_out):
    while os.read(fd_in, 100):
        os.write(fd_out, b"pong")
"""


def server(plan, number):
    """The body of a server's program."""
    about, lines = plan["servers"][number], ["others = []"]
    for at, extra in enumerate(plan["extras"]):
        mine, kind = extra.get("of") == number, extra["kind"]
        if mine and kind == "forwards":
            lines.append(f"others.append(Server(*map(int, argument('--forward-{at}').split(','))))")
        if kind == "client" and mine:
            lines.append(f"in_background(answer_calls, listen({extra['by']!r}, 'client-{at}'))")
        if kind == "channel" and mine:
            lines.append(f"in_background(attend, *map(int, argument('--channel-{at}').split(',')))")
        if kind == "ring" and number in (extra["of"], extra["to"]):
            ours, theirs = (0, 1) if mine else (1, 0)
            lines.append(f"in_background(answer_calls, listen('tcp', 'ring-{at}-{ours}'))")
            lines.append(f"kept = []\nin_background(lambda: kept.append(dial('tcp', 'ring-{at}-{theirs}')))")
        if kind == "job" and mine:
            wrap = "setsid nohup " if extra["how"] == "setsid" else "nohup " if extra["how"] == "nohup" else ""
            streams = f"> {'{DIR}'}/job-{at}.log 2>&1 < /dev/null &"
            lines.append(f"shell(f'{wrap}{{BIN}}/job --as job-{at} {streams}', start_new_session=False)")
    if about["listens"]:
        lines.append(f"in_background(answer_calls, listen({about['listens']!r}, 'silent-{number}'))")
    return "\n".join([SERVE, *lines, f"main({about['leak']!r})"])


def started(plan, number):
    """The lines of the agent's program that start this server."""
    about, lines, words, fds = plan["servers"][number], [], [f"'--as', 'server-{number}'"], []
    for at, extra in enumerate(plan["extras"]):
        kind, mine = extra["kind"], extra.get("of") == number
        if mine and kind in ("forwards", "inherits"):
            other = f"servers[{extra['to']}]"
            if kind == "forwards":
                words.append(f"'--forward-{at}', f'{{{other}.w}},{{{other}.r}}'")
            fds += [f"{other}.w", f"{other}.r"]
        if mine and kind == "channel":
            if extra["by"] == "socket":
                lines.append(f"a, b = socket.socketpair()\nnear, far = (a.detach(),) * 2, (b.detach(),) * 2")
            else:
                lines.append("(r1, w1), (r2, w2) = os.pipe(), os.pipe()\nnear, far = (r1, w2), (r2, w1)")
            words.append(f"'--channel-{at}', '%d,%d' % far")
            fds += ["far[0]", "far[1]"]
        if kind == "pair" and number in (extra["of"], extra["to"]):
            if number == min(extra["of"], extra["to"]):
                lines.append(f"pair_{at} = [one.detach() for one in socket.socketpair()]")
            fds.append(f"pair_{at}[{0 if mine else 1}]")
    chain = {"none": "", "shell": "sh", "launcher": "launcher"}[about["chain"]]
    program = f"'mcp-server-{number}'"
    how = "session" if plan["agent"] == "chat_host.py" else "start"
    if chain:
        words.insert(0, program)
        program = f"'{chain}'"
    keywords = [f"wire={about['wire']!r}", f"start_new_session={about['setsid']}"] + ([f"pass_fds={{{', '.join(fds)}}}"] if fds else [])
    lines.append(f"servers.append({how}({program}, {', '.join(words)}, {', '.join(keywords)}))")
    for at, extra in enumerate(plan["extras"]):
        if extra.get("of") == number and extra["kind"] == "channel":
            lines.append(f"start('window', '--as', 'window-{at}', '--channel', '%d,%d' % near, wire=None, pass_fds=set(near))")
            lines.append("[os.close(fd) for fd in {*near, *far}]")
    return lines


def copied(plan, at, extra):
    """The lines of the agent's program that make a forked copy which uses a server."""
    name, of = f"copy-{at}", extra["of"]
    closes = f"[one.let_go() for n, one in enumerate(servers) if n != {of}]" if extra.get("closes") else "None"
    how, tells = extra["by"], f"tell('go/answer-{at}', '')"
    before, body = [], {
        "works": f"use('{name}', servers[{of}].ask)",
        "unix": f"calls = listen('unix', '{name}')\nwhile True:\n    call_ = calls.accept()[0]\n    call_.recv(9)\n    servers[{of}].ask()\n    call_.sendall(b'pong')",
        "tcp": f"calls = listen('tcp', '{name}')\nwhile True:\n    call_ = calls.accept()[0]\n    call_.recv(9)\n    servers[{of}].ask()\n    call_.sendall(b'pong')",
        "fifo": f"here('{name}')\nopen(f'{{DIR}}/{name}.fifo').read()\nservers[{of}].ask()\n{tells}\nrest()",
        "folder": f"inbox = checked(libc.inotify_init1(0), 'inotify')\nchecked(libc.inotify_add_watch(inbox, f'{{DIR}}/{name}'.encode(), 0x100), 'watch')\nhere('{name}')\nos.read(inbox, 4096)\nservers[{of}].ask()\n{tells}\nrest()",
        "pipe": f"os.close(w_{at})\nhere('{name}')\nos.read(r_{at}, 1)\nservers[{of}].ask()\n{tells}\nrest()",
        "lock": f"lock = open(f'{{DIR}}/{name}.lock', 'w')\nhere('{name}')\nfcntl.flock(lock, fcntl.LOCK_EX)\nservers[{of}].ask()\n{tells}\nrest()",
        "queue": f"os.close(w_{at})\nhere('{name}')\nwhile os.read(r_{at}, 1):\n    servers[{of}].ask()\n    {tells}",
    }[how]
    if how == "fifo":
        before.append(f"os.mkfifo(f'{{DIR}}/{name}.fifo')")
    if how == "folder":
        before.append(f"os.makedirs(f'{{DIR}}/{name}')")
    if how in ("pipe", "queue"):
        before.append(f"r_{at}, w_{at} = os.pipe()")
    if how == "pipe":
        before.append(f"start('feeder', '--as', 'feeder-{at}', '--answer', 'answer-{at}', '--fd', str(w_{at}), wire=None, pass_fds={{w_{at}}})")
    if how == "queue":  # another copy, which is called by a person, feeds it
        feeds = f"calls = listen('unix', '{name}')\nwhile True:\n    call_ = calls.accept()[0]\n    call_.recv(9)\n    os.write(w_{at}, b'x')\n    wait_for('answer-{at}')\n    call_.sendall(b'pong')"
        before += [f"def feed_{at}():", *indented(f"[one.let_go() for one in servers]\nos.close(r_{at})\n{feeds}"), f"copy(feed_{at}, alias='feed-{at}')"]
    lines = [*before, f"def copy_{at}():", *indented(f"{closes}\n{body}"), f"copy(copy_{at}, setsid={extra['setsid']}, alias='{name}')"]
    return [*lines, f"os.close(r_{at})\nos.close(w_{at})"] if how in ("pipe", "queue") else lines


def indented(text):
    return ["    " + line for line in text.split("\n")]


def agent(plan):
    """The body of the agent's program."""
    lines = ["servers = []"]
    for number in range(len(plan["servers"])):
        lines += started(plan, number)
    for at, extra in enumerate(plan["extras"]):
        if extra["kind"] == "copy":
            lines += copied(plan, at, extra)
        if extra["kind"] == "idle_copies":
            lines += ["idle_r, idle_w = os.pipe()", f"for n in range({extra['count']}):", f"    copy(lambda: (here(f'idle-{at}-{{n}}'), os.read(idle_r, 1) if n else rest()), alias=f'idle-{at}-{{n}}')"]
        if extra["kind"] == "handed":
            lines.append(f"hand_on(servers[{extra['of']}], {'worker'!r}, '--as', 'worker-{at}', start_new_session={extra['setsid']})")
    lines.append("here('agent')")
    lines.append("wait_for('end')")
    if plan["end"] == "exit":
        lines.append("os._exit(0)")
    if plan["end"] == "let_go":
        lines.append("[one.let_go() for one in servers]\ntell('go/done', '')")
    lines.append("on_call('agent-uses', lambda: [one.ask() for one in servers])" if plan["end"] == "lives" else "rest()")
    return "\n".join(lines)

# ---- the play ------------------------------------------------------------------------------------------------------


def build(stage, plan):
    """Put the plan in place, its cause included, and tell what is true."""
    import signal
    for number in range(len(plan["servers"])):
        stage.part(f"mcp-server-{number}", server(plan, number))
    stage.put("sh", '#!/bin/sh\n"$(dirname "$0")/$@"\nexit $?\n')
    stage.part("launcher", "child = subprocess.Popen([f'{BIN}/{sys.argv[1]}', *sys.argv[2:]], close_fds=False)\nsys.exit(child.wait())\n")
    stage.part("job", "here()\nwhile True:\n    print('on it', flush=True)\n    time.sleep(0.5)\n")
    stage.part("worker", "server = handed()\nuse(ALIAS, server.ask)\n")
    stage.part("window", "r, w = map(int, argument('--channel').split(','))\nhere()\ndef ask():\n    os.write(w, b'ping')\n    if os.read(r, 100) != b'pong':\n        raise EOFError\non_call(ALIAS, ask)\n")
    stage.part("feeder", "fd = int(argument('--fd'))\nhere()\ndef ask():\n    os.write(fd, b'x')\n    wait_for(argument('--answer'))\non_call(ALIAS, ask)\n")
    for at, extra in enumerate(plan["extras"]):  # who has a lock has it before anybody waits for it
        if extra["kind"] == "copy" and extra["by"] == "lock":
            stage.run(stage.part(f"person-{at}", f"lock = open(f'{{DIR}}/copy-{at}.lock', 'w')\nfcntl.flock(lock, fcntl.LOCK_EX)\nhere()\ndef ask():\n    fcntl.flock(lock, fcntl.LOCK_UN)\n    wait_for('answer-{at}')\non_call(ALIAS, ask)\n"))
            stage.who(f"person-{at}")
    main = stage.run(stage.part(plan["agent"], agent(plan)), start_new_session=plan["agent_setsid"])
    stage.who("agent")
    servers = [stage.who(f"server-{number}") for number in range(len(plan["servers"]))]
    in_use, may_end = [], []
    for at, extra in enumerate(plan["extras"]):
        kind = extra["kind"]
        if kind == "copy":
            name, by = f"copy-{at}", extra["by"]
            copy = stage.who(name)
            in_use.append(copy)
            if by == "works":
                stage.beats(name)
            elif by in ("unix", "tcp", "queue"):
                person = stage.run(stage.part(f"person-{at}", f"on_call(ALIAS, lambda: call({'tcp' if by == 'tcp' else 'unix'!r}, '{name}'))\n"))
                stage.when_called(f"person-{at}", person)
                in_use += [stage.who(f"feed-{at}")] if by == "queue" else []
            elif by == "pipe":
                stage.when_called(f"feeder-{at}", stage.who(f"feeder-{at}"))
            elif by == "lock":
                stage.when_called(f"person-{at}", stage.who(f"person-{at}"))
            else:
                act = f"open(f'{{DIR}}/{name}.fifo', 'w').close()" if by == "fifo" else f"open(f'{{DIR}}/{name}/task', 'w').close()"
                person = stage.run(stage.part(f"person-{at}", f"here()\ndef ask():\n    {act}\n    wait_for('answer-{at}')\non_call(ALIAS, ask)\n"))
                stage.when_called(f"person-{at}", person)
            if by != "works":
                stage.asleep(copy)
        if kind == "idle_copies":
            idle = [stage.who(f"idle-{at}-{n}") for n in range(extra["count"])]
            stage.asleep(*idle)
            may_end += idle
        if kind == "handed":
            in_use.append(stage.who(f"worker-{at}"))
            stage.beats(f"worker-{at}")
        if kind == "channel":
            in_use.append(stage.who(f"window-{at}"))
            stage.when_called(f"window-{at}", stage.who(f"window-{at}"))
        if kind == "client":
            act = f"sock = dial({extra['by']!r}, 'client-{at}')\nask_over(sock)\nact = lambda: ask_over(sock)" if extra["keeps"] else f"act = lambda: call({extra['by']!r}, 'client-{at}')"
            person = stage.run(stage.part(f"person-{at}", f"{act}\n{'on_call' if extra['keeps'] else 'use'}(ALIAS, act)\n"))
            stage.when_called(f"person-{at}", person) if extra["keeps"] else stage.beats(f"person-{at}")
        if kind == "job":
            in_use.append(stage.who(f"job-{at}"))
            stage.grows(f"job-{at}.log")
        if kind == "ring":
            situation.within("the ring", lambda at=at: all(os.path.exists(f"{stage.dir}/go/ring-{at}-{n}.tcp") for n in (0, 1)))
    end = plan["end"]
    if end == "lives":
        stage.go("end")
        stage.when_called("agent-uses", main)
        in_use.append(stage.who("agent"))
    elif end in ("kill", "term"):
        main.kill(signal.SIGKILL if end == "kill" else signal.SIGTERM)
    else:
        stage.go("end")
        over = (lambda: not main.alive()) if end == "exit" else (lambda: os.path.exists(f"{stage.dir}/go/done"))
        situation.within("the end of the agent, or of its use", over)
        in_use += [main] if end == "let_go" else []
    used, orphans = truth(plan)
    either = set(range(len(servers))) - used - orphans
    return stage.truth(
        orphans=[servers[n] for n in sorted(orphans)],
        in_use=[*in_use, *(servers[n] for n in sorted(used))],
        may_end=[*may_end, *(servers[n] for n in sorted(either))],
    )

# ---- making plans up -----------------------------------------------------------------------------------------------


def make_up(rng):
    """A plan that nobody has thought of."""
    count = rng.choice([1, 1, 2, 2, 3])
    servers = [
        {
            "wire": rng.choice(["pipe", "socket"]),
            "leak": rng.choice(LEAKS),
            "chain": rng.choice(["none", "none", "shell", "launcher"]),
            "setsid": rng.random() < 0.3,
            "listens": rng.choice([None, None, None, "tcp", "unix", "abstract"]),
        }
        for _ in range(count)
    ]
    plan = {"agent": rng.choice(AGENTS), "agent_setsid": rng.random() < 0.5, "end": rng.choice(ENDS), "servers": servers, "extras": []}
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4])):
        plan["extras"].append(extra(rng, plan))
    plan["extras"] = [e for e in plan["extras"] if e and makes_sense(e, plan)]
    return plan


def extra(rng, plan):
    of, count = rng.randrange(len(plan["servers"])), len(plan["servers"])
    kind = rng.choice(["copy", "copy", "idle_copies", "handed", "client", "channel", "forwards", "inherits", "ring", "pair", "job", "job"])
    if kind in ("forwards", "inherits", "ring", "pair"):
        # A server can be given the wires of an earlier one only.
        if count < 2:
            return None
        of = rng.randrange(1, count)
        return {"kind": kind, "of": of, "to": rng.randrange(of)}
    more = {
        "copy": {"by": rng.choice(["works", *CALLS]), "closes": rng.random() < 0.5, "setsid": rng.random() < 0.2},
        "idle_copies": {"count": rng.choice([1, 2, 3])},
        "handed": {"setsid": rng.random() < 0.5},
        "client": {"by": rng.choice(["tcp", "tcp6", "unix", "abstract"]), "keeps": rng.random() < 0.5},
        "channel": {"by": rng.choice(["pipe", "socket"])},
        "job": {"how": rng.choice(["setsid", "nohup", "background"])},
    }[kind]
    return {"kind": kind, "of": of, **more}


def makes_sense(extra, plan):
    """Whether both what is built and its truth are clear."""
    # Copies and shares of an agent that goes on are its own affair.
    # Who was ended cleanly and left an idle copy has a successor: nobody can say what that one will do.
    shares = ("copy", "idle_copies", "inherits", "forwards", "ring", "pair")
    return not (plan["end"] in ("let_go", "lives") and extra["kind"] in shares or extra["kind"] == "idle_copies" and plan["end"] == "exit")


def smaller(plan):
    """Plans with one thing less."""
    for at in range(len(plan["extras"])):
        yield {**plan, "extras": plan["extras"][:at] + plan["extras"][at + 1:]}
    last = len(plan["servers"]) - 1
    if last > 0 and all(last not in (e.get("of"), e.get("to")) for e in plan["extras"]):
        yield {**plan, "servers": plan["servers"][:last]}
    plain = {"wire": "pipe", "leak": "timer", "chain": "none", "setsid": False, "listens": None}
    for number, about in enumerate(plan["servers"]):
        for key, value in plain.items():
            if about[key] != value:
                servers = [dict(one) for one in plan["servers"]]
                servers[number][key] = value
                yield {**plan, "servers": servers}
    for key, value in {"agent": "claude", "agent_setsid": False, "end": "kill"}.items():
        if plan[key] != value and not (key == "end" and plan["end"] in ("lives", "let_go")):
            yield {**plan, key: value}


def described(plan):
    """The plan in one line."""
    about = [f"{e['kind']} of {e['of']}" + (f" to {e['to']}" if "to" in e else "") + (f" by {e['by']}" if "by" in e else "") for e in plan["extras"]]
    return f"Made up: {plan['agent']} ({plan['end']}) with {len(plan['servers'])} servers; {', '.join(about) or 'nobody else'}."


def write(plan, path):
    """A script that plays the plan."""
    used, orphans = truth(plan)
    jobs = any(e["kind"] in ("job", "copy", "handed", "channel") for e in plan["extras"]) or plan["end"] in ("lives", "let_go")
    word = "mixed" if orphans and (used or jobs) else "orphan" if orphans else "in use"
    text = pprint.pformat(plan, width=130, sort_dicts=False)
    with open(path, "w") as f:
        f.write(f"import plan\nfrom situation import scene\n\nPLAN = {text}\n\n\n@scene({word!r}, name={os.path.basename(path)[:-3]!r})\n")
        f.write(f'def build(stage):\n    """{described(plan)}"""\n    return plan.build(stage, PLAN)\n')


def read(path):
    """The plan of a script."""
    import ast
    with open(path) as f:
        for line in ast.parse(f.read(), path).body:
            if isinstance(line, ast.Assign) and getattr(line.targets[0], "id", "") == "PLAN":
                return ast.literal_eval(line.value)
    raise SystemExit(f"{path} has no PLAN")


def main():
    if sys.argv[1:2] in (["--make"], ["--smaller"]):
        os.makedirs(sys.argv[-1], exist_ok=True)
    if sys.argv[1:2] == ["--make"] and len(sys.argv) == 5:
        seed, count, folder = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
        for number in range(count):
            write(make_up(random.Random(seed * 1_000_003 + number)), f"{folder}/plan_{seed}_{number}.py")
    elif sys.argv[1:2] == ["--smaller"] and len(sys.argv) == 4:
        for number, one in enumerate(smaller(read(sys.argv[2]))):
            write(one, f"{sys.argv[3]}/smaller_{number}.py")
    elif sys.argv[1:2] == ["--keep"] and len(sys.argv) == 4:
        write(read(sys.argv[2]), sys.argv[3])
    else:
        raise SystemExit("plan.py --make SEED COUNT DIR | --smaller SCRIPT DIR | --keep SCRIPT FILE")


if __name__ == "__main__":
    main()
