"""A program feeds the server through a pipe without a name, on a descriptor beside the standard streams; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/nameless_pipe_hung_up"


def build(stage):
    stage.part("mcp-server-fake", """
        jobs, results = int(argument("--jobs")), int(argument("--results"))
        def attend():
            while os.read(jobs, 100):
                os.write(results, b"pong")
        in_background(attend)
        serve()
    """)
    stage.part("feeder", """
        jobs, results = int(argument("--jobs")), int(argument("--results"))
        here()
        def feed():
            os.write(jobs, b"ping")
            assert os.read(results, 100) == b"pong"
        use("feeder", feed)
    """)
    agent = stage.run(stage.part("claude", """
        jobs, results = os.pipe(), os.pipe()
        start("mcp-server-fake", "--jobs", str(jobs[0]), "--results", str(results[1]), pass_fds=[jobs[0], results[1]])
        start("feeder", "--jobs", str(jobs[1]), "--results", str(results[0]), wire=None, pass_fds=[jobs[1], results[0]])
        present("feeder")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("feeder")
    agent.kill()
    return stage.truth(in_use=[stage.who("feeder"), stage.who("mcp-server-fake")])
