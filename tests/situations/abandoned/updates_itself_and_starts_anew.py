"""An agent updates itself in place: its wires end with the exec, and the next version starts a server of its own."""

TRUTH = "mixed"
TWIN = "abandoned/updates_itself"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        if "--anew" not in sys.argv:
            start("mcp-server-fake", "--as", "old")
            become("claude", "--anew")
        new = start("mcp-server-fake", "--as", "new")
        here()
        use("claude", new.ask)
    """))
    stage.beats("claude")
    return stage.truth(orphans=[stage.who("old")], in_use=[agent, stage.who("new")])
