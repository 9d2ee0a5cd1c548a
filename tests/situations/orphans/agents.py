import shutil
import signal
import situation
from situation import PYTHON, scene

@scene("orphan", twin="stdout/before", when="before")
def before(stage):
    """Left before the daemon came: adopted by init, both wires hung up."""
    agent = stage.agent()
    agent.kill()
    server = stage.who("mcp-server-fake")
    stage.adopted(server)
    return stage.truth(orphans=[server])

@scene("orphan", when="before")
def before_socket(stage):
    """Left before the daemon came, on a socket pair, with its launch chain."""
    stage.part("npx", """
        here()
        subprocess.run(["/bin/sh", "-c", f"{BIN}/mcp-server-fake; exit $?"])
    """)
    agent = stage.rests("claude", 'start("npx", "-y", "@modelcontextprotocol/server-fake", wire="socket")')
    agent.kill()
    server, npx = stage.who("mcp-server-fake"), stage.who("npx")
    stage.adopted(npx)
    return stage.truth(orphans=[npx, situation.Process(server.parent()), server])

@scene("orphan", when="before")
def before_then_killed(stage):
    """Agent and server were there before the daemon came; the agent is killed under its eyes."""
    # The agent ends itself six seconds after it was built: by then the daemon has come.
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake")
        here()
        time.sleep(6)
    """))
    stage.who("claude")
    return stage.truth(orphans=["mcp-server-fake"], may_end=[agent])

@scene("orphan")
def clean_exit(stage):
    """The agent ends by itself and leaves its server behind."""
    agent = stage.run(stage.part("gemini", """
        start("mcp-server-fake")
    """))
    server = stage.who("mcp-server-fake")
    return stage.ended(agent, orphans=[server])

@scene("orphan", twin="stdout/reader_waits")
def connection_lost(stage):
    """Somebody runs a server on this host over ssh; the connection is lost, and the process of his log-in ends."""
    login = stage.run(stage.part("sshd-session", """
        session("mcp-server-fake")
        here()
        wait_for("lost")
        os._exit(255)
    """))
    server = stage.who("mcp-server-fake")
    stage.who("sshd-session")
    stage.go("lost")
    return stage.ended(login, orphans=[server])

@scene("orphan")
def dies_slowly(stage):
    """An agent with much memory is killed, and holds its files while it dies."""
    agent = stage.rests("claude", """
        ballast = bytearray(400 << 20)
        for page in range(0, len(ballast), 4096):
            ballast[page] = 1
        start("mcp-server-fake")
    """)
    return stage.killed(agent, orphans=["mcp-server-fake"])

@scene("orphan")
def double_fork(stage):
    """An agent starts its server by a double fork, so that init has it from the first moment, and is killed."""
    agent = stage.rests("claude", """
        near_w, near_r, far_r, far_w = wires("pipe")
        def middle():
            subprocess.Popen([f"{BIN}/mcp-server-fake"], stdin=far_r, stdout=far_w)
        os.waitpid(copy(middle), 0)
        os.close(far_r)
        os.close(far_w)
        Server(near_w, near_r).ask()
    """)
    return stage.killed(agent, orphans=["mcp-server-fake"])

@scene("orphan")
def fourteen(stage):
    """One agent, fourteen servers on pipes and socket pairs; it is killed."""
    stage.put("mcp-server-tiny", """
        #!/bin/sh
        read line
        echo '{"result":{}}'
        echo $$ > "$ORPHAND_SITUATION_DIR/go/$2"
        while :; do sleep 1000; done
    """)
    agent = stage.rests("claude", """
        for n in range(14):
            start("/bin/sh", f"{BIN}/mcp-server-tiny", "--as", f"tiny{n}", wire=["pipe", "socket"][n % 2])
    """)
    stage.find("sleep", 14)
    agent.kill()
    return stage.truth(orphans=stage.everyone())

@scene("orphan", twin="clients/without_close_on_exec")
def without_close_on_exec(stage):
    """An agent sets no close-on-exec flag: each of its twelve servers inherits its ends of the wires of those before; it is killed."""
    agent = stage.rests("claude", "without_close_on_exec(12)")
    agent.kill()
    return stage.truth(orphans=[stage.who(f"server{n}") for n in range(12)])

@scene("orphan")
def other_user(stage):
    """Agent and server of an ordinary user; the agent is killed."""
    agent = stage.rests("claude", 'start("mcp-server-fake")', user=65534, group=65534, extra_groups=[])
    return stage.killed(agent, orphans=["mcp-server-fake"])

@scene("orphan", twin="let_go/web_server")
def own_session(stage):
    """The Python SDK starts servers in sessions of their own; the agent is killed."""
    host = stage.rests("hermes", 'start("mcp-server-fake", start_new_session=True)')
    host.kill()
    server = stage.who("mcp-server-fake")
    assert server.session() == server.pid
    return stage.truth(orphans=[server])

@scene("orphan")
def quick_death(stage):
    """Eight times: the agent dies within a millisecond after its server's exec."""
    path = stage.part("claude", """
        start("mcp-server-fake", "--as", f"server{argument('--number')}", asked=False)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    agents = [stage.run(path, "--number", n) for n in range(8)]
    servers = [stage.who(f"server{n}") for n in range(8)]
    situation.within("the agents' end", lambda: not any(agent.alive() for agent in agents))
    return stage.truth(orphans=servers)

@scene("mixed", twin="identity/quick_death_of_a_stranger")
def quick_death_below_another(stage):
    """Eight times: an agent dies within a millisecond after its server's exec; the agent above it lives and has nothing to do with that server."""
    stage.part("claude", """
        start("mcp-server-fake", "--as", f"left{argument('--number')}", asked=False)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    outer = stage.uses("codex", """
        own = start("mcp-server-fake", "--as", "own")
        for n in range(8):
            start("claude", "--number", str(n), wire=None).wait()
        use("codex", own.ask)
    """)
    return stage.truth(orphans=[f"left{n}" for n in range(8)], in_use=[outer, "own"])

@scene("mixed")
def restarts(stage):
    """A gateway was restarted three times and left two servers each time; the fourth works with its own."""
    path = stage.part("claude", """
        servers = [start("mcp-server-fake", "--as", f"{ALIAS}.{n}") for n in range(2)]
        use(ALIAS, lambda: [server.ask() for server in servers])
    """)
    runs = []
    for n in range(4):
        runs.append(stage.run(path, "--as", f"run{n}"))
        if n < 3:
            stage.was_used(f"run{n}", 1)
            runs[n].kill()
    stage.beats("run3", 1)
    servers = [stage.who(f"run{n}.{m}") for n in range(4) for m in range(2)]
    return stage.truth(orphans=servers[:6], in_use=[runs[3], *servers[6:]])

@scene("mixed", restart=True)
def restarts_of_orphand(stage):
    """Two agents with a server each; the one is killed, and orphand is restarted again and again."""
    path = stage.part("claude", """
        server = start("mcp-server-fake", "--as", f"{ALIAS}.server")
        use(ALIAS, server.ask)
    """)
    agents = [stage.run(path, "--as", name) for name in ("one", "two")]
    for name in ("one", "two"):
        stage.beats(name)
    stage.over.add("one")
    agents[0].kill()
    return stage.truth(orphans=["one.server"], in_use=[agents[1], "two.server"])

@scene("mixed")
def subagent(stage):
    """An agent lives and uses its server; the agent below it was killed and left one."""
    stage.part("codex", """
        start("mcp-server-fake", "--as", "left")
        here()
        rest()
    """)
    outer = stage.run(stage.part("claude", """
        own = start("mcp-server-fake", "--as", "own")
        start("codex", wire=None)
        use("claude", own.ask)
    """))
    inner = stage.who("codex")
    inner.kill()
    stage.beats("claude")
    return stage.truth(orphans=["left"], in_use=[outer, "own"])

@scene("orphan", twin="copies/background")
def terminal_closed(stage):
    """The agent dies by SIGHUP when its terminal closes; its server, in a session of its own, does not."""
    agent = stage.rests("claude", 'start("mcp-server-fake", start_new_session=True)')
    agent.kill(signal.SIGHUP)
    return stage.truth(orphans=["mcp-server-fake"])

@scene("orphan")
def unburied(stage):
    """The killed agent stays a zombie, because the program above it never waits."""
    stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """)
    stage.run(stage.part("supervisor.py", """
        start("claude", wire=None)
        rest()
    """))
    agent = stage.who("claude")
    agent.kill(signal.SIGKILL)
    return stage.truth(orphans=["mcp-server-fake"])

@scene("orphan", twin="copies/workers_with_servers_unknown_host")
def unknown_host(stage):
    """A home-made host that no rule knows is killed; its server stays."""
    host = stage.run(stage.part("chat_host.py", "use('host', start('mcp-server-fake').ask)\n"))
    stage.was_used("host")
    return stage.killed(host, orphans=["mcp-server-fake"])

@scene("orphan")
def unknown_host_at_once(stage):
    """A home-made host that no rule knows is killed the moment its server runs."""
    stage.run(stage.part("chat_host.py", """
        start("mcp-server-fake")
        os.kill(os.getpid(), signal.SIGKILL)
    """))
    return stage.truth(orphans=["mcp-server-fake"])

@scene("orphan", twin="others/job_named_like_a_server")
def unknown_host_confirmed(stage):
    """The name of a server says little, but its home-made host, which is killed, spoke the protocol to it."""
    stage.server("mcp-notes", starts=0.5)
    host = stage.run(stage.part("chat_host.py", "use('host', session('mcp-notes').ask)\n"))
    stage.was_used("host")
    return stage.killed(host, orphans=["mcp-notes"])

@scene("orphan", twin="copies/workers_with_servers_unknown_host")
def unknown_host_on_the_jvm(stage):
    """A home-made host on the JVM, whose helper puts the wires in place and then runs the server, is killed; both servers stay."""
    shutil.copy(PYTHON, f"{stage.dir}/bin/jspawnhelper")
    spawn = stage.put("spawn.py", """
        import os, sys
        os.dup2(int(sys.argv[1]), 0)
        os.dup2(int(sys.argv[2]), 1)
        os.execv(sys.argv[3], sys.argv[3:])
    """)
    stage.server("mcp-notes", starts=0.5)
    host = stage.run(stage.part("chat_host.py", f"""
        start("mcp-server-fake")
        near_w, near_r, far_r, far_w = wires("pipe")
        helper = [f"{{BIN}}/jspawnhelper", "-ISB", "{spawn}", str(far_r), str(far_w), f"{{BIN}}/mcp-notes"]
        start(helper[0], *helper[1:], wire=None, pass_fds=(far_r, far_w))
        second = Server(near_w, near_r)
        second.ask("initialize", {{"protocolVersion": "2025-06-18", "capabilities": {{}}, "clientInfo": {{"name": "host", "version": "1"}}}})
        use("host", second.ask)
    """))
    stage.was_used("host")
    return stage.killed(host, orphans=["mcp-server-fake", "mcp-notes"])
