"""A debugger is attached to the server (PTRACE_SEIZE); the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/tracer_gone"


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
    agent.kill()
    return stage.truth(in_use=[server, debugger])
