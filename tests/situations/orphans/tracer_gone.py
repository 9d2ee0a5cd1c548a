"""A debugger was attached to the server and has gone; the agent is killed."""

TRUTH = "orphan"
TWIN = "clients/debugger"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.agent("mcp-server-fake")
    server = stage.who("mcp-server-fake")
    debugger = stage.run(stage.part("debugger", """
        trace(present("mcp-server-fake"))
        here()
        rest()
    """))
    stage.who("debugger")
    debugger.kill()
    agent.kill()
    return stage.truth(orphans=[server])
