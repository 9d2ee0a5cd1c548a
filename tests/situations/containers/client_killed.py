"""The agent of a container is killed together with the client; nobody is left who can reach the container."""
from boxes import Docker

TRUTH = "orphan"
TWIN = "containers/attached"
NEEDS = ["docker"]
COST = "without its client nobody tells who started the container, and its engine may have; it is told with the command that stops it"


def build(stage):
    docker = Docker(stage)
    agent = stage.run(stage.part("claude", """
        box("box")
        here()
        rest()
    """))
    stage.who("claude")
    client, inside = docker.pair("box")
    client.kill()
    agent.kill()
    return stage.truth(orphans=[inside])
