"""The Python SDK starts servers in sessions of their own; the agent is killed."""

TRUTH = "orphan"
TWIN = "let_go/web_server"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("hermes", """
        start("mcp-server-fake", start_new_session=True)
        here()
        rest()
    """))
    stage.who("hermes")
    host.kill()
    server = stage.who("mcp-server-fake")
    assert server.session() == server.pid
    return stage.truth(orphans=[server])
