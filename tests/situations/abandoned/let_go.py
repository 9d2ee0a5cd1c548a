"""The agent closed both of its ends, as a client does that closes a server, and lives."""

TRUTH = "mixed"
TWIN = "abandoned/answers_are_read"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        old = start("mcp-server-fake", "--as", "old")
        new = start("mcp-server-fake", "--as", "new")
        old.let_go()
        here()
        use("claude", new.ask)
    """))
    stage.beats("claude")
    return stage.truth(orphans=[stage.who("old")], in_use=[agent, stage.who("new")])
