"""The wires lie in a connection that was not even accepted yet."""

TRUTH = "in use"
TWIN = "orphans/flight_cancelled"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    user = stage.run(stage.part("chat.py", """
        listener = listen("unix")
        server = []
        def ask():
            if not server:
                server.append(Server(*receive_fds(listener.accept()[0], 2)))
            server[0].ask()
        on_call("chat", ask)
    """))
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        conn = dial("unix", "chat.py")
        send_fds(conn, server.w, server.r)
        here()
        rest()
    """))
    stage.who("claude")
    stage.when_called("chat", user)
    agent.kill()
    return stage.truth(in_use=[user, stage.who("mcp-server-fake")])
