import boxes
import os
import signal
import situation
from boxes import Docker
from situation import scene

@scene("orphan", twin="containers/agent_lives", needs=["docker"])
@scene(
    "orphan", name="podman_agent_killed", twin="containers/podman_attached", needs=["podman"], engine="podman",
    about="The agent is killed; the client of its container (podman) lives, and the container does not end at the end of its input.",
)
@scene(
    "orphan", name="with_an_init", twin="containers/agent_lives", needs=["docker"], box='"box", "--init"',
    about="The agent of a container with an init process (`--init`) is killed.",
)
def agent_killed(stage, engine="docker", box='"box"'):
    """The agent is killed; the client of its container lives, and the container does not end at the end of its input."""
    engine = boxes.engine(stage, engine)
    agent = stage.rests("claude", f"box({box})")
    pair = engine.pair("box")
    return stage.killed(agent, orphans=pair)

@scene("in use", twin="containers/agent_killed", needs=["docker"])
def agent_lives(stage):
    """An agent talks to a server in a container, with an init process, and rests beside another one."""
    docker = Docker(stage)
    agent = stage.uses("claude", """
        box("idle")
        server = box("box", "--init")
        here()
        use("claude", server.ask)
    """)
    return stage.truth(in_use=[agent, *docker.pair("box"), *docker.pair("idle")])

@scene("in use", twin="containers/agent_killed", needs=["docker"])
def attached(stage):
    """The agent of a container is killed; another one is attached to it and takes its results."""
    docker = Docker(stage)
    agent = stage.rests("claude", 'box("box", program=["/bin/mcp-server-results"])')
    pair = docker.pair("box")
    other = stage.uses("codex", """
        server = docker("attach", "--sig-proxy=false", called("box"), asked=False)
        server.patience = 60.0
        here()
        use("codex", lambda: server.take())
    """)
    agent.kill()
    return stage.truth(in_use=[other, docker.client("attach"), pair[1]], may_end=[pair[0]])

@scene(
    "orphan", twin="containers/attached", needs=["docker"],
    cost="without its client nobody tells who started the container, and its engine may have; it is told with the command that stops it",
)
@scene(
    "orphan", name="podman_client_killed", twin="containers/podman_attached", needs=["podman"], engine="podman",
    about="The agent of a container of podman is killed together with the client; nobody is left who can reach the container.",
    cost="without its client nobody tells who started the container, and its engine may have; it is told with the command that stops it",
)
def client_killed(stage, engine="docker"):
    """The agent of a container is killed together with the client; nobody is left who can reach the container."""
    engine = boxes.engine(stage, engine)
    agent = stage.rests("claude", 'box("box")')
    client, inside = engine.pair("box")
    client.kill()
    return stage.killed(agent, orphans=[inside])

@scene("mixed", needs=["docker"])
def client_terminated(stage):
    """The clients of two containers are sent SIGTERM, which the servers ignore; one of the agents is killed, the other works on."""
    docker = Docker(stage)
    stage.part("claude", """
        server = box(ALIAS, program=["/bin/sh", "-c", "trap '' TERM; exec /bin/mcp-server-box"])
        here()
        use(ALIAS, server.ask)
    """)
    killed = stage.run(f"{stage.dir}/bin/claude", "--as", "killed")
    works = stage.run(f"{stage.dir}/bin/claude", "--as", "works")
    pair, kept = docker.pair("killed"), docker.pair("works")
    stage.was_used("killed")
    stage.beats("works")
    for client in (pair[0], kept[0]):
        client.kill(signal.SIGTERM, wait=False)
    return stage.killed(killed, orphans=pair, in_use=[works, *kept])

@scene("in use", twin="containers/entered", needs=["docker"])
def detached_service(stage):
    """An agent started a container in the background (`-d`) and is killed; another one runs servers in it."""
    docker = Docker(stage)
    agent = stage.rests("claude", """
        where = ["--network", "none", "--cgroup-parent", os.environ["ORPHAND_SITUATION_GROUP"]]
        image = os.environ["ORPHAND_SITUATION_IMAGE"]
        line = ["docker", "run", "-d", "--rm", *where, "--name", called("box"), image, "/bin/mcp-server-deaf"]
        shell(" ".join(line))
    """)
    inside = docker.first("box")
    other = stage.uses("codex", """
        server = docker("exec", "-i", called("box"), "/bin/mcp-server-box")
        here()
        use("codex", server.ask)
    """)
    agent.kill()
    return stage.truth(in_use=[other, docker.client("exec"), inside])

@scene("in use", twin="containers/agent_killed", needs=["docker"])
def engine_not_asked(stage):
    """The agent of a container is killed, and orphand was not told of the container's engine: a person has to stop it."""
    docker = Docker(stage, asked=False)
    agent = stage.rests("claude", 'box("box")')
    pair = docker.pair("box")
    return stage.killed(agent, in_use=pair)

@scene("in use", twin="containers/agent_killed", needs=["docker"])
@scene(
    "in use", name="podman_entered", twin="containers/podman_agent_killed", needs=["podman"], engine="podman",
    about="The agent of a container of podman is killed; another one runs a server in it (`podman exec -i`).",
)
def entered(stage, engine="docker"):
    """The agent of a container is killed; another one runs a server in it (`docker exec -i`)."""
    engine = boxes.engine(stage, engine)
    agent = stage.rests("claude", 'box("box")')
    pair = engine.pair("box")
    other = stage.uses("codex", """
        server = docker("exec", "-i", called("box"), "/bin/mcp-server-box")
        here()
        use("codex", server.ask)
    """)
    agent.kill()
    return stage.truth(in_use=[other, engine.client("exec"), *pair])

@scene("in use", twin="containers/entered", needs=["docker"])
def entered_anothers(stage):
    """An agent that runs a server in another agent's container (`docker exec -i`) is killed; that one works on."""
    docker = Docker(stage)
    agent = stage.uses("codex", """
        server = box("box")
        here()
        use("codex", server.ask)
    """)
    pair = docker.pair("box")
    guest = stage.rests("claude", 'docker("exec", "-i", called("box"), "/bin/mcp-server-box")')
    client = docker.client("exec")
    return stage.killed(guest, in_use=[agent, *pair], may_end=[client])

@scene("orphan", twin="containers/entered", needs=["docker"])
def fake_clients(stage):
    """The agent of a container is killed; a user without rights to the engine has 257 processes with the arguments of a client that is in it."""
    docker = Docker(stage)
    agent = stage.rests("claude", 'box("box")')
    pair = docker.pair("box")
    crowd = "import os, time\nfor _ in range(256):\n    if os.fork() == 0: break\ntime.sleep(7200)"
    # Python takes what follows its program for arguments of that, and Docker's client `-c` for an option with a value.
    words = ["docker", "-c", crowd, "exec", "-i", f"{os.path.basename(stage.dir)}-box", "/bin/mcp-server-box"]
    stage.run(*words, executable=situation.PYTHON, user=64001, group=64001, extra_groups=[])
    alike = lambda: [one for one in stage.everyone() if one.argv()[3:5] == words[3:5]]
    situation.within("257 of them", lambda: len(alike()) >= 257)
    return stage.killed(agent, orphans=pair)

@scene("mixed", needs=["docker"])
def on_a_terminal(stage):
    """A person runs a server of the same image on a terminal (`-it`), while an agent with another container is killed."""
    docker = Docker(stage)
    agent = stage.rests("claude", 'box("box")')
    person = stage.run(stage.part("terminal", """
        import pty
        near, far = pty.openpty()
        where = ["--network", "none", "--cgroup-parent", os.environ["ORPHAND_SITUATION_GROUP"], "--name", called("seen")]
        line = ["/usr/bin/docker", "run", "-it", "--rm", *where, os.environ["ORPHAND_SITUATION_IMAGE"], "/bin/mcp-server-box"]
        subprocess.Popen(line, stdin=far, stdout=far, stderr=far, start_new_session=True)
        terminal = Server(near, near)
        here()
        def type_in():
            os.write(near, b"x\\n")
            answer = b""
            while b"result" not in answer:
                if not select.select([near], [], [], 60.0)[0]:
                    raise TimeoutError("no answer")
                answer += os.read(near, 65536)
        use("terminal", type_in)
    """))
    pair, seen = docker.pair("box"), docker.pair("seen")
    stage.beats("terminal")
    return stage.killed(agent, orphans=pair, in_use=[person, *seen])

@scene("in use", twin="containers/podman_agent_killed", needs=["podman"])
def podman_attached(stage):
    """The agent of a container of podman is killed; another one is attached to it, and waits."""
    podman = boxes.engine(stage, "podman")
    agent = stage.rests("claude", 'box("box")')
    pair = podman.pair("box")
    other = stage.rests("codex", 'docker("attach", "--sig-proxy=false", called("box"))')
    agent.kill()
    return stage.truth(in_use=[other, podman.client("attach"), pair[1]], may_end=[pair[0]])

@scene(
    "in use", name="port_with_a_client", twin="containers/agent_killed", needs=["docker"], kind="tcp", network="host",
    about="The server in a container serves a port of the host as well, and a client uses that; its agent is killed.",
)
@scene(
    "in use", name="socket_in_a_volume", twin="containers/agent_killed", needs=["docker"], kind="unix",
    about="The server in a container listens on a socket in a volume, and another agent's server calls there; its agent is killed.",
)
def listens(stage, kind, network="none"):
    docker = Docker(stage)
    stage.part("mcp-server-fake", f"""
        in_background(answer_calls, listen("{kind}", "box"))
        serve()
    """)
    agent = stage.rests("claude", f'box("box", *of_the_host(), network="{network}", program=[f"{{BIN}}/mcp-server-fake"])')
    pair = docker.pair("box")
    client = stage.uses("client", f"""
        here()
        use("client", lambda: call("{kind}", "box"))
    """)
    return stage.killed(agent, in_use=[client, *pair])

@scene("mixed", needs=["docker"])
def ten_at_once(stage):
    """An agent with ten containers is killed, half of them with an init process; another agent works with an eleventh."""
    docker = Docker(stage)
    agent = stage.run(stage.part("claude", """
        here()
        servers = [box(f"b{n}", *["--init"] * (n % 2), asked=False) for n in range(10)]
        rest()
    """))
    other = stage.run(stage.part("codex", """
        server = box("kept")
        here()
        use("codex", server.ask)
    """))
    pairs = [docker.pair(f"b{n}") for n in range(10)]
    kept = docker.pair("kept")
    stage.beats("codex")
    return stage.killed(agent, orphans=[one for pair in pairs for one in pair], in_use=[other, *kept])
