"""The host is killed; a forked worker that holds the wire is idle, but has a server of its own."""

TRUTH = "in use"
TWIN = "orphans/pool_workers"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("claude", """
        server = start("mcp-server-fake", "--as", "shared")
        def work():
            own = start("mcp-server-fake", "--as", "own")
            on_call("worker", lambda: (server.ask(), own.ask()))
        copy(work, alias="worker")
        here()
        rest()
    """))
    stage.who("claude")
    stage.when_called("worker", stage.who("worker"))
    host.kill()
    return stage.truth(in_use=[stage.who("worker"), stage.who("own"), stage.who("shared")])
