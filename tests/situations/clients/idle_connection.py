"""A client is connected over IPv6 and says nothing for now; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/calls_a_database"


def build(stage):
    stage.part("mcp-server-web", """
        in_background(answer_calls, listen("tcp6"))
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    person = stage.run(stage.part("person", """
        connection = dial("tcp6", "mcp-server-web")
        ask_over(connection)
        on_call("person", lambda: ask_over(connection))
    """))
    stage.when_called("person", person)
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-web")])
