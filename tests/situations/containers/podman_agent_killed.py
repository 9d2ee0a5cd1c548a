"""The agent is killed; the client of its container (podman) lives, and the container does not end at the end of its input."""
from boxes import Podman

TRUTH = "orphan"
TWIN = "containers/podman_attached"
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
    agent.kill()
    return stage.truth(orphans=pair)
