import os
import shutil
import signal
import situation
from situation import scene

@scene("in use")
def agent_without_leader(stage):
    """The agent's leading thread has ended; its other threads go on with the server."""
    agent = stage.uses("claude", """
        server = start("mcp-server-fake")
        in_background(use, "claude", server.ask)
        here()
        libc.syscall(60, 0)
    """)
    return stage.truth(in_use=["claude", "mcp-server-fake"])

@scene("in use", twin="orphans/execs_in_place")
def becomes_an_agent(stage):
    """A server execs in place into an agent, which works with a server of its own; the first agent is killed."""
    stage.part("codex", """
        here()
        use("codex", start("mcp-server-fake").ask)
    """)
    stage.part("mcp-server-turncoat", """
        answer(os.read(0, 65536))
        become("codex")
    """)
    agent = stage.agent("mcp-server-turncoat")
    stage.beats("codex")
    return stage.killed(agent, in_use=["codex", "mcp-server-fake"])

@scene("in use", twin="orphans/execs_in_place")
def becomes_an_agent_after_its_owner(stage):
    """The server execs in place into an agent when its owner is dead and the grace runs."""
    stage.part("codex", """
        here()
        use("codex", start("mcp-server-fake").ask)
    """)
    stage.part("mcp-server-turncoat", """
        answer(os.read(0, 65536))
        signal.signal(signal.SIGUSR1, lambda *_: become("codex"))
        here()
        rest()
    """)
    agent = stage.agent("mcp-server-turncoat")
    turncoat = stage.who("mcp-server-turncoat")
    agent.kill()
    turncoat.kill(signal.SIGUSR1, wait=False)
    stage.beats("codex")
    return stage.truth(in_use=["codex", "mcp-server-fake"])

@scene("in use", twin="orphans/execs_in_place")
def becomes_an_editor(stage):
    """A server execs in place into an editor with a person at it; the agent is killed."""
    stage.part("vim", """
        here()
        use("vim", lambda: open(f"{DIR}/notes", "a").write("word "))
    """)
    stage.part("mcp-server-turncoat", """
        answer(os.read(0, 65536))
        become("vim")
    """)
    agent = stage.agent("mcp-server-turncoat")
    stage.beats("vim")
    return stage.killed(agent, in_use=["vim"])

@scene("in use", twin="orphans/execs_in_place")
def becomes_tmux(stage):
    """A server execs in place into tmux, which keeps a session; the agent is killed."""
    stage.part("job", "here()\nuse('job', lambda: print('step', flush=True))\n")
    stage.part("tmux", """
        here()
        start("job", wire=None, stdout=open(f"{DIR}/job.log", "a"), start_new_session=True)
        rest()
    """)
    stage.part("mcp-server-turncoat", """
        answer(os.read(0, 65536))
        become("tmux")
    """)
    agent = stage.agent("mcp-server-turncoat")
    stage.beats("job")
    return stage.killed(agent, in_use=["tmux", "job"])

@scene("in use", twin="orphans/unknown_host")
def becomes_unknown(stage):
    """An agent execs in place into a program that no rule knows, which talks on through the wires."""
    stage.part("helper.py", "use('helper', handed().ask)\n")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake", wire="socket")
        os.set_inheritable(server.w, True)
        become("helper.py", *words(server))
    """))
    stage.beats("helper")
    return stage.truth(in_use=[agent, "mcp-server-fake"])

@scene("in use", twin="identity/daemon_killed")
def daemon_goes_on(stage):
    """A daemon by design goes on when the agent that started it is killed, and uses its server later."""
    stage.part("job-daemon", """
        server = start("mcp-server-fake")
        here()
        on_call("job-daemon", server.ask)
    """)
    agent = stage.rests("claude", 'start("job-daemon", wire=None, start_new_session=True)')
    daemon, server = stage.who("job-daemon"), stage.who("mcp-server-fake")
    stage.when_called("job-daemon", daemon)
    return stage.killed(agent, in_use=[daemon, server])

@scene("mixed", twin="identity/daemon_goes_on")
def daemon_killed(stage):
    """A daemon by design is killed and leaves its server behind; the agent that started the daemon lives."""
    stage.part("job-daemon", """
        server = start("mcp-server-fake")
        here()
        rest()
    """)
    agent = stage.rests("claude", 'start("job-daemon", wire=None, start_new_session=True)')
    daemon, server = stage.who("job-daemon"), stage.who("mcp-server-fake")
    return stage.killed(daemon, orphans=[server], in_use=[agent])

@scene("in use")
def exec_by_a_thread(stage):
    """A thread of the agent, not its leader, execs the next version; the process and its wires stay."""
    agent = stage.uses("claude", """
        if "--wires" in sys.argv:
            use("claude", handed().ask)
        server = start("mcp-server-fake")
        os.set_inheritable(server.w, True)
        os.set_inheritable(server.r, True)
        in_background(become, "claude", *words(server))
        rest()
    """)
    return stage.truth(in_use=[agent, "mcp-server-fake"])

@scene("in use", twin="orphans/busy_timer")
@scene(
    "in use", name="opted_out_far_behind", twin="orphans/big_environment", filling=12,
    about="The server opted out behind a megabyte of environment; the agent is killed.",
)
def opted_out(stage, filling=0):
    """The server opted out (`ORPHAND_OPT_OUT=1`); the agent is killed."""
    agent = stage.rests("claude", f"""
        filling = {{f"FILLING_{{n:02}}": "x" * 110000 for n in range({filling})}}
        start("mcp-server-fake", env={{**os.environ, **filling, "ORPHAND_OPT_OUT": "1"}})
    """)
    return stage.killed(agent, in_use=["mcp-server-fake"])

@scene("in use", twin="orphans/quick_death_below_another")
def quick_death_of_a_stranger(stage):
    """An agent dies within a millisecond after its server's exec; that server's wire is used by the agent above it, which made it."""
    stage.part("claude", """
        w = list(map(int, argument("--far").split(",")))
        subprocess.Popen([f"{BIN}/mcp-server-fake"], stdin=w[0], stdout=w[1])
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    outer = stage.uses("codex", """
        near_w, near_r, far_r, far_w = wires("pipe")
        start("claude", "--far", f"{far_r},{far_w}", wire=None, pass_fds=[far_r, far_w]).wait()
        os.close(far_r)
        os.close(far_w)
        use("codex", Server(near_w, near_r).ask)
    """)
    return stage.truth(in_use=[outer, "mcp-server-fake"])

@scene("in use", twin="identity/upgraded_and_left")
@scene(
    "orphan", name="upgraded_and_left", twin="identity/upgraded", left=True,
    about="The executable of a server was replaced on disk since it started; then its agent is killed.",
)
def upgraded(stage, left=False):
    """The executable of a server was replaced on disk since it started; it is used later."""
    shutil.copy(situation.PYTHON, f"{stage.dir}/bin/python3")
    agent = stage.run(stage.part("claude", """
        server = start("python3", "-ISB", f"{BIN}/mcp-server-fake", "--as", "mcp-server-fake")
        here()
        on_call("claude", server.ask)
    """))
    server = stage.who("mcp-server-fake")
    shutil.copy(situation.PYTHON, f"{stage.dir}/bin/next")
    os.replace(f"{stage.dir}/bin/next", f"{stage.dir}/bin/python3")
    situation.within("its binary is stale", lambda: os.readlink(f"/proc/{server.pid}/exe").endswith(" (deleted)"))
    stage.when_called("claude", agent)
    if not left:
        return stage.truth(in_use=[agent, server])
    stage.over.add("claude")
    return stage.killed(agent, orphans=[server])

@scene("in use", twin="orphans/busy_timer")
def upgraded_in_place(stage):
    """An agent upgrades itself by exec in place and keeps its wires."""
    agent = stage.uses("claude", """
        if "--wires" in sys.argv:
            use("claude", handed().ask)
        server = start("mcp-server-fake")
        os.set_inheritable(server.w, True)
        os.set_inheritable(server.r, True)
        become("claude", *words(server))
    """)
    return stage.truth(in_use=[agent, "mcp-server-fake"])
