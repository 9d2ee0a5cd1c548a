"""A let-go job has a pipeline of its own, with pipes that the server never had; the server leaks, the agent is killed."""

TRUTH = "mixed"


def build(stage):
    stage.part("job", "here()\nuse('job', lambda: print('step', flush=True))\n")
    stage.part("mcp-server-shell", """
        shell(f"{BIN}/job 2>/dev/null | sed -u s/step/done/ > {DIR}/results 2>/dev/null &")
        present("job")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    stage.beats("job")
    stage.grows("results")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-shell")], in_use=[stage.who("job"), *stage.find("sed")])
