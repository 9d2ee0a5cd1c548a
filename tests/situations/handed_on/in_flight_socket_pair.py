"""The wire is a socket pair and its near end lies in a unix socket, not received yet."""

TRUTH = "in use"
TWIN = "orphans/flight_cancelled"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    user = stage.run(stage.part("chat.py", """
        conn = listen("unix").accept()[0]
        server = []
        def ask():
            if not server:
                server.append(Server(*receive_fds(conn, 1) * 2))
            server[0].ask()
        on_call("chat", ask)
    """))
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake", wire="socket")
        conn = dial("unix", "chat.py")
        send_fds(conn, server.w)
        here()
        rest()
    """))
    stage.who("claude")
    stage.when_called("chat", user)
    agent.kill()
    return stage.truth(in_use=[user, stage.who("mcp-server-fake")])
