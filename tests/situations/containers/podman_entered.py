"""The agent of a container of podman is killed; another one runs a server in it (`podman exec -i`)."""
from boxes import Podman

TRUTH = "in use"
TWIN = "containers/podman_agent_killed"
NEEDS = ["podman"]


def build(stage):
    podman = Podman(stage)
    agent = stage.run(stage.part("claude", """
        box("box")
        here()
        rest()
    """))
    stage.who("claude")
    pair = podman.pair("box")
    other = stage.run(stage.part("codex", """
        server = docker("exec", "-i", called("box"), "/bin/mcp-server-box")
        here()
        use("codex", server.ask)
    """))
    stage.beats("codex")
    agent.kill()
    return stage.truth(in_use=[other, podman.client("exec"), *pair])
