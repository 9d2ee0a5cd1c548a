"""A debugger is attached to a thread of the server, not to its leader; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/tracer_gone"


def build(stage):
    stage.part("mcp-server-fake", """
        in_background(rest_in_a_thread)
        serve()
    """)
    agent = stage.agent("mcp-server-fake")
    server = stage.who("mcp-server-fake")
    debugger = stage.run(stage.part("debugger", """
        pid = present("mcp-server-fake")
        trace(max(int(tid) for tid in os.listdir(f"/proc/{pid}/task")))
        here()
        rest()
    """))
    stage.who("debugger")
    agent.kill()
    return stage.truth(in_use=[server, debugger])
