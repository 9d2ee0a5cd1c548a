"""An agent lives below a server and works with one of its own; the agent of the first is killed."""

TRUTH = "in use"
TWIN = "orphans/bridge"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("codex", "here()\nuse('codex', start('mcp-server-fake').ask)\n")
    stage.part("mcp-server-agents", """
        start("codex", wire=None)
        present("codex")
        serve()
    """)
    agent = stage.agent("mcp-server-agents")
    stage.beats("codex")
    agent.kill()
    in_use = [stage.who("codex"), stage.who("mcp-server-fake")]
    return stage.truth(in_use=in_use, may_end=[stage.who("mcp-server-agents")])
