"""The agent is killed; the client of its container lives, and the container does not end at the end of its input."""
from boxes import Docker

TRUTH = "orphan"
TWIN = "containers/agent_lives"
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
    agent.kill()
    return stage.truth(orphans=pair)
