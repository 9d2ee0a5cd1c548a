"""A client is connected, but the server, busy for now, has not accepted it yet; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/silent_listener"


def build(stage):
    stage.part("mcp-server-web", """
        listener = listen("tcp")
        def later(*_):
            in_background(answer_calls, listener)
        signal.signal(signal.SIGUSR1, later)
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    person = stage.run(stage.part("person", """
        tell("beats/person", "0")
        connection = dial("tcp", "mcp-server-web")
        connection.settimeout(None)
        here()
        use("person", lambda: ask_over(connection))
    """))
    stage.who("person")
    server = stage.who("mcp-server-web")
    stage.when_called("person", server)
    agent.kill()
    return stage.truth(in_use=[server, person])
