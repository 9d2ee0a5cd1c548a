"""The agent of a container is killed; another one is attached to it and takes its results."""
from boxes import Docker

TRUTH = "in use"
TWIN = "containers/agent_killed"
NEEDS = ["docker"]


def build(stage):
    docker = Docker(stage)
    agent = stage.run(stage.part("claude", """
        box("box", program=["/bin/mcp-server-results"])
        here()
        rest()
    """))
    stage.who("claude")
    pair = docker.pair("box")
    other = stage.run(stage.part("codex", """
        server = docker("attach", "--sig-proxy=false", called("box"), asked=False)
        server.patience = 60.0
        here()
        use("codex", lambda: server.take())
    """))
    stage.beats("codex")
    agent.kill()
    return stage.truth(in_use=[other, docker.client("attach"), pair[1]], may_end=[pair[0]])
