"""A tool of a server started an assistant that no rule knows, which works with a server of its own; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/helper_below_a_server"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("assistant.py", "here()\nuse('assistant', start('mcp-server-fake').ask)\n")
    stage.part("mcp-server-agents", """
        start("assistant.py", wire=None)
        present("assistant.py")
        serve()
    """)
    agent = stage.agent("mcp-server-agents")
    stage.beats("assistant")
    agent.kill()
    in_use = [stage.who("assistant.py"), stage.who("mcp-server-fake")]
    return stage.truth(in_use=in_use, may_end=[stage.who("mcp-server-agents")])
