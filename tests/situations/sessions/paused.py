"""Two sessions have their keys, and nobody asks their servers for anything until the judgement is over."""
from registry import Registry

TRUTH = "in use"
TWIN = "sessions/expired"
NEEDS = ["redis"]


def build(stage):
    Registry("one", "other")
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        servers = [start("mcp-server-fake", "--as", name, env=of_session(name)) for name in ("one", "other")]
        here()
        on_call("claude", lambda: [server.ask() for server in servers])
    """))
    stage.when_called("claude", agent)
    return stage.truth(in_use=[agent, stage.who("one"), stage.who("other")])
