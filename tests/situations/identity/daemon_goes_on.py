"""A daemon by design goes on when the agent that started it is killed, and uses its server later."""

TRUTH = "in use"
TWIN = "identity/daemon_killed"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("job-daemon", """
        server = start("mcp-server-fake")
        here()
        on_call("job-daemon", server.ask)
    """)
    agent = stage.run(stage.part("claude", """
        start("job-daemon", wire=None, start_new_session=True)
        here()
        rest()
    """))
    daemon, server = stage.who("job-daemon"), stage.who("mcp-server-fake")
    stage.when_called("job-daemon", daemon)
    stage.who("claude")
    agent.kill()
    return stage.truth(in_use=[daemon, server])
