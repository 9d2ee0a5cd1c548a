"""Published software for situations: where it is installed, how it is run without a network, and hosts on the published SDKs.

The paths come in the environment, as `cargo run -p tests --bin fixtures` prints them. Nothing here talks to anybody but this machine's
loopback, and nothing is written outside of the situation's folder. No script that uses this may have `mcp` in its name: it would be a
server itself, with the judge as its agent.
"""
import contextlib
import ctypes
import http.client
import json
import os
import socket
import subprocess
import textwrap

import situation
from situation import HERE, Broken, Process

NPX = ("npx", "-y")
CHROMIUM = "/usr/bin/chromium"
PATIENCE = 200.0  # seconds: some of it takes ten on a machine that is idle
ACTORS = os.path.join(os.path.dirname(HERE), "actors")


def within(what, look):
    """As `situation.within`, with the patience that published software wants."""
    return situation.within(what, look, PATIENCE)


def fixture(kind):
    """The folder of a fixture: NPM, PYTHON1 or PYTHON2."""
    variable = f"ORPHAND_FIXTURES_{kind}"
    path = os.environ.get(variable)
    if not path or not os.path.isdir(path):
        raise Broken(f"{variable} names no folder: `cargo run -p tests --bin fixtures` installs what is missing and prints its place")
    return path


def npm_bin(program):
    """A program of the npm project."""
    return f"{fixture('NPM')}/node_modules/.bin/{program}"


def venv_bin(kind, program):
    """A program of a virtual environment, PYTHON1 or PYTHON2."""
    return f"{fixture(kind)}/bin/{program}"


def everything():
    """The main script of server-everything."""
    return f"{fixture('NPM')}/node_modules/@modelcontextprotocol/server-everything/dist/index.js"


def environment(stage, **more):
    """What published software finds: a home in the situation's folder, its programs first in PATH, no network."""
    home = f"{stage.dir}/home"
    os.makedirs(home, exist_ok=True)
    mine = {k: v for k, v in os.environ.items() if k in ("UV_CACHE_DIR", "UV_CONSTRAINT") or k.startswith("ORPHAND_SITUATION")}
    return {
        **mine,
        "PATH": f"{stage.dir}/bin:{os.environ['PATH']}",
        "HOME": home,
        "TMPDIR": home,
        "npm_config_cache": f"{home}/npm",
        "npm_config_offline": "true",
        "npm_config_update_notifier": "false",
        "UV_OFFLINE": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        **more,
    }


def run(stage, *argv, **popen):
    """Start published software below this script."""
    return stage.run(*argv, **{"env": environment(stage), **popen})


def below(process):
    """The living processes that descend from `process` by their present parents, the older ones first."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            one = Process(entry)
            if one.alive():
                parents.setdefault(one.parent(), []).append(one)
    found, todo = [], [process.pid]
    while todo:
        children = parents.get(todo.pop(0), [])
        found += children
        todo += [c.pid for c in children]
    return found


def lines(path):
    """The whole lines of JSON that a program wrote into a file."""
    try:
        with open(path, errors="replace") as f:
            text = f.read()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.split("\n")[:-1] if line.startswith("{")]


SDKS = {"python1": "PYTHON1", "python2": "PYTHON2", "node": None}


class Host:
    """A home-made host on a published SDK (`python1`, `python2`, `node`) with one server, whose plan is done (see actors/client.*).

    `use`: it goes on using its server, as a check of the situation. `env`: what the server finds beside the usual."""

    def __init__(self, stage, sdk, *command, name="host", use=False, env=None, cwd=None, programs=1, argv0=None, **plan):
        plan["env"] = environment(stage, **(env or {}))
        self.stage, self.name, self.sdk = stage, name, sdk
        if sdk != "node":
            plan["until"] = f"{stage.dir}/go/{name}"
        if use:
            plan["use"] = [stage.dir, name]
        if SDKS[sdk]:
            argv = [venv_bin(SDKS[sdk], "python"), f"{ACTORS}/client.py"]
        else:
            argv = ["node", f"{ACTORS}/client.mjs", f"{fixture('NPM')}/node_modules/@modelcontextprotocol/sdk"]
        out = f"{stage.dir}/{name}.out"
        with open(out, "w") as f:
            self.process = run(stage, *argv, json.dumps(plan), *command, stdout=f, cwd=cwd or stage.dir)

        def ready():
            if not self.process.alive():
                raise Broken(f"the {sdk} host of {command} ended")
            return lines(out)

        self.told = within(f"the {sdk} host of {command} is ready", ready)[0]
        if use:
            within(f"{name} is answered", lambda: os.path.exists(f"{stage.dir}/beats/{name}"))
            stage.beats(name)
        workers = self.told.get("workers", [])
        self.workers = [Process(pid) for pid in workers]

        def started():
            found = [p for p in below(self.process) if p.pid not in workers]
            return found if len(found) >= programs else None

        self.server = within(f"{programs} processes below the host", started) if programs else []
        stage.named.update(self.server, self.workers)

    def kill(self):
        """SIGKILL it, when the workers of its pool have nothing to do; gives its server's processes."""
        self.stage.asleep(*self.workers)
        self.process.kill()
        return self.server

    def close(self):
        """Have it end its session properly and then itself (Python); gives what its server's processes were."""
        self.stage.go(self.name)
        within("the host ends by itself", lambda: not self.process.alive())
        self.process.bury()
        return self.server


def ticking(stage, sdk, *command, **how):
    """A host whose server-everything has an interval timer on, which goes on for ever after the end of its input."""
    return Host(stage, sdk, *command, call=["toggle-subscriber-updates", {}], **how)


def reading(stage, sdk, **how):
    """A host whose server-filesystem reads what never answers: a FIFO that nobody ever wrote to."""
    files = f"{os.path.realpath(stage.dir)}/files"
    os.mkdir(files)
    os.mkfifo(f"{files}/fifo")
    call = ["read_text_file", {"path": f"{files}/fifo"}]
    return Host(stage, sdk, npm_bin("mcp-server-filesystem"), files, call=call, busy=True, **how)


@contextlib.contextmanager
def hung_mount(path):
    """A file system that never answers, as a network mount that went away. Who waits for it goes on waiting afterwards."""
    os.mkdir(path)
    libc, fuse = ctypes.CDLL(None, use_errno=True), os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"hung", path.encode(), b"fuse", ctypes.c_ulong(0), options):
        raise Broken(f"cannot mount it: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        libc.umount2(path.encode(), 2)  # MNT_DETACH


def hangs(process):
    """Whether a thread of the process waits for a file system."""
    def state(tid):
        with open(f"/proc/{process.pid}/task/{tid}/stat", "rb") as f:
            return f.read().rpartition(b")")[2].split()[0]
    try:
        return any(state(tid) == b"D" for tid in os.listdir(f"/proc/{process.pid}/task"))
    except (FileNotFoundError, ProcessLookupError):
        # A thread has ended meanwhile: uv has several.
        return False


# ---- looking ------------------------------------------------------------------------------------------------


def free_port():
    """A port on the loopback that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port, path="/"):
    """Whether a web server answers there, now."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        line.request("GET", path)
        answer = line.getresponse()
        return answer.status == 200 and bool(answer.read())
    except OSError:
        return False
    finally:
        line.close()


def listens(process):
    """Whether a TCP socket of this process listens."""
    listening = set()
    for table in ("tcp", "tcp6"):
        if os.path.exists(f"/proc/{process.pid}/net/{table}"):
            with open(f"/proc/{process.pid}/net/{table}") as f:
                listening |= {f"socket:[{row.split()[9]}]" for row in f.readlines()[1:] if row.split()[3] == "0A"}
    for fd in os.listdir(f"/proc/{process.pid}/fd"):
        try:
            if os.readlink(f"/proc/{process.pid}/fd/{fd}") in listening:
                return True
        except FileNotFoundError:
            pass  # closed meanwhile
    return False


def started_as(stage, *argv):
    """The process of this situation whose arguments (base names of paths) begin like this, an interpreter and its options apart."""

    def look():
        found = [p for p in stage.everyone() if like(p.argv(), argv)]
        return found[0] if len(found) == 1 else None

    return within(f"one process {' '.join(argv)}", look)


def like(said, argv):
    """Whether `argv` stands in the first words of a command line."""
    words = [os.path.basename(word) for word in said[:8]]
    return any(tuple(words[i : i + len(argv)]) == argv for i in range(len(words)))


# ---- git -----------------------------------------------------------------------------------------------------


def repository(stage, hook, text):
    """A repository with one file to commit and a hook of a user; gives its path."""
    files = f"{os.path.realpath(stage.dir)}/files"
    env = environment(stage, GIT_CONFIG_GLOBAL=f"{stage.dir}/home/.gitconfig", GIT_CONFIG_NOSYSTEM="1")

    def git(*words):
        subprocess.run(["git", *words], env=env, stdin=subprocess.DEVNULL, stdout=stage.log, stderr=stage.log, timeout=60, check=True)

    git("config", "--global", "user.name", "somebody")
    git("config", "--global", "user.email", "somebody@localhost")
    git("init", "--quiet", files)
    with open(f"{files}/file", "w") as f:
        f.write("one\n")
    git("-C", files, "add", "file")
    path = f"{files}/.git/hooks/{hook}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + textwrap.dedent(text))
    os.chmod(path, 0o755)
    return files
