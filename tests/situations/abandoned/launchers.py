import situation
from situation import scene

@scene("mixed", twin="abandoned/a_copy_reads")
def closed_by_the_node_sdk_behind_a_shell(stage):
    """The agent closed one of two servers behind `sh` and a launcher, as the Node SDK does: the launcher outlives the shell."""
    stage.server("mcp-server-fake", "deaf")
    stage.part("uvx", """
        server = subprocess.Popen([f"{BIN}/mcp-server-fake", *sys.argv[2:]])
        signal.signal(signal.SIGTERM, lambda *_: server.terminate())
        server.wait()
    """)
    agent = stage.uses("claude", """
        line = f"trap '' TERM; {BIN}/uvx mcp-server-fake --as "
        old, new = [start("/bin/sh", "-c", line + name + "; true") for name in ("old", "new")]
        os.close(old.w)
        old.child.terminate()
        old.child.kill()
        old.child.wait()
        here()
        use("claude", new.ask)
    """)
    return stage.truth(orphans=["old"], in_use=[agent, "new"])

@scene("in use")
def launcher_exits_after_the_last_request(stage):
    """A launcher exits by itself while the agent, which closed the input, still reads the results of the server."""
    agent = stage.uses("claude", """
        server = start("/bin/sh", "-c", f"exec 3<&0; {BIN}/mcp-server-batch <&3 3<&- & sleep 1")
        os.close(server.w)
        here()
        use("claude", lambda: os.read(server.r, 1000) or 1 / 0)
    """)
    return stage.truth(in_use=[agent, "mcp-server-batch"])

@scene("orphan", twin="others/wrapper_killed")
def launcher_killed(stage):
    """The agent closed the input and ended the launcher, as the Node SDK does; the server stays and the agent could read."""
    agent = stage.rests("claude", """
        server = start("/bin/sh", "-c", f"{BIN}/mcp-server-fake; true")
        present("mcp-server-fake")
        os.close(server.w)
        server.child.kill()
        server.child.wait()
    """)
    return stage.truth(orphans=["mcp-server-fake"], in_use=[])

@scene("in use", twin="abandoned/launcher_killed")
def launcher_killed_by_another(stage):
    """The agent closed the input after the last request; somebody else kills the launcher; the results are still read."""
    agent = stage.uses("claude", """
        server = start("/bin/sh", "-c", f"{BIN}/mcp-server-batch; true")
        os.close(server.w)
        tell("go/launcher", str(server.pid))
        here()
        use("claude", lambda: os.read(server.r, 1000) or 1 / 0)
    """)
    with open(f"{stage.dir}/go/launcher") as f:
        situation.Process(f.read()).kill()
    return stage.truth(in_use=[agent, "mcp-server-batch"])

@scene(
    "orphan", twin="abandoned/launcher_exits_after_the_last_request",
    cost="a launcher that exits with success may have done its work, and the agent can read the results",
)
def launcher_told_to_end_exits_cleanly(stage):
    """The agent closed the input and told the launcher to end, which exits with success and leaves the server behind."""
    stage.run(stage.part("claude", """
        server = start("/bin/bash", "-c", f"trap 'exit 0' TERM; {BIN}/mcp-server-fake <&0 & wait")
        os.close(server.w)
        server.child.terminate()
        server.child.wait()
        here()
        rest()
    """))
    stage.who("claude")
    return stage.truth(orphans=["mcp-server-fake"])

@scene("in use", twin="abandoned/launcher_killed")
def stopped_meanwhile(stage):
    """The agent closed the input and waits for results; a person stopped the server for now, and somebody killed the launcher."""
    agent = stage.uses("claude", """
        server = start("/bin/sh", "-c", f"{BIN}/mcp-server-batch; true")
        os.close(server.w)
        tell("go/launcher", str(server.pid))
        here()
        use("claude", lambda: os.read(server.r, 1000) or 1 / 0)
    """)
    batch = stage.who("mcp-server-batch")
    batch.kill(situation.signal.SIGSTOP, wait=False)
    stage.when_called("claude", batch, situation.signal.SIGCONT)
    with open(f"{stage.dir}/go/launcher") as f:
        situation.Process(f.read()).kill()
    return stage.truth(in_use=[agent, batch])

@scene(
    "orphan", twin="abandoned/told_to_end_works_off_its_last_request",
    cost="who was told to end may still work off the last request, and the agent can read the result",
)
def told_to_end_in_vain(stage):
    """The agent closed the input and told the launcher to end, which ignores it; nobody reads any more."""
    stage.run(stage.part("claude", """
        server = start("/bin/sh", "-c", f"trap '' TERM; {BIN}/mcp-server-fake; true")
        os.close(server.w)
        server.child.terminate()
        here()
        rest()
    """))
    stage.who("claude")
    return stage.truth(orphans=["mcp-server-fake"])

@scene("in use", twin="abandoned/told_to_end_in_vain")
def told_to_end_works_off_its_last_request(stage):
    """The agent closed the input and told the launcher to end, which ignores it; the last result comes late and is read."""
    stage.part("mcp-server-batch", """
        here()
        answer(os.read(0, 65536))
        wait_for("result")
        use("server", lambda: os.write(1, b'{"jsonrpc": "2.0", "id": 1, "result": {}}\\n'))
    """)
    agent = stage.run(stage.part("claude", """
        server = start("/bin/sh", "-c", f"trap '' TERM; {BIN}/mcp-server-batch; true")
        os.close(server.w)
        server.child.terminate()
        here()
        def result():
            tell("go/result", "")
            return os.read(server.r, 1000) or 1 / 0
        on_call("claude", result)
    """))
    stage.when_called("claude", stage.who("claude"))
    return stage.truth(in_use=[agent, "mcp-server-batch"])
