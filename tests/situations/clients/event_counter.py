"""A program wakes the server by an eventfd that both inherited, and is answered by another; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/event_counter"


def build(stage):
    stage.part("mcp-server-fake", """
        jobs, results = int(argument("--jobs")), int(argument("--results"))
        def attend():
            while os.eventfd_read(jobs):
                os.eventfd_write(results, 1)
        in_background(attend)
        serve()
    """)
    stage.part("feeder", """
        jobs, results = int(argument("--jobs")), int(argument("--results"))
        here()
        def feed():
            os.eventfd_write(jobs, 1)
            os.eventfd_read(results)
        use("feeder", feed)
    """)
    agent = stage.run(stage.part("claude", """
        jobs, results = os.eventfd(0), os.eventfd(0)
        words = ["--jobs", str(jobs), "--results", str(results)]
        start("mcp-server-fake", *words, pass_fds=[jobs, results])
        start("feeder", *words, wire=None, pass_fds=[jobs, results])
        present("feeder")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("feeder")
    agent.kill()
    return stage.truth(in_use=[stage.who("feeder"), stage.who("mcp-server-fake")])
