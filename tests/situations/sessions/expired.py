"""A manager has a server for each session; the key of one session is gone, and the manager leaks its server."""
from registry import Registry

TRUTH = "mixed"
TWIN = "sessions/expired_and_used"
NEEDS = ["redis"]


def build(stage):
    registry = Registry("ended", "goes-on")
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        ended = start("mcp-server-fake", "--as", "ended", env=of_session("ended"))
        goes_on = start("mcp-server-fake", "--as", "goes-on", env=of_session("goes-on"))
        here()
        use("claude", goes_on.ask)
    """))
    stage.beats("claude")
    registry.end("ended")
    return stage.truth(orphans=[stage.who("ended")], in_use=[agent, stage.who("goes-on")])
