"""The host is killed; a forked worker in its session goes on talking through the shared wire."""

TRUTH = "in use"
TWIN = "orphans/pool_workers"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        copy(lambda: use("worker", server.ask), alias="worker")
        for n in range(2):
            copy(rest, alias=f"idle{n}")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("worker")
    idle = [stage.who(f"idle{n}") for n in range(2)]
    host.kill()
    return stage.truth(in_use=[stage.who("worker"), stage.who("mcp-server-fake")], may_end=idle)
