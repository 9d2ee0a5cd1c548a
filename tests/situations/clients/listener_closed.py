"""The server accepted its one client and closed the listener; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/calls_a_database"


def build(stage):
    stage.part("mcp-server-web", """
        in_background(answer_calls, listen("tcp"), once=True)
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    stage.run(stage.part("person", """
        connection = dial("tcp", "mcp-server-web")
        use("person", lambda: ask_over(connection))
    """))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-web")])
