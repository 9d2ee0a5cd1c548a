"""An agent with much memory is killed, and holds its files while it dies."""

TRUTH = "orphan"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        ballast = bytearray(400 << 20)
        for page in range(0, len(ballast), 4096):
            ballast[page] = 1
        start("mcp-server-fake")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])
