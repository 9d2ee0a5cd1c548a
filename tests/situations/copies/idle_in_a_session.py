"""The host is killed; a forked copy in a session of its own holds the wire, idle until it is asked."""

TRUTH = "in use"
TWIN = "orphans/pool_workers"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        copy(lambda: on_call("copy", server.ask), setsid=True, alias="copy")
        here()
        rest()
    """))
    stage.who("claude")
    stage.when_called("copy", stage.who("copy"))
    host.kill()
    return stage.truth(in_use=[stage.who("copy"), stage.who("mcp-server-fake")])
