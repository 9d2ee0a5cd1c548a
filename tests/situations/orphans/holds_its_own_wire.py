"""A server opened its own standard input for writing as well, so that its pipe never hangs up; the agent is killed."""

TRUTH = "orphan"
TWIN = "handed_on/reopened"


def build(stage):
    stage.part("mcp-server-fake", """
        keep = os.open("/proc/self/fd/0", os.O_WRONLY)
        serve()
    """)
    agent = stage.agent("mcp-server-fake")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])
