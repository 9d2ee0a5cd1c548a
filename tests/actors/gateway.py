#!/usr/bin/python3 -ISB
"""An agent that is a service: `NAME --play FILE` starts what FILE says, tells its own truth, and leaves all of it behind when
it ends, as gateways do that trust their unit to clean up.

FILE is JSON, {"play": NAME, "children": [{"as", "program", "verb", "args", "wire", "setsid", "double_fork", "scope"}, ..]}. It reports
to systemd that it is ready when everybody whose wire it holds has said a line on it. SIGTERM ends it at once; on SIGUSR1
it executes itself, keeps the wires, and starts everything once more.
"""
import json
import os
import signal
import socket
import sys

BIN = os.path.dirname(os.path.abspath(__file__))
SCENE = os.path.dirname(BIN)


def tell(play):
    """Who this is, before anything else happens."""
    with open("/proc/self/stat", encoding="utf-8", errors="replace") as f:
        start = int(f.read().rpartition(")")[2].split()[19])
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(f"{SCENE}/truth.sock")
        truth = {"role": "agent", "name": os.path.basename(__file__), "as": play, "pid": os.getpid(), "start": start}
        line.sendall(json.dumps({**truth, "invocation": os.environ.get("INVOCATION_ID", "")}).encode() + b"\n")
        line.recv(1)


def wire(kind):
    """(stdin, stdout) of a child, and our ends of them: [to write, to read]."""
    if kind == "pipe":
        (r, near_w), (near_r, w) = os.pipe(), os.pipe()
        return (r, w), [near_w, near_r]
    if kind == "socket":
        near, far = socket.socketpair()
        far = far.detach()
        return (far, far), [near.detach()]
    null = os.open("/dev/null", os.O_RDWR)
    return (null, null), []


def start(child):
    """Start one; gives our ends of its wire."""
    far, near = wire(child.get("wire", "pipe"))
    argv = [f"{BIN}/{child['program']}", *child.get("verb", []), "--as", child["as"], *child.get("args", [])]
    if child.get("scope"):  # as podman starts conmon: out of our unit
        argv = ["/usr/bin/systemd-run", *child["scope"], "--scope", "--quiet", "--collect", "--", *argv]
    pid = os.fork()
    if pid == 0:
        try:
            if child.get("setsid"):
                os.setsid()
            if child.get("double_fork") and os.fork() > 0:
                os._exit(0)
            os.dup2(far[0], 0)
            os.dup2(far[1], 1)
            os.execv(argv[0], argv)
        finally:
            os._exit(127)
    if child.get("double_fork"):
        os.waitpid(pid, 0)
    for fd in set(far):
        os.close(fd)
    return near


def ready(address):
    """Tell the service manager, sd_notify(3)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.sendto(b"READY=1", "\0" + address[1:] if address.startswith("@") else address)


def main():
    with open(sys.argv[sys.argv.index("--play") + 1], encoding="utf-8") as f:
        play = json.load(f)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # executed by itself it has what it left below
    notify = os.environ.pop("NOTIFY_SOCKET", None)
    tell(play["play"])
    wires = [start(child) for child in play["children"]]
    for near in wires:
        if near:
            os.read(near[-1], 4096)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel collects the children
    if notify:
        ready(notify)
    elif "--as" in sys.argv:
        print("ready", flush=True)  # to the agent that started this one
    signal.sigwait([signal.SIGUSR1])
    for near in wires:
        for fd in near:
            os.set_inheritable(fd, True)
    os.execv(sys.argv[0], sys.argv)


if __name__ == "__main__":
    main()
