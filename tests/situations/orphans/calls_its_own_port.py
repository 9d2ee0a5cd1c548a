"""A server asks itself over a short connection, which it resets; nobody else calls its port. The agent is killed."""

TRUTH = "orphan"
TWIN = "clients/calls_that_are_reset"


def build(stage):
    stage.part("mcp-server-web", """
        in_background(answer_calls, listen("tcp"))
        def call_and_reset():
            with dial("tcp", "mcp-server-web") as connection:
                ask_over(connection)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        call_and_reset()
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-web")])
