"""A client stays connected over TCP; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/calls_a_database"


def build(stage):
    stage.part("mcp-server-web", """
        in_background(answer_calls, listen("tcp"))
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
