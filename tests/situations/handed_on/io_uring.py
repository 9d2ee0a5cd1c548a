"""The successor has the wires as registered files of an io_uring and no descriptor of them."""
import situation

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("helper.py", """
        server = handed()
        w, r = Ring(server.w), Ring(server.r)
        def ask():
            w.write(b'{"id":1}\\n')
            if b"result" not in r.read(1000):
                raise EOFError("no answer")
        use("helper", ask)
    """)
    first = stage.run(stage.part("claude", """
        hand_on(start("mcp-server-fake"), "helper.py")
    """))
    stage.beats("helper")
    situation.within("the first's end", lambda: not first.alive())
    return stage.truth(in_use=[stage.who("helper.py"), stage.who("mcp-server-fake")])
