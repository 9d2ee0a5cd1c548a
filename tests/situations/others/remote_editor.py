"""A remote editor's server, started through a log-in that has ended, uses MCP servers of its own."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("code-server", """
        def daemon():
            os.setsid()
            here()
            use("editor", start("mcp-server-fake", wire="socket").ask)
        copy(daemon)
    """)
    agent = stage.run(stage.part("claude", """
        start("code-server", wire=None).wait()
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("editor")
    agent.kill()
    return stage.truth(in_use=[stage.who("code-server"), stage.who("mcp-server-fake")])
