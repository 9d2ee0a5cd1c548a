"""The same over a socket pair, in a session of its own, below a host that no rule knows."""

TRUTH = "mixed"
TWIN = "abandoned/handed_on"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("home-made-host", """
        old = start("mcp-server-fake", "--as", "old", wire="socket", start_new_session=True)
        new = start("mcp-server-fake", "--as", "new", wire="socket", start_new_session=True)
        old.let_go()
        here()
        use("home-made-host", new.ask)
    """))
    stage.beats("home-made-host")
    return stage.truth(orphans=[stage.who("old")], in_use=[agent, stage.who("new")])
