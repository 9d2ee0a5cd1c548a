"""A launcher starts its server anew whenever that dies; the agent of both is killed."""

TRUTH = "orphan"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("npx", """
        here()
        while True:
            subprocess.run([f"{BIN}/mcp-server-fake"])
    """)
    agent = stage.run(stage.part("claude", """
        start("npx", "-y", "mcp-server-fake")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("npx"), stage.who("mcp-server-fake")])
