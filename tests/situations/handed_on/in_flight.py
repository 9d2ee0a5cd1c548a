"""The wires lie in a unix socket: sent by the agent, which was killed, not received yet by who will use them."""

TRUTH = "in use"
TWIN = "orphans/flight_cancelled"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    user = stage.run(stage.part("chat.py", """
        conn = listen("unix").accept()[0]
        server = []
        def ask():
            if not server:
                server.append(Server(*receive_fds(conn, 2)))
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
