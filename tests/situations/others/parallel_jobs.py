"""A gateway's job ended and left its server, the gateway lives; the servers of its other jobs are in use."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("hermes", """
        here()
        jobs = [start("mcp-server-fake", "--as", f"job{n}", start_new_session=True) for n in range(3)]
        use("hermes", lambda: [job.ask() for job in jobs])
    """), "gateway", "run")
    stage.beats("hermes")
    return stage.truth(in_use=[agent, *[stage.who(f"job{n}") for n in range(3)]])
