"""The key of a session is gone, and its manager talks to the session's server in a container nevertheless."""
from boxes import Docker
from registry import Registry

TRUTH = "in use"
TWIN = "sessions/leaked_in_a_container"
NEEDS = ["redis", "docker"]


def build(stage):
    registry, docker = Registry("ended", "goes-on"), Docker(stage)
    agent = stage.run(stage.part("claude", """
        servers = [box(name, *given(name)) for name in ("ended", "goes-on")]
        here()
        use("claude", lambda: [server.ask() for server in servers])
    """))
    stage.beats("claude")
    registry.end("ended")
    return stage.truth(in_use=[agent, *docker.pair("ended"), *docker.pair("goes-on")])
