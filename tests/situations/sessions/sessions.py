import signal
from boxes import Docker
from registry import Registry
from situation import scene

@scene("in use", twin="sessions/expired", needs=["redis", "docker"])
def computes_in_a_container(stage):
    """The key of a session is gone; its manager closes the input of a container and waits for the result of a quiet job in it."""
    registry, docker = Registry("ended", "goes-on"), Docker(stage)
    agent = stage.run(stage.part("claude", """
        script = f"read -r _; while [ ! -e {DIR}/go/result ]; do sleep 0.3; done; echo '{{\\"result\\":{{}}}}'; sleep 7200"
        folder = ["-v", f"{DIR}:{DIR}"]
        goes_on = box("goes-on", *given("goes-on"))
        job = box("ended", *folder, *given("ended"), program=["/bin/sh", "-c", script], asked=False)
        os.write(job.w, b"x\\n")
        here()
        def ask():
            tell("go/result", "")
            job.take()
        tell("beats/claude", "0")
        wait_for("end")
        # The session has expired by then.
        time.sleep(7)
        os.close(job.w)
        on_call("claude", ask)
    """))
    pairs = docker.pair("ended") + docker.pair("goes-on")
    stage.when_called("claude", agent)
    registry.end("ended")
    stage.go("end")
    return stage.truth(in_use=[agent, *pairs])

@scene("mixed", twin="sessions/expired_and_used", needs=["redis"])
def expired(stage):
    """A manager has a server for each session; the key of one session is gone, and the manager leaks its server."""
    registry = Registry("ended", "goes-on")
    agent = stage.uses("claude", """
        ended = start("mcp-server-fake", "--as", "ended", env=of_session("ended"))
        goes_on = start("mcp-server-fake", "--as", "goes-on", env=of_session("goes-on"))
        here()
        use("claude", goes_on.ask)
    """)
    registry.end("ended")
    return stage.truth(orphans=["ended"], in_use=[agent, "goes-on"])

@scene("in use", twin="sessions/expired", needs=["redis"])
def expired_and_used(stage):
    """The key of a session is gone, and its manager uses the server nevertheless."""
    registry = Registry("ended", "goes-on")
    agent = stage.uses("claude", """
        servers = [start("mcp-server-fake", "--as", name, env=of_session(name)) for name in ("ended", "goes-on")]
        here()
        use("claude", lambda: [server.ask() for server in servers])
    """)
    registry.end("ended")
    return stage.truth(in_use=[agent, "ended", "goes-on"])

@scene("in use", twin="sessions/leaked_in_a_container", needs=["redis", "docker"])
def in_a_container(stage):
    """The key of a session is gone, and its manager talks to the session's server in a container nevertheless."""
    registry, docker = Registry("ended", "goes-on"), Docker(stage)
    agent = stage.uses("claude", """
        servers = [box(name, *given(name)) for name in ("ended", "goes-on")]
        here()
        use("claude", lambda: [server.ask() for server in servers])
    """)
    registry.end("ended")
    return stage.truth(in_use=[agent, *docker.pair("ended"), *docker.pair("goes-on")])

@scene(
    "mixed", twin="sessions/in_a_container", needs=["redis", "docker"],
    cost="a container is stopped only when its input has ended, and the manager holds that open",
)
def leaked_in_a_container(stage):
    """A manager has a server in a container for each session; the key of one is gone, and the manager leaks its server."""
    registry, docker = Registry("ended", "goes-on"), Docker(stage)
    agent = stage.uses("claude", """
        ended = box("ended", *given("ended"))
        goes_on = box("goes-on", *given("goes-on"))
        here()
        use("claude", goes_on.ask)
    """)
    registry.end("ended")
    return stage.truth(orphans=docker.pair("ended"), in_use=[agent, *docker.pair("goes-on")])

@scene("in use", twin="sessions/expired", needs=["redis"])
def manager_is_stopped(stage):
    """A person stops a manager for a while (^Z): the key of its session runs out, because nobody renews it."""
    registry = Registry("ended")
    agent = stage.uses("claude", """
        server = start("mcp-server-fake", "--as", "ended", env=of_session("ended"))
        use("claude", server.ask)
    """)
    agent.kill(signal.SIGSTOP, wait=False)
    registry.end("ended")
    stage.when_called("claude", agent, signal.SIGCONT)
    return stage.truth(in_use=[agent, "ended"])

@scene("in use", twin="sessions/expired", needs=["redis"])
@scene(
    "in use", name="named_otherwise", twin="sessions/expired", needs=["redis"], keys=[],
    about="A manager whose sessions have keys of another name: none of them was ever seen, and its servers rest.",
)
def paused(stage, keys=("one", "other")):
    """Two sessions have their keys, and nobody asks their servers for anything until the judgement is over."""
    Registry(*keys)
    agent = stage.when_over("claude", """
        servers = [start("mcp-server-fake", "--as", name, env=of_session(name)) for name in ("one", "other")]
        here()
        on_call("claude", lambda: [server.ask() for server in servers])
    """)
    return stage.truth(in_use=[agent, "one", "other"])
