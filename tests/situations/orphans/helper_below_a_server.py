"""A server started a helper on streams of its own, which starts no server; their agent is killed."""

TRUTH = "orphan"
TWIN = "others/own_agent_below_a_server"


def build(stage):
    stage.part("assistant.py", "here()\nrest()\n")
    stage.part("mcp-server-agents", """
        start("assistant.py", wire=None)
        present("assistant.py")
        serve()
    """)
    agent = stage.agent("mcp-server-agents")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-agents"), stage.who("assistant.py")])
