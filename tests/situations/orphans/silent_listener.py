"""The server listens on a port too, but nobody ever called; its agent is killed."""

TRUTH = "orphan"
TWIN = "clients/keep_alive"


def build(stage):
    stage.part("mcp-server-fake", """
        in_background(answer_calls, listen("tcp"))
        serve()
    """)
    agent = stage.agent("mcp-server-fake")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])
