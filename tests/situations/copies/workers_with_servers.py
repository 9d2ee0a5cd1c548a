"""A host's main process is killed; its forked workers live, each uses a server that it started itself."""

TRUTH = "in use"
TWIN = "orphans/pool_workers"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("claude", """
        def work(n):
            server = start("mcp-server-fake", "--as", f"server{n}")
            use(f"worker{n}", server.ask)
        for n in range(2):
            copy(lambda: work(n), alias=f"worker{n}")
        here()
        rest()
    """))
    stage.who("claude")
    for n in range(2):
        stage.beats(f"worker{n}")
    host.kill()
    return stage.truth(in_use=[stage.who(f"{what}{n}") for what in ("worker", "server") for n in range(2)])
