"""An agent execs in place into a program that no rule knows, which talks on through the wires."""

TRUTH = "in use"
TWIN = "orphans/unknown_host"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("helper.py", "use('helper', handed().ask)\n")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake", wire="socket")
        os.set_inheritable(server.w, True)
        become("helper.py", *words(server))
    """))
    stage.beats("helper")
    return stage.truth(in_use=[agent, stage.who("mcp-server-fake")])
