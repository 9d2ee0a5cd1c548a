"""The agent of a container is killed, and orphand was not told of the container's engine: a person has to stop it."""
from boxes import Docker

TRUTH = "in use"
TWIN = "containers/agent_killed"
NEEDS = ["docker"]


def build(stage):
    docker = Docker(stage, asked=False)
    agent = stage.run(stage.part("claude", """
        box("box")
        here()
        rest()
    """))
    stage.who("claude")
    pair = docker.pair("box")
    agent.kill()
    return stage.truth(in_use=pair)
