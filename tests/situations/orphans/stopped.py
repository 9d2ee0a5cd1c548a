"""The agent is killed; its server is stopped by SIGSTOP and hears no SIGTERM."""

TRUTH = "orphan"

import signal


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.agent("mcp-server-fake")
    server = stage.who("mcp-server-fake")
    server.kill(signal.SIGSTOP, wait=False)
    agent.kill()
    return stage.truth(orphans=[server])
