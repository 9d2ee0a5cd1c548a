"""The server answers datagrams on a unix socket; its client goes on asking; the agent is killed."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-log", """
        in_background(answer_calls, listen("datagram"))
        serve()
    """)
    agent = stage.agent("mcp-server-log")
    stage.run(stage.part("person", """
        connection = dial("datagram", "mcp-server-log")
        use("person", lambda: ask_over(connection))
    """))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-log")])
