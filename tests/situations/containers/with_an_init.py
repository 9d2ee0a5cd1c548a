"""The agent of a container with an init process (`--init`) is killed."""
from boxes import Docker

TRUTH = "orphan"
TWIN = "containers/agent_lives"
NEEDS = ["docker"]


def build(stage):
    docker = Docker(stage)
    agent = stage.run(stage.part("claude", """
        box("box", "--init")
        here()
        rest()
    """))
    stage.who("claude")
    pair = docker.pair("box")
    agent.kill()
    return stage.truth(orphans=pair)
