"""Somebody opened the server's pipes anew through /proc/PID/fd and talks; the agent is killed."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.agent("mcp-server-fake")
    user = stage.run(stage.part("tap.py", """
        folder = f"/proc/{present('mcp-server-fake')}/fd"
        here()
        use("tap", Server(os.open(f"{folder}/0", os.O_WRONLY), os.open(f"{folder}/1", os.O_RDONLY)).ask)
    """))
    stage.beats("tap")
    agent.kill()
    return stage.truth(in_use=[user, stage.who("mcp-server-fake")])
