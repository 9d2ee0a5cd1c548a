"""Only the wrapper `npx` was killed: the server is init's child now, and its host goes on with it."""

TRUTH = "in use"
TWIN = "orphans/launch_chain"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("npx", """
        here()
        subprocess.run([f"{BIN}/mcp-server-fake"])
    """)
    agent = stage.run(stage.part("claude", """
        here()
        use("claude", start("npx", "-y", "mcp-server-fake").ask)
    """))
    stage.beats("claude")
    stage.who("npx").kill()
    stage.adopted(stage.who("mcp-server-fake"))
    return stage.truth(in_use=[agent, stage.who("mcp-server-fake")])
