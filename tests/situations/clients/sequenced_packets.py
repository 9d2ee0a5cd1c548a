"""A client is connected by a unix socket of sequenced packets without a name in a folder; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/silent_listener"


def build(stage):
    stage.part("mcp-server-web", """
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind("\\0" + DIR)
        listener.listen()
        tell("go/port", "")
        in_background(answer_calls, listener)
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    person = stage.run(stage.part("person", """
        wait_for("port")
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect("\\0" + DIR)
        ask_over(connection)
        on_call("person", lambda: ask_over(connection))
    """))
    stage.when_called("person", person)
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-web")])
