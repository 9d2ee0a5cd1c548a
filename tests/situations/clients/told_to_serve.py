"""A server was told to serve HTTP at a port; another host calls now and then, which leaves no trace here; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/silent_listener"


def build(stage):
    stage.part("mcp-server-web", """
        in_background(answer_calls, listen("tcp"))
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-web", "--transport", "streamable-http", "--port", "8931")
        here()
        rest()
    """))
    stage.who("claude")
    # A client on another host that closes first leaves nothing on this one. Here it resets the connection, to the same effect.
    person = stage.run(stage.part("person", """
        def visit():
            with dial("tcp", "mcp-server-web") as connection:
                ask_over(connection)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        visit()
        here()
        on_call("person", visit)
    """))
    stage.who("person")
    stage.when_called("person", person)
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-web")])
