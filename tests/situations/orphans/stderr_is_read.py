"""The agent is killed; a log collector that lives reads the server's standard error, which is no wire."""

TRUTH = "orphan"
TWIN = "stdout/reader_waits"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """)
    stage.run(stage.part("log-collector", """
        r, w = os.pipe()
        start("claude", wire=None, stderr=w)
        os.close(w)
        while os.read(r, 100):
            pass
    """))
    agent = stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])
