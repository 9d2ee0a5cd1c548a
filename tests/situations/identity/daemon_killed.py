"""A daemon by design is killed and leaves its server behind; the agent that started the daemon lives."""

TRUTH = "mixed"
TWIN = "identity/daemon_goes_on"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("job-daemon", """
        server = start("mcp-server-fake")
        here()
        rest()
    """)
    agent = stage.run(stage.part("claude", """
        start("job-daemon", wire=None, start_new_session=True)
        here()
        rest()
    """))
    daemon, server = stage.who("job-daemon"), stage.who("mcp-server-fake")
    stage.who("claude")
    daemon.kill()
    return stage.truth(orphans=[server], in_use=[agent])
