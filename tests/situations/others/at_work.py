"""An agent works with three servers, on pipes, a socket pair and in a session of its own: nothing is wrong."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        servers = [start("mcp-server-fake", "--as", "a"), start("mcp-server-fake", "--as", "b", wire="socket"),
                   start("mcp-server-fake", "--as", "c", start_new_session=True)]
        here()
        use("claude", lambda: [server.ask() for server in servers])
    """))
    stage.beats("claude")
    return stage.truth(in_use=[agent, *[stage.who(alias) for alias in "abc"]])
