"""What the processes of a situation are made of. For programs that `situation.Stage.part` wrote; they import all of it.

Nobody here has a line to the situation's script: a socket or pipe to it would be a client or a wire, and change the truth. They
tell by files in the situation's folder (`here`, `use`), are told by files (`wait_for`) or by being killed, and otherwise rest in
the kernel: a process that shall be idle takes no CPU time.
"""
import os
import select
import signal
import sys
import time
from _thread import get_ident


class Later:
    """A module that is imported when it is used: most processes need none of these, and to import all takes twice as long as the
    rest of their start."""

    def __init__(self, module):
        self.module = module

    def __getattr__(self, name):
        return getattr(__import__(self.module), name)


json, socket, subprocess, threading = map(Later, ("json", "socket", "subprocess", "threading"))

DIR = os.environ["ORPHAND_SITUATION_DIR"]
BIN = f"{DIR}/bin"
ME = os.path.basename(sys.argv[0])
TICK, SLOW = 0.25, 1.0  # seconds between two uses: the first ones, and those after; hundreds of situations go on side by side
TIMEOUT = 60.0  # seconds that an answer may take on a busy machine
AGAIN = 4.0  # seconds until a ping is sent once more

def argument(option, default=None):
    """The word behind `option` in our command line."""
    return sys.argv[sys.argv.index(option) + 1] if option in sys.argv else default


ALIAS = argument("--as", ME)


def tell(path, text):
    """A file in the situation's folder, whole at once; two threads may tell the same."""
    new = f"{DIR}/{path}.{os.getpid()}.{get_ident()}"
    with open(new, "w") as f:
        f.write(text)
    os.replace(new, f"{DIR}/{path}")


def goes_into_the_background():
    """Put /dev/null in the place of the standard streams, as a service does."""
    null = os.open("/dev/null", os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)


def here(alias=None, pid="self"):
    """Announce this process (or another one), under the number that the /proc in sight has for it."""
    with open(f"/proc/{pid}/stat", "rb") as f:
        text = f.read()
    tell(f"here/{alias or ALIAS}", f"{text.split()[0].decode()} {text.rpartition(b')')[2].split()[19].decode()}")


def wait_for(what):
    """Wait until the script says `go(what)`; not for those that shall be idle."""
    while not os.path.exists(f"{DIR}/go/{what}"):
        time.sleep(0.02)


def present(alias):
    """Wait until `alias` has announced itself; gives its number."""
    while not os.path.exists(f"{DIR}/here/{alias}"):
        time.sleep(0.02)
    with open(f"{DIR}/here/{alias}") as f:
        return int(f.read().split()[0])


def rest():
    """Do nothing for ever, in the kernel."""
    while True:
        signal.pause()


# ---- starting others -----------------------------------------------------------------------------------------


class Server:
    """A server that we talk to: `w` to its stdin, `r` from its stdout."""

    def __init__(self, w, r, pid=None):
        self.w, self.r, self.pid, self.asked, self.patience = w, r, pid, 0, TIMEOUT

    def ask(self, method="ping", params=None):
        """One request and its answer; raises if there is none."""
        self._send(method, params)
        # Who shares the wire may have taken the answer to a ping.
        if method == "ping" and not select.select([self.r], [], [], AGAIN)[0]:
            self._send(method, params)
        self.take()

    def _send(self, method, params):
        self.asked += 1
        request = {"jsonrpc": "2.0", "id": f"{os.getpid()}.{self.asked}", "method": method}
        os.write(self.w, json.dumps({**request, **({"params": params} if params else {})}).encode() + b"\n")

    def take(self):
        """What the server says next; raises if that is no result."""
        if not select.select([self.r], [], [], self.patience)[0]:
            raise TimeoutError("no answer")
        answer = os.read(self.r, 65536)
        if b"result" not in answer:
            raise EOFError(f"the wire says {answer!r}")

    def let_go(self):
        """Close our ends."""
        for fd in {self.w, self.r}:
            os.close(fd)


def wires(kind):
    """(our write end, our read end, its stdin, its stdout) of a new wire: `pipe` or `socket`."""
    if kind == "socket":
        near, far = socket.socketpair()
        near, far = near.detach(), far.detach()
        return near, near, far, far
    (far_r, near_w), (near_r, far_w) = os.pipe(), os.pipe()
    return near_w, near_r, far_r, far_w


def start(program, *args, wire="pipe", stdin=None, stdout=None, **popen):
    """Start a program of the situation (or any, by its path) on a wire of ours and ask it once; `wire=None`: no wire, on `stdin`
    and `stdout` or /dev/null; `asked=False`: do not talk to it. Further arguments are those of subprocess.Popen."""
    path = program if program.startswith("/") else f"{BIN}/{program}"
    asked = popen.pop("asked", True)
    if wire is None:
        null = subprocess.DEVNULL
        return subprocess.Popen([path, *args], stdin=null if stdin is None else stdin, stdout=null if stdout is None else stdout, **popen)
    near_w, near_r, far_r, far_w = wires(wire)
    child = subprocess.Popen([path, *args], stdin=far_r, stdout=far_w, **popen)
    for fd in {far_r, far_w}:
        os.close(fd)
    server = Server(near_w, near_r, child.pid)
    server.child = child
    if asked:
        server.ask()
    return server


def collected(server):
    """Start the situation's `collector`, which reads what the server says, and wait until it is there."""
    start("collector", wire=None, stdin=server.r)
    present("collector")


def without_close_on_exec(count):
    """So many servers, announced as `server0` and so on. Each inherits our ends of the wires of those before. Gives the last one."""
    for n in range(count):
        server = start("mcp-server-fake", "--as", f"server{n}", close_fds=False)
        for end in (server.w, server.r):
            os.set_inheritable(end, True)
    return server


def two(program="mcp-server-fake", older=(), newer=(), **how):
    """Two servers of one identity, announced as `older` and `newer`; each with further arguments, if there are any."""
    both = start(program, *older, **how), start(program, *newer, **how)
    for alias, server in zip(("older", "newer"), both):
        here(alias, server.pid)
    return both


def session(program, *args, **how):
    """Start a program as `start` does and begin a session of the Model Context Protocol with it."""
    server = start(program, *args, asked=False, **how)
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": ALIAS, "version": "1"}}
    server.ask("initialize", about)
    os.write(server.w, b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    return server


def of_session(name):
    """The environment of a server that is started for this session (`registry.Registry`)."""
    return {**os.environ, "MCP_SESSION_ID": called(name)}


def given(name):
    """The options by which a container is started for this session."""
    return ["-e", f"MCP_SESSION_ID={called(name)}"]


def docker(verb, *words, asked=True, **how):
    """Start the engine's client on a wire of ours, and ask what is at its other end once: a container may take long to start."""
    client = os.environ.get("ORPHAND_SITUATION_CLIENT", "/usr/bin/docker").split(" ")
    server = start(*client, verb, *words, asked=False, **how)
    if asked:
        server.patience = 200.0
        server.ask()
        server.patience = TIMEOUT
    return server


def box(name, *options, image=None, program=("/bin/mcp-server-box",), network="none", **how):
    """A server in a container of this name; with `name=None` of none."""
    named = ["--name", called(name)] if name else []
    image = image or os.environ["ORPHAND_SITUATION_IMAGE"]
    where = ["--network", network, "--cgroup-parent", os.environ["ORPHAND_SITUATION_GROUP"]]
    if "ORPHAND_SITUATION_CLIENT" in os.environ:  # podman sets limits that cannot be raised everywhere
        where += ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"]
    return docker("run", "-i", "--rm", *where, *named, *options, image, *program, **how)


def called(name):
    """The name of a container or a session, which no other situation has."""
    return f"{os.path.basename(DIR)}-{name}"


def of_the_host():
    """The options by which a container has the Python of the host, what it imports, and this situation's folder."""
    library = os.path.dirname(__file__)
    folders = ["/usr:/usr:ro", "/lib:/lib:ro", "/lib64:/lib64:ro", f"{library}:{library}:ro", f"{DIR}:{DIR}"]
    return ["-e", f"ORPHAND_SITUATION_DIR={DIR}", *[word for folder in folders for word in ("-v", folder)]]


def words(server):
    """The arguments by which `handed` finds this server's wires."""
    return ["--wires", f"{server.w},{server.r}"]


def hand_on(server, program, *args, wait=False, alias=None, **popen):
    """Start a program of the situation that inherits our ends of a server's wires, and wait until it is there (or has ended)."""
    child = start(program, *args, *words(server), wire=None, pass_fds={server.w, server.r}, **popen)
    if wait:
        if child.wait():
            raise EOFError(f"{program} failed")
    else:
        present(alias or (args[args.index("--as") + 1] if "--as" in args else program))
    return child


def handed():
    """The server whose wires we inherited; we are there from now on."""
    w, r = map(int, argument("--wires").split(","))
    here()
    return Server(w, r)


def shell(line, program="/bin/bash", wait=True, **popen):
    """A command line as an agent's Bash tool runs it: a session of its own, nothing on stdin, output into a file."""
    out = open(f"{DIR}/shell.log", "a")
    how = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out, "start_new_session": True, "cwd": DIR, **popen}
    child = subprocess.Popen([program, "-c", line], **how)
    if wait:
        child.wait()
    return child


def copy(body, setsid=False, alias=None):
    """A forked copy of us, without exec, that does `body()` and never comes back; gives its number."""
    pid = os.fork()
    if pid == 0:
        try:
            if setsid:
                os.setsid()
            if alias:
                here(alias)
            body()
        finally:
            os._exit(0)
    return pid


def become(program, *args, **env):
    """Exec in place."""
    path = program if program.startswith("/") else f"{BIN}/{program}"
    os.execve(path, [path, *args], {**os.environ, **env})


# ---- use -----------------------------------------------------------------------------------------------------


def use(name, act):
    """Use something until it breaks: each use is counted for the script, a failure is told once and for all."""
    count = 0
    while True:
        try:
            act()
        except Exception as error:
            tell(f"broken/{name}", repr(error))
            tell(f"beats/{name}", str(count))
            rest()
        count += 1
        tell(f"beats/{name}", str(count))
        time.sleep(TICK if count < 8 else SLOW)


def on_call(name, act, every=None):
    """Rest, and use something once each time the script asks for it (`Stage.when_called`); and unasked `every` so many seconds."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    count = 0
    while True:
        tell(f"beats/{name}", str(count))
        asked = signal.sigtimedwait({signal.SIGUSR1}, every) if every else signal.sigwait({signal.SIGUSR1})
        try:
            act()
        except Exception as error:
            tell(f"broken/{name}", repr(error))
        count += asked is not None


# ---- being a server ------------------------------------------------------------------------------------------


def answer(line, out=1):
    """The answer to one line, if it is a request."""
    try:
        number = json.loads(line)["id"]
    except (ValueError, KeyError, TypeError):
        return
    os.write(out, json.dumps({"jsonrpc": "2.0", "id": number, "result": {}}).encode() + b"\n")


def read_on():
    """Answer until the end of stdin."""
    pending = b""
    while True:
        data = os.read(0, 65536)
        if not data:
            return
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            answer(line)


def leak_on(leak):
    """What a server does that should have ended."""
    if leak == "exit":
        os._exit(0)
    while leak == "spin":  # a runaway loop, at a tenth of a core so as to leave the machine to others
        until = time.monotonic() + 0.01
        while time.monotonic() < until:
            pass
        time.sleep(0.09)
    while True:  # an interval timer keeps its loop busy
        time.sleep(0.2)


def serve(leak="timer"):
    """Serve stdin and stdout, then leak. `timer`: an interval timer goes on; `spin`: a runaway loop; `deaf`: and SIGTERM is
    ignored; `blocked`: a read of something else never comes back, stdin is read by a thread; `fifo`: the same in the opening of
    a FIFO; `closed`: stdin itself is closed after the first line, what is asked stays unanswered; `exit`: none of it, it ends as
    it should."""
    if leak == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    here()
    if leak in ("blocked", "fifo"):
        threading.Thread(target=read_on, daemon=True).start()
        if leak == "fifo":
            open(f"{DIR}/nobody", "rb")
        os.read(os.eventfd(0), 8)
    if leak == "closed":
        answer(os.read(0, 65536))
        os.close(0)
    else:
        read_on()
    leak_on(leak)


def work_off():
    """Be a long job: read what is to be done, then bring one result after the other for as long as somebody takes them."""
    here()
    os.read(0, 65536)
    count = 0
    while True:
        count += 1
        os.write(1, json.dumps({"jsonrpc": "2.0", "id": count, "result": {}}).encode() + b"\n")
        time.sleep(0.2)
