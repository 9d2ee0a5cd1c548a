"""The agent had a third channel to its server, on fd 3; it is killed."""

TRUTH = "orphan"
TWIN = "clients/third_channel"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        near, far = socket.socketpair()
        start("mcp-server-fake", pass_fds=[far.fileno()])
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])
