"""An unknown Python host is killed; its forked workers wait for ever at a queue that nobody fills any more."""

TRUTH = "orphan"
TWIN = "copies/workers_with_servers_unknown_host"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("chat_host.py", """
        server = start("mcp-server-fake", wire="socket")
        queue, tasks = os.pipe()
        for n in range(2):
            copy(lambda: os.read(queue, 1), alias=f"worker{n}")
        use("host", server.ask)
    """))
    stage.was_used("host")
    workers = [stage.who(f"worker{n}") for n in range(2)]
    stage.asleep(*workers)
    host.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")], may_end=workers)
