"""A client calls now and then, the last time a moment ago; at the look nothing is connected."""

TRUTH = "in use"
TWIN = "orphans/silent_listener"


def build(stage):
    stage.part("mcp-server-web", """
        in_background(answer_calls, listen("tcp"))
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    person = stage.run(stage.part("person", """
        call("tcp", "mcp-server-web")
        on_call("person", lambda: call("tcp", "mcp-server-web"), every=20)
    """))
    stage.when_called("person", person)
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-web")])
