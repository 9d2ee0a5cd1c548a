"""A leaking server started a job in a session of its own, with a log for output, that inherits standard input; the agent is killed."""

TRUTH = "mixed"


def build(stage):
    stage.part("mcp-server-fake", """
        subprocess.Popen([f"{BIN}/job"], stdout=open(f"{DIR}/job.log", "w"), stderr=subprocess.STDOUT, start_new_session=True)
        present("job")
        serve()
    """)
    stage.part("job", """
        here()
        use("job", lambda: None)
    """)
    agent = stage.agent("mcp-server-fake")

    stage.beats("job")
    agent.kill()
    return stage.truth(in_use=[stage.who("job")], orphans=[stage.who("mcp-server-fake")])
