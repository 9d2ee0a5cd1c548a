"""A server answers SIGTERM with children that ignore it; its agent is killed."""

TRUTH = "orphan"


def build(stage):
    stage.part("mcp-server-fake", """
        def on_term(*_):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            for n in range(3):
                copy(rest)
        signal.signal(signal.SIGTERM, on_term)
        serve()
    """)
    agent = stage.agent("mcp-server-fake")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])
