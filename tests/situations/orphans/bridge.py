"""A server that is a bridge to another one, on a wire of its own; their agent is killed."""

TRUTH = "orphan"
TWIN = "others/agent_below_a_server"


def build(stage):
    stage.server("mcp-server-inner", "timer")
    stage.part("mcp-proxy", """
        inner = start("mcp-server-inner")
        serve()
    """)
    agent = stage.agent("mcp-proxy")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-proxy"), stage.who("mcp-server-inner")])
