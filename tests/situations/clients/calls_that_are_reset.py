"""The server speaks HTTP too; its client resets its short connections, which leaves no trace in any table. The agent is killed."""

TRUTH = "in use"
TWIN = "orphans/silent_listener"


def build(stage):
    stage.part("mcp-server-web", """
        in_background(answer_calls, listen("tcp"))
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    stage.run(stage.part("person", """
        def call_and_reset():
            with dial("tcp", "mcp-server-web") as connection:
                ask_over(connection)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        use("person", call_and_reset)
    """))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-web")])
