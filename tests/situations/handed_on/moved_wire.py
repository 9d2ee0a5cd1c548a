"""The server moved its wire to another descriptor; a successor talks through it."""
import situation

TRUTH = "in use"
TWIN = "orphans/moved_wire"


def build(stage):
    stage.part("mcp-server-fake", """
        wire_in, wire_out = os.dup(0), os.dup(1)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(2, 1)
        here()
        while True:
            answer(os.read(wire_in, 65536), wire_out)
    """)
    stage.part("helper.py", "use('helper', handed().ask)\n")
    first = stage.run(stage.part("claude", """
        hand_on(start("mcp-server-fake"), "helper.py")
    """))
    stage.beats("helper")
    situation.within("the first's end", lambda: not first.alive())
    return stage.truth(in_use=[stage.who("helper.py"), stage.who("mcp-server-fake")])
