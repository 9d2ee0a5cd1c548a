"""A home-made host that no rule knows is killed the moment its server runs."""

TRUTH = "orphan"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.run(stage.part("chat_host.py", """
        start("mcp-server-fake")
        os.kill(os.getpid(), signal.SIGKILL)
    """))
    return stage.truth(orphans=[stage.who("mcp-server-fake")])
