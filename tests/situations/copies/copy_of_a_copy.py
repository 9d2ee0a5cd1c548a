"""The host and its worker are killed; the worker's own fork, in the same session, works on through the wire."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("claude", """
        server = start("mcp-server-fake", wire="socket")
        def work():
            copy(lambda: use("second", server.ask), alias="second")
            rest()
        copy(work, alias="first")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("second")
    host.kill()
    stage.who("first").kill()
    return stage.truth(in_use=[stage.who("second"), stage.who("mcp-server-fake")])
