"""The wires were on their way to somebody in a unix socket that was closed unread; the agent is killed."""

TRUTH = "orphan"
TWIN = "handed_on/in_flight"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        near, far = socket.socketpair()
        send_fds(near, server.w, server.r)
        near.close()
        far.close()
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])
