"""A client is connected over a unix socket in the abstract namespace; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/silent_listener"


def build(stage):
    stage.part("mcp-server-ipc", """
        in_background(answer_calls, listen("abstract"))
        serve()
    """)
    agent = stage.agent("mcp-server-ipc")
    stage.run(stage.part("person", """
        connection = dial("abstract", "mcp-server-ipc")
        use("person", lambda: ask_over(connection))
    """))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-ipc")])
