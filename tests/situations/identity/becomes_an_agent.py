"""A server execs in place into an agent, which works with a server of its own; the first agent is killed."""

TRUTH = "in use"
TWIN = "orphans/execs_in_place"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("codex", """
        here()
        use("codex", start("mcp-server-fake").ask)
    """)
    stage.part("mcp-server-turncoat", """
        answer(os.read(0, 65536))
        become("codex")
    """)
    agent = stage.agent("mcp-server-turncoat")
    stage.beats("codex")
    agent.kill()
    return stage.truth(in_use=[stage.who("codex"), stage.who("mcp-server-fake")])
