"""Left before the daemon came: adopted by init, both wires hung up."""

TRUTH = "orphan"
WHEN = "before"
TWIN = "stdout/before"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.agent("mcp-server-fake")
    agent.kill()
    server = stage.who("mcp-server-fake")
    stage.adopted(server)
    return stage.truth(orphans=[server])
