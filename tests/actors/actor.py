#!/usr/bin/python3 -ISB
"""The actor of the end-to-end tests: plays agents, servers, browsers and bystanders, and tells its own truth.

A scene copies this file under the name of the part (`claude`, `fake-mcp-server`), because a name is what makes an
agent or a server. Started as `NAME --as ALIAS` it connects to `scene.sock` in the folder above its own, says
`{"hello": ALIAS, "pid": .., "start": .., "sid": .., "uid": ..}`, then carries out one JSON command a line and answers
each. It ends when the scene hangs up, so nothing outlives a test that was killed.
"""
import ctypes
import json
import os
import select
import signal
import socket
import sys
import threading
import time

SCENE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CLONE_PARENT = 0x8000
PR_SET_CHILD_SUBREAPER = 36
# clone(2) and exit(2) by number: glibc's wrappers hide CLONE_PARENT and end the whole process.
SYS_CLONE, SYS_EXIT = {"x86_64": (56, 60), "aarch64": (220, 93)}[os.uname().machine]


def birth():
    """Start of this process in clock ticks since boot, field 22 of proc_pid_stat(5)."""
    with open("/proc/self/stat", encoding="utf-8", errors="replace") as f:
        return int(f.read().rpartition(")")[2].split()[19])


def bury(*_):
    """Collect children that ended; whoever waits for one by number copes with ECHILD."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


class Actor:
    """One process of a scene."""

    def __init__(self, alias):
        self.alias = alias
        self.kept = []  # our ends of the wires of what we started
        self.wires = {}  # alias of a job's server -> our ends of its wire: to write, to read
        self.ears = {}  # further descriptors to watch -> what to do
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(f"{SCENE}/scene.sock")
        self.say({"hello": alias, "pid": os.getpid(), "start": birth(), "sid": os.getsid(0), "uid": os.getuid()})
        signal.signal(signal.SIGCHLD, bury)

    def say(self, what):
        self.sock.sendall(json.dumps(what).encode() + b"\n")

    def serve(self):
        """Carry out commands until the scene hangs up."""
        pending = b""
        while True:
            readable = select.select([self.sock, *self.ears], [], [])[0]
            for ear in [e for e in readable if e is not self.sock]:
                self.ears[ear]()
            if self.sock not in readable:
                continue
            data = self.sock.recv(65536)
            if not data:
                os._exit(3)
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                command = json.loads(line)
                try:
                    answer = getattr(self, "do_" + command["do"])(command) or {}
                except Exception as error:  # the scene shall see it, not a log
                    answer = {"error": repr(error)}
                self.say({"done": command["do"], **answer})

    # ---- starting others -------------------------------------------------------------------------------------

    def wire(self, kind):
        """The far ends (stdin, stdout) for a child; ours are kept open."""
        if kind == "pipe":
            (r, near_w), (near_r, w) = os.pipe(), os.pipe()
            self.kept += [near_w, near_r]
            return r, w
        if kind == "socket":
            near, far = socket.socketpair()
            self.kept.append(near.detach())
            far = far.detach()
            return far, far
        if kind == "null":
            return os.open("/dev/null", os.O_RDONLY), os.open("/dev/null", os.O_WRONLY)
        if kind == "file":
            path = f"{SCENE}/{self.alias}.out"
            return os.open("/dev/null", os.O_RDONLY), os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        return 0, 1

    def do_start(self, c):
        """Start a program. `how`: fork, vfork, posix_spawn, clone_parent, double_fork, thread (exec by a non-leader), job (by a
        thread that stays)."""
        argv, path = c["argv"], c.get("path") or c["argv"][0]
        env = {**os.environ, **c.get("env", {})}
        far = self.wire(c.get("wire", "inherit"))
        if c.get("say"):
            os.write(self.kept[-2], c["say"].encode())  # waits in the pipe until the program reads
        sid = bool(c.get("setsid"))

        def become():
            try:
                if sid:
                    os.setsid()
                if c.get("uid"):
                    os.setgroups([])
                    os.setresgid(c["uid"], c["uid"], c["uid"])
                    os.setresuid(c["uid"], c["uid"], c["uid"])
                os.dup2(far[0], 0)
                os.dup2(far[1], 1)
                os.chdir(c.get("directory") or ".")
                os.execve(path, argv, env)
            finally:
                os._exit(127)

        how = c.get("how", "fork")
        if how in ("vfork", "job"):
            import subprocess  # uses vfork(2) as long as no preexec_fn is asked for

            popen = lambda: subprocess.Popen(argv, executable=path, env=env, stdin=far[0], stdout=far[1], start_new_session=sid).pid
            pid = popen() if how == "vfork" else self.job(argv[-1], popen)
        elif how == "posix_spawn":
            actions = [(os.POSIX_SPAWN_DUP2, far[0], 0), (os.POSIX_SPAWN_DUP2, far[1], 1)]
            pid = os.posix_spawn(path, argv, env, file_actions=actions, **({"setsid": True} if sid else {}))
        elif how == "double_fork":
            middle = os.fork()
            if middle == 0:
                if os.fork() == 0:
                    become()
                os._exit(0)
            self.wait(middle)
            pid = None
        else:
            pid = self.clone_parent() if how == "clone_parent" else os.fork()
            if pid == 0 and how == "thread":
                threading.Thread(target=become).start()
                threading.Event().wait()
            if pid == 0:
                become()
        for fd in set(far) - {0, 1}:
            os.close(fd)
        return {"pid": pid}

    def job(self, alias, work):
        """Has a new thread do this and stay; what it gave."""
        began, result = threading.Event(), []

        def run():
            result.append(work())
            began.set()
            threading.Event().wait()

        self.wires[alias] = self.kept[-2:]
        threading.Thread(target=run).start()
        began.wait()
        return result[0]

    def do_ask(self, c):
        """Send a line to the server of a job, and wait for the answer."""
        write, read = self.wires[c["of"]]
        os.write(write, b"a request\n")
        return {"answer": os.read(read, 65536).decode()}

    @staticmethod
    def clone_parent():
        # PyDLL keeps the interpreter lock: the child, a copy of this one thread, goes on holding it.
        return ctypes.PyDLL(None).syscall(SYS_CLONE, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)

    @staticmethod
    def wait(pid):
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            pass

    def do_fork(self, c):
        """Fork without exec: the child goes on as another actor with all our descriptors."""
        pid = os.fork()
        if pid == 0:
            self.go_on_as(c["as"], setsid=c.get("setsid"))
        return {"pid": pid}

    def go_on_as(self, alias, setsid=False):
        try:
            self.sock.close()
            if setsid:
                os.setsid()
            child = Actor(alias)
            child.kept = self.kept
            child.serve()
        finally:
            os._exit(4)

    # ---- changing oneself ------------------------------------------------------------------------------------

    def do_exec(self, c):
        """Exec in place; the new image says hello itself. Our ends stay open: who lets them go has let the servers go."""
        for end in self.kept:
            os.set_inheritable(end, True)
        self.say({"done": "exec"})
        become = lambda: os.execve(c.get("path") or c["argv"][0], c["argv"], {**os.environ, **c.get("env", {})})
        if c.get("how") == "thread":
            threading.Thread(target=become).start()
            threading.Event().wait()
        become()

    def do_setsid(self, _):
        os.setsid()
        return {"sid": os.getsid(0)}

    def do_work(self, _):
        end = time.process_time() + 0.5
        while time.process_time() < end:
            pass

    def do_subreaper(self, _):
        if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")

    def do_ignore_term(self, _):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def do_answer(self, _):
        """From now on answer whatever comes in on stdin."""

        def stdin():
            asked = os.read(0, 65536)
            if asked:
                os.write(1, b"an answer to " + asked)
            else:
                del self.ears[0]

        self.ears[0] = stdin

    def do_listen(self, _):
        """Listen on the loopback interface and accept whoever comes."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.kept.append(listener)
        self.ears[listener] = lambda: self.kept.append(listener.accept()[0])
        return {"port": listener.getsockname()[1]}

    def do_connect(self, c):
        self.kept.append(socket.create_connection(("127.0.0.1", c["port"])))

    def do_call(self, c):
        socket.create_connection(("127.0.0.1", c["port"])).close()

    def do_leave_leader(self, _):
        """The leading thread ends, another one goes on: the process lives."""
        threading.Thread(target=self.serve).start()
        self.say({"done": "leave_leader"})
        ctypes.CDLL(None).syscall(SYS_EXIT, 0)

    def do_exit(self, c):
        self.say({"done": "exit"})
        os._exit(c.get("code", 0))


if __name__ == "__main__":
    Actor(sys.argv[sys.argv.index("--as") + 1]).serve()
