"""Not the server but a child of it listens and has a client; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/silent_listener"


def build(stage):
    stage.part("dashboard", """
        listener = listen("tcp")
        here()
        answer_calls(listener)
    """)
    stage.part("mcp-server-web", """
        start("dashboard", wire=None)
        present("dashboard")
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    stage.run(stage.part("person", """
        connection = dial("tcp", "dashboard")
        use("person", lambda: ask_over(connection))
    """))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[stage.who("dashboard")], may_end=[stage.who("mcp-server-web")])
