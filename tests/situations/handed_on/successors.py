import signal
import situation
from situation import scene

HELPER = "use('helper', handed().ask)\n"

def successor_of(stage, helper=HELPER, hands="hand_on(start('mcp-server-fake'), 'helper.py')\n", host="claude"):
    """The host hands its server's wires to a program of its own, and ends with success."""
    stage.part("helper.py", helper)
    first = stage.run(stage.part(host, hands))
    stage.beats("helper")
    return stage.ended(first, in_use=["helper.py", "mcp-server-fake"])

@scene("in use")
def io_uring(stage):
    """The successor has the wires as registered files of an io_uring and no descriptor of them."""
    return successor_of(stage, """
        server = handed()
        w, r = Ring(server.w), Ring(server.r)
        def ask():
            w.write(b'{"id":1}\\n')
            if b"result" not in r.read(1000):
                raise EOFError("no answer")
        use("helper", ask)
    """)

@scene("in use")
def leader_gone(stage):
    """The successor's leading thread has ended; another one holds the wires."""
    return successor_of(stage, """
        server = handed()
        in_background(use, "helper", server.ask)
        # The thread alone: exit(2), not exit_group(2), which libc's wrapper would call.
        libc.syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
    """)

@scene("in use", twin="orphans/moved_wire")
def moved_wire(stage):
    """The server moved its wire to another descriptor; a successor talks through it."""
    stage.part("mcp-server-fake", """
        wire_in, wire_out = os.dup(0), os.dup(1)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(2, 1)
        here()
        while True:
            answer(os.read(wire_in, 65536), wire_out)
    """)
    return successor_of(stage)

@scene("in use")
def other_namespaces(stage):
    """The successor lives in PID, mount, network and IPC namespaces of its own, as in a container."""
    return successor_of(stage, hands="""
        how = ["--pid", "--mount", "--net", "--ipc", "--uts", "--fork"]
        hand_on(start("mcp-server-fake"), "/usr/bin/unshare", *how, f"{BIN}/helper.py", alias="helper.py")
    """)

@scene("in use")
def own_table(stage):
    """A thread of the successor holds the wires in a descriptor table of its own; /proc/PID/fd does not show them."""
    return successor_of(stage, """
        server = handed()
        in_own_table(lambda: use("helper", server.ask), server.w, server.r)
        rest()
    """)

@scene("in use", twin="orphans/successor_died")
def stopped_successor(stage):
    """The successor is stopped for now (Ctrl-Z) and goes on later."""
    stage.part("helper.py", HELPER)
    first = stage.run(stage.part("claude", """
        hand_on(start("mcp-server-fake"), "helper.py")
    """))
    stage.beats("helper")
    helper = stage.who("helper.py")
    situation.within("the first's end", lambda: not first.alive())
    helper.kill(signal.SIGSTOP, wait=False)
    stage.when_called("helper", helper, signal.SIGCONT)
    return stage.truth(in_use=[helper, "mcp-server-fake"])

@scene("in use", twin="orphans/successor_died")
def successor(stage):
    """A host upgrades itself: it starts its next version with the wires and ends with success."""
    first = stage.run(stage.part("claude", """
        if ALIAS == "second":
            use("second", handed().ask)
        server = start("mcp-server-fake")
        hand_on(server, "claude", "--as", "second")
    """))
    stage.beats("second")
    return stage.ended(first, in_use=["second", "mcp-server-fake"])

@scene("in use")
def successor_in_a_session(stage):
    """The successor has a session of its own and was started by a double fork."""
    stage.part("helper.py", HELPER)
    first = stage.rests("claude", """
        server = start("mcp-server-fake")
        def middle():
            os.setsid()
            hand_on(server, "helper.py")
        os.waitpid(copy(middle), 0)
    """)
    stage.beats("helper")
    return stage.killed(first, in_use=["helper.py", "mcp-server-fake"])

@scene("in use")
def successor_of_another_user(stage):
    """The successor gave up its rights and is another user than the server."""
    stage.part("helper.py", HELPER)
    first = stage.rests("claude", """
        server = start("mcp-server-fake")
        hand_on(server, "helper.py", user=65534, group=65534, extra_groups=[])
    """)
    stage.beats("helper")
    return stage.killed(first, in_use=["helper.py", "mcp-server-fake"])

@scene("in use", twin="orphans/successor_died")
def successor_socket(stage):
    """A host started its next version with the wire, a socket pair, and is killed."""
    first = stage.run(stage.part("claude", """
        if ALIAS == "second":
            use("second", handed().ask)
        server = start("mcp-server-fake", wire="socket")
        hand_on(server, "claude", "--as", "second")
        here("first")
        rest()
    """))
    stage.beats("second")
    return stage.killed(first, in_use=["second", "mcp-server-fake"])

@scene("in use")
def successor_twice(stage):
    """The successor hands the wires to a successor of its own; both predecessors have ended."""
    first = stage.run(stage.part("claude", """
        if ALIAS == "third":
            use("third", handed().ask)
        elif ALIAS == "second":
            hand_on(handed(), "claude", "--as", "third")
        else:
            hand_on(start("mcp-server-fake"), "claude", "--as", "second")
    """))
    second = stage.who("second")
    stage.beats("third")
    situation.within("their end", lambda: not first.alive() and not second.alive())
    return stage.truth(in_use=["third", "mcp-server-fake"])

@scene("in use", twin="orphans/siblings")
def successor_unknown(stage):
    """The successor is a program that no rule knows, younger than the server."""
    return successor_of(stage, host="chat_host.py")
