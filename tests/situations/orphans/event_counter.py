"""The agent shared an eventfd with its server, which waits at it, and is killed."""

TRUTH = "orphan"
TWIN = "clients/event_counter"


def build(stage):
    stage.part("mcp-server-fake", """
        jobs = int(argument("--jobs"))
        in_background(lambda: os.eventfd_read(jobs))
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        jobs = os.eventfd(0)
        start("mcp-server-fake", "--jobs", str(jobs), pass_fds=[jobs])
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])
