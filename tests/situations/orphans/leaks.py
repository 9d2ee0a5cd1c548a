import signal
import time
import situation
from situation import scene

@scene("orphan", twin="identity/opted_out_far_behind")
def big_environment(stage):
    """A server with a megabyte of environment, in which nothing opts out; its agent is killed."""
    agent = stage.rests("claude", """
        filling = {f"FILLING_{n:02}": "x" * 100000 for n in range(10)}
        start("mcp-server-fake", env={**os.environ, **filling})
    """)
    return stage.killed(agent, orphans=["mcp-server-fake"])

@scene("orphan", twin="handed_on/successor")
@scene(
    "orphan", name="blocked_read", leak="fifo",
    about="The agent is killed; its server hangs in a read that never comes back, as on a dead network mount.",
)
@scene("orphan", name="closed_stdin", twin="stdout/stdin_closed", leak="closed", about="A server closed its own standard input; its agent is killed.")
@scene("orphan", name="ignores_sigterm", leak="deaf", about="The agent is killed; its server ignores SIGTERM.")
@scene(
    "orphan", name="runaway_loop", leak="spin", agent="codex",
    about="The agent is killed; its server runs in a loop and eats processor time.",
)
def busy_timer(stage, leak="timer", agent="claude"):
    """The agent is killed; an interval timer keeps its server alive."""
    stage.server("mcp-server-fake", leak)
    if leak == "fifo":
        # A FIFO is known to be older than its reader if some ticks of the kernel lie between the two.
        time.sleep(0.2)
    return stage.killed(stage.rests(agent, 'start("mcp-server-fake")'), orphans=["mcp-server-fake"])

@scene("orphan", twin="shell_jobs/loop")
def loop_around_it(stage):
    """A shell starts a server again whenever that ends, as it does with its input; the agent is killed, and the loop goes on."""
    stage.server("mcp-server-fake", "exit")
    agent = stage.rests("claude", 'start("/bin/sh", "-c", f"while :; do {BIN}/mcp-server-fake; sleep 1; done")')
    loop = [p for p in stage.find("sh") if "while" in p.argv()[-1]]
    stage.who("mcp-server-fake")
    return stage.killed(agent, orphans=loop)

@scene("orphan", twin="let_go/site_on_its_wires")
def behind_a_script(stage):
    """A script with the name of a server runs the real one on its own streams, and is killed; the real one serves on; then the agent is killed."""
    stage.server("real", "blocked")
    stage.part("mcp-server-fake", 'here()\nsubprocess.run([f"{BIN}/real"])\n')
    agent = stage.agent()
    stage.who("mcp-server-fake").kill()
    stage.adopted(stage.who("real"))
    return stage.killed(agent, orphans=["real"])

@scene("orphan", twin="identity/becomes_an_agent")
def execs_in_place(stage):
    """A server execs in place into its next version and is a server still; its agent is killed."""
    stage.server("mcp-server-next", "timer")
    stage.part("mcp-server-fake", """
        answer(os.read(0, 65536))
        become("mcp-server-next")
    """)
    agent = stage.rests("claude", """
        start("mcp-server-fake")
        present("mcp-server-next")
    """)
    return stage.killed(agent, orphans=["mcp-server-next"])

@scene("orphan")
def forks_when_told_to_end(stage):
    """A server answers SIGTERM with children that ignore it; its agent is killed."""
    stage.part("mcp-server-fake", """
        def on_term(*_):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            for n in range(3):
                copy(rest)
        signal.signal(signal.SIGTERM, on_term)
        serve()
    """)
    return stage.killed(stage.agent(), orphans=["mcp-server-fake"])

@scene("orphan", twin="handed_on/reopened")
def holds_its_own_wire(stage):
    """A server opened its own standard input for writing as well, so that its pipe never hangs up; the agent is killed."""
    stage.part("mcp-server-fake", """
        keep = os.open("/proc/self/fd/0", os.O_WRONLY)
        serve()
    """)
    return stage.killed(stage.agent(), orphans=["mcp-server-fake"])

@scene("orphan", twin="others/wrapper_killed")
def launch_chain(stage):
    """The agent is killed; `npx -y` > `sh -c` > server all stay, for nobody passes the end on."""
    stage.part("npx", """
        here()
        subprocess.run(["/bin/sh", "-c", f"{BIN}/mcp-server-fake; exit $?"])
    """)
    agent = stage.rests("claude", 'start("npx", "-y", "@modelcontextprotocol/server-fake", wire="socket")')
    agent.kill()
    server = stage.who("mcp-server-fake")
    return stage.truth(orphans=["npx", situation.Process(server.parent()), server])

@scene("orphan", twin="shell_jobs/pipeline")
def login_shell(stage):
    """The agent started its server through `bash -c 'cd .. && server; ..'`; it is killed, shell and server stay."""
    agent = stage.rests("claude", 'start("/bin/bash", "-c", f"cd / && {BIN}/mcp-server-fake; exit $?")')
    agent.kill()
    server = stage.who("mcp-server-fake")
    return stage.truth(orphans=[situation.Process(server.parent()), server])

@scene("orphan", twin="handed_on/moved_wire")
def moved_wire(stage):
    """A Python server moved its wire to another descriptor, as the SDK 2 does; its agent is killed."""
    stage.part("mcp-server-fake", """
        wire_in, wire_out = os.dup(0), os.dup(1)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(2, 1)
        here()
        answer(os.read(wire_in, 65536), wire_out)
        while os.read(wire_in, 65536):
            pass
        leak_on("timer")
    """)
    return stage.killed(stage.agent(), orphans=["mcp-server-fake"])

@scene("orphan", twin="let_go/in_a_pid_namespace")
def pid_namespace(stage):
    """The server is the first process of a PID namespace, with a child of its own; its agent is killed."""
    stage.part("mcp-server-fake", """
        tool = subprocess.Popen([BIN + "/tool"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        present("tool")
        serve()
    """)
    stage.part("tool", "here()\nrest()\n")
    agent = stage.rests("claude", 'start("/usr/bin/unshare", "--pid", "--fork", BIN + "/mcp-server-fake")')
    agent.kill()
    return stage.truth(orphans=[*stage.find("mcp-server-fake"), *stage.find("tool")])

@scene("orphan")
def respawned(stage):
    """A launcher starts its server anew whenever that dies; the agent of both is killed."""
    stage.part("npx", """
        here()
        while True:
            subprocess.run([f"{BIN}/mcp-server-fake"])
    """)
    return stage.killed(stage.rests("claude", 'start("npx", "-y", "mcp-server-fake")'), orphans=["npx", "mcp-server-fake"])

@scene("orphan", twin="handed_on/successor_socket")
def socket_pair(stage):
    """The agent is killed; an interval timer keeps its server alive, on a socket pair as node's SDK and Claude Code make them."""
    return stage.killed(stage.rests("claude", 'start("mcp-server-fake", wire="socket")'), orphans=["mcp-server-fake"])

@scene("orphan", twin="stdout/reader_waits")
@scene(
    "orphan", name="stderr_is_read_over_sockets", twin="stdout/reader_waits", kind="socket",
    about="The same over a pair of sockets, as below a program on node. The server has a duplicate of it, and hands it to a helper.",
)
def stderr_is_read(stage, kind="pipe"):
    """The agent is killed; a log collector that lives reads the server's standard error, which is no wire."""
    stage.part("mcp-server-fake", f"""
        if {kind == "socket"}:
            os.dup(2)
            subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=sys.stderr)
        serve()
    """)
    stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """)
    stage.run(stage.part("log-collector", f"""
        _, near, _, far = wires("{kind}")
        start("claude", wire=None, stderr=far)
        os.close(far)
        while os.read(near, 100):
            pass
    """))
    agent = stage.who("claude")
    return stage.killed(agent, orphans=["mcp-server-fake"])

@scene("orphan")
def stopped(stage):
    """The agent is killed; its server is stopped by SIGSTOP and hears no SIGTERM."""
    agent = stage.agent()
    server = stage.who("mcp-server-fake")
    server.kill(signal.SIGSTOP, wait=False)
    return stage.killed(agent, orphans=[server])

@scene("orphan", twin="clients/debugger")
def tracer_gone(stage):
    """A debugger was attached to the server and has gone; the agent is killed."""
    agent = stage.agent()
    server = stage.who("mcp-server-fake")
    debugger = stage.rests("debugger", 'trace(present("mcp-server-fake"))')
    debugger.kill()
    return stage.killed(agent, orphans=[server])

@scene("orphan", twin="others/wrapper_killed")
def wrapper_holds_the_wire(stage):
    """The wrapper made a pipe of its own for the server's input and never closes it, though its own is hung up; the agent is killed."""
    stage.part("npx", """
        here()
        r, w = os.pipe()
        child = subprocess.Popen([f"{BIN}/mcp-server-fake"], stdin=r)
        os.close(r)
        os.write(w, os.read(0, 65536))
        child.wait()
    """)
    return stage.killed(stage.rests("claude", 'start("npx", "-y", "mcp-server-fake")'), orphans=["npx", "mcp-server-fake"])
