"""A server execs in place into its next version and is a server still; its agent is killed."""

TRUTH = "orphan"
TWIN = "identity/becomes_an_agent"


def build(stage):
    stage.server("mcp-server-next", "timer")
    stage.part("mcp-server-fake", """
        answer(os.read(0, 65536))
        become("mcp-server-next")
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake")
        present("mcp-server-next")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-next")])
