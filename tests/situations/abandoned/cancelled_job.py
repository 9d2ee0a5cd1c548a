"""One of a gateway's parallel jobs was cancelled and its server let go of; the servers of the others are in use."""

TRUTH = "mixed"
TWIN = "others/parallel_jobs"


def build(stage):
    stage.server("mcp-server-fake", "blocked")
    agent = stage.run(stage.part("hermes", """
        here()
        jobs = [start("mcp-server-fake", "--as", f"job{n}", start_new_session=True) for n in range(4)]
        jobs.pop(1).let_go()
        use("hermes", lambda: [job.ask() for job in jobs])
    """), "gateway", "run")
    stage.beats("hermes")
    return stage.truth(orphans=[stage.who("job1")], in_use=[agent, *[stage.who(f"job{n}") for n in (0, 2, 3)]])
