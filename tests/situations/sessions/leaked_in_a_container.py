"""A manager has a server in a container for each session; the key of one is gone, and the manager leaks its server."""
from boxes import Docker
from registry import Registry

TRUTH = "mixed"
TWIN = "sessions/in_a_container"
NEEDS = ["redis", "docker"]
COST = "a container is stopped only when its input has ended, and the manager holds that open"


def build(stage):
    registry, docker = Registry("ended", "goes-on"), Docker(stage)
    agent = stage.run(stage.part("claude", """
        ended = box("ended", *given("ended"))
        goes_on = box("goes-on", *given("goes-on"))
        here()
        use("claude", goes_on.ask)
    """))
    stage.beats("claude")
    registry.end("ended")
    return stage.truth(orphans=docker.pair("ended"), in_use=[agent, *docker.pair("goes-on")])
