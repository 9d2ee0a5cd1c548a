"""The key of a session is gone, and its manager uses the server nevertheless."""
from registry import Registry

TRUTH = "in use"
TWIN = "sessions/expired"
NEEDS = ["redis"]


def build(stage):
    registry = Registry("ended", "goes-on")
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        servers = [start("mcp-server-fake", "--as", name, env=of_session(name)) for name in ("ended", "goes-on")]
        here()
        use("claude", lambda: [server.ask() for server in servers])
    """))
    stage.beats("claude")
    registry.end("ended")
    return stage.truth(in_use=[agent, stage.who("ended"), stage.who("goes-on")])
