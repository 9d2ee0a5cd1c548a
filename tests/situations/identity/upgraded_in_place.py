"""An agent upgrades itself by exec in place and keeps its wires."""

TRUTH = "in use"
TWIN = "orphans/busy_timer"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        if "--wires" in sys.argv:
            use("claude", handed().ask)
        server = start("mcp-server-fake")
        os.set_inheritable(server.w, True)
        os.set_inheritable(server.r, True)
        become("claude", *words(server))
    """))
    stage.beats("claude")
    return stage.truth(in_use=[agent, stage.who("mcp-server-fake")])
