"""The host is killed; a forked worker sleeps, and talks through the shared wire every second and a half."""

TRUTH = "in use"
TWIN = "orphans/pool_workers"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        def now_and_then():
            server.ask()
            time.sleep(1.25)
        copy(lambda: use("worker", now_and_then), alias="worker")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("worker", 1)
    host.kill()
    return stage.truth(in_use=[stage.who("worker"), stage.who("mcp-server-fake")])
