"""A home-made host that no rule knows is killed; its server stays."""

TRUTH = "orphan"
TWIN = "copies/workers_with_servers_unknown_host"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("chat_host.py", "use('host', start('mcp-server-fake').ask)\n"))
    stage.was_used("host")
    host.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])
