"""The agent of a container is killed; another one runs a server in it (`docker exec -i`)."""
from boxes import Docker

TRUTH = "in use"
TWIN = "containers/agent_killed"
NEEDS = ["docker"]


def build(stage):
    docker = Docker(stage)
    agent = stage.run(stage.part("claude", """
        box("box")
        here()
        rest()
    """))
    stage.who("claude")
    pair = docker.pair("box")
    other = stage.run(stage.part("codex", """
        server = docker("exec", "-i", called("box"), "/bin/mcp-server-box")
        here()
        use("codex", server.ask)
    """))
    stage.beats("codex")
    agent.kill()
    return stage.truth(in_use=[other, docker.client("exec"), *pair])
