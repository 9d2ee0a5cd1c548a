"""A client is connected over multipath TCP, as programs in Go are by default, and says nothing for now; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/silent_listener"


def build(stage):
    stage.part("mcp-server-web", """
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        tell("port", str(listener.getsockname()[1]))
        tell("go/port", "")
        in_background(answer_calls, listener)
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    person = stage.run(stage.part("person", """
        wait_for("port")
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
        connection.connect(("127.0.0.1", int(open(DIR + "/port").read())))
        ask_over(connection)
        on_call("person", lambda: ask_over(connection))
    """))
    stage.when_called("person", person)
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-web")])
