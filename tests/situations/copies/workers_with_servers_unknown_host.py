"""A home-made host that no rule knows is killed; its forked workers live, each uses a server that it started itself."""

TRUTH = "in use"
TWIN = "orphans/pool_workers_at_a_queue"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("chat_host.py", """
        shared = start("mcp-server-fake", "--as", "shared")
        def work(n):
            server = start("mcp-server-fake", "--as", f"server{n}")
            use(f"worker{n}", server.ask)
        for n in range(2):
            copy(lambda: work(n), alias=f"worker{n}")
        here()
        rest()
    """))
    stage.who("chat_host.py")
    for n in range(2):
        stage.beats(f"worker{n}")
    host.kill()
    in_use = [stage.who(f"{what}{n}") for what in ("worker", "server") for n in range(2)]
    return stage.truth(in_use=in_use, may_end=[stage.who("shared")])
