"""A thread of the successor holds the wires in a descriptor table of its own; /proc/PID/fd does not show them."""
import situation

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("helper.py", """
        server = handed()
        in_own_table(lambda: use("helper", server.ask), server.w, server.r)
        rest()
    """)
    first = stage.run(stage.part("claude", """
        hand_on(start("mcp-server-fake"), "helper.py")
    """))
    stage.beats("helper")
    situation.within("the first's end", lambda: not first.alive())
    return stage.truth(in_use=[stage.who("helper.py"), stage.who("mcp-server-fake")])
