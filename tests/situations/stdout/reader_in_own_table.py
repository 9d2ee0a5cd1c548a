"""A thread with a descriptor table of its own reads the results; the agent is killed."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    stage.part("collector", """
        here()
        r = os.dup(0)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        in_own_table(lambda: use("collector", lambda: os.read(r, 1000) or 1 / 0), r)
        rest()
    """)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-batch")
        start("collector", wire=None, stdin=server.r)
        present("collector")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("collector")
    agent.kill()
    return stage.truth(in_use=[stage.who("collector"), stage.who("mcp-server-batch")])
