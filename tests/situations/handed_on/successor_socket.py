"""A host started its next version with the wire, a socket pair, and is killed."""

TRUTH = "in use"
TWIN = "orphans/successor_died"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    first = stage.run(stage.part("claude", """
        if ALIAS == "second":
            use("second", handed().ask)
        server = start("mcp-server-fake", wire="socket")
        hand_on(server, "claude", "--as", "second")
        here("first")
        rest()
    """))
    stage.beats("second")
    first.kill()
    return stage.truth(in_use=[stage.who("second"), stage.who("mcp-server-fake")])
