"""The successor hands the wires to a successor of its own; both predecessors have ended."""
import situation

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    first = stage.run(stage.part("claude", """
        if ALIAS == "third":
            use("third", handed().ask)
        elif ALIAS == "second":
            hand_on(handed(), "claude", "--as", "third")
        else:
            hand_on(start("mcp-server-fake"), "claude", "--as", "second")
    """))
    second = stage.who("second")
    stage.beats("third")
    situation.within("their end", lambda: not first.alive() and not second.alive())
    return stage.truth(in_use=[stage.who("third"), stage.who("mcp-server-fake")])
