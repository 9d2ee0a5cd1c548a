"""A host upgrades itself: it starts its next version with the wires and ends with success."""
import situation

TRUTH = "in use"
TWIN = "orphans/successor_died"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    first = stage.run(stage.part("claude", """
        if ALIAS == "second":
            use("second", handed().ask)
        server = start("mcp-server-fake")
        hand_on(server, "claude", "--as", "second")
    """))
    stage.beats("second")
    situation.within("the first's end", lambda: not first.alive())
    return stage.truth(in_use=[stage.who("second"), stage.who("mcp-server-fake")])
