"""The agent's leading thread has ended; its other threads go on with the server."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        in_background(use, "claude", server.ask)
        here()
        libc.syscall(60, 0)
    """))
    stage.beats("claude")
    return stage.truth(in_use=[stage.who("claude"), stage.who("mcp-server-fake")])
