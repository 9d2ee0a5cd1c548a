"""A thread of the agent, not its leader, execs the next version; the process and its wires stay."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        if "--wires" in sys.argv:
            use("claude", handed().ask)
        server = start("mcp-server-fake")
        os.set_inheritable(server.w, True)
        os.set_inheritable(server.r, True)
        in_background(become, "claude", *words(server))
        rest()
    """))
    stage.beats("claude")
    return stage.truth(in_use=[agent, stage.who("mcp-server-fake")])
