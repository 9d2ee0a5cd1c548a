"""An agent's language server, on pipes, outlives it: no MCP server, so not ours to end."""

TRUTH = "in use"


def build(stage):
    stage.server("pyright-langserver", "timer")
    agent = stage.run(stage.part("claude", """
        start("pyright-langserver", "--stdio")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(in_use=[stage.who("pyright-langserver")])
