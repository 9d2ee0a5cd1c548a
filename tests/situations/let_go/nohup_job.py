"""A leaking server's shell tool ran `nohup job > log &`, without a session of its own; the agent is killed, the job works on."""

TRUTH = "mixed"


def build(stage):
    stage.part("mcp-server-fake", """
        subprocess.run(["/bin/sh", "-c", f"nohup {BIN}/job > {DIR}/job.log 2>&1 &"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
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
