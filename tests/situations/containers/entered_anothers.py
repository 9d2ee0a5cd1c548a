"""An agent that runs a server in another agent's container (`docker exec -i`) is killed; that one works on."""
from boxes import Docker

TRUTH = "in use"
TWIN = "containers/entered"
NEEDS = ["docker"]


def build(stage):
    docker = Docker(stage)
    agent = stage.run(stage.part("codex", """
        server = box("box")
        here()
        use("codex", server.ask)
    """))
    stage.beats("codex")
    pair = docker.pair("box")
    guest = stage.run(stage.part("claude", """
        docker("exec", "-i", called("box"), "/bin/mcp-server-box")
        here()
        rest()
    """))
    stage.who("claude")
    client = docker.client("exec")
    guest.kill()
    return stage.truth(in_use=[agent, *pair], may_end=[client])
