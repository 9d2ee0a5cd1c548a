"""A host is killed; its forked pool workers, idle for ever, inherited the wire's write end."""

TRUTH = "orphan"
TWIN = "copies/worker_at_work"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake")
        for n in range(3):
            copy(rest, alias=f"worker{n}")
        here()
        rest()
    """))
    stage.who("claude")
    workers = [stage.who(f"worker{n}") for n in range(3)]
    stage.asleep(*workers)
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")], may_end=workers)
