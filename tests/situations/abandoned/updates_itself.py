"""An agent updates itself in place, the same process runs the next version, which goes on with the server."""

TRUTH = "in use"
TWIN = "abandoned/updates_itself_and_starts_anew"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        if "--wires" in sys.argv:
            use("claude", handed().ask)
        server = start("mcp-server-fake")
        for end in (server.w, server.r):
            os.set_inheritable(end, True)
        become("claude", *words(server))
    """))
    stage.beats("claude")
    return stage.truth(in_use=[agent, stage.who("mcp-server-fake")])
