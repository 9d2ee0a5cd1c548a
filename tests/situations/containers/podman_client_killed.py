"""The agent of a container of podman is killed together with the client; nobody is left who can reach the container."""
from boxes import Podman

TRUTH = "orphan"
TWIN = "containers/podman_attached"
NEEDS = ["podman"]
COST = "without its client nobody tells who started the container, and its engine may have; it is told with the command that stops it"


def build(stage):
    podman = Podman(stage)
    agent = stage.run(stage.part("claude", """
        box("box")
        here()
        rest()
    """))
    stage.who("claude")
    client, inside = podman.pair("box")
    client.kill()
    agent.kill()
    return stage.truth(orphans=[inside])
